"""What can be said of one column, or of any list of numbers."""

from __future__ import annotations

import math
import random
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any, Final

from .table import Column, DateColumn, NumberColumn

SHOWN: Final = 10
"""How many outliers (the farthest first) and most frequent values are listed."""
_DRAWS: Final = 4_000_000


def describe(column: Column, lines: Sequence[int], *, resamples: int) -> dict[str, Any]:
    """The measures of a column, ready for JSON: how many values and how many missing, and what its kind allows."""
    filled = sum(value is not None for value in column.values)
    found: dict[str, Any] = {"name": column.name, "count": filled, "missing": len(column.values) - filled}
    if isinstance(column, NumberColumn):
        return {**found, "kind": "number", **_of_numbers(column, lines, resamples=resamples)}
    if isinstance(column, DateColumn):
        dates: list[date] = [value for value in column.values if value is not None]
        return {**found, "kind": "date", "first": min(dates).isoformat(), "last": max(dates).isoformat()}
    texts = Counter(value for value in column.values if value is not None)
    frequent = [{"value": value, "count": count} for value, count in texts.most_common(SHOWN)]
    return {**found, "kind": "text", "distinct": len(texts), "most_frequent": frequent}


def _of_numbers(column: NumberColumn, lines: Sequence[int], *, resamples: int) -> dict[str, Any]:
    values = [value for value in column.values if value is not None]
    low, high = fences(values)
    outliers = [
        {"line": line, "value": value}
        for line, value in zip(lines, column.values, strict=True)
        if value is not None and not low <= value <= high
    ]
    outliers.sort(key=lambda outlier: max(low - outlier["value"], outlier["value"] - high), reverse=True)
    q1, median, q3 = quartiles(values)
    mean_low, mean_high = confidence(values, mean, resamples=resamples)
    return {
        "min": min(values),
        "q1": rounded(q1),
        "median": rounded(median),
        "q3": rounded(q3),
        "max": max(values),
        "mean": rounded(mean(values)),
        "mean_95": [rounded(mean_low), rounded(mean_high)],
        "standard_deviation": rounded(deviation(values)),
        "outlier_count": len(outliers),
        "outliers": outliers[:SHOWN],
    }


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def deviation(values: Sequence[float]) -> float:
    """The sample's standard deviation; 0 for a single value."""
    if len(values) < 2:
        return 0.0
    middle = mean(values)
    return math.sqrt(math.fsum((value - middle) ** 2 for value in values) / (len(values) - 1))


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    if len(values) == 1:
        return values[0], values[0], values[0]
    q1, median, q3 = statistics.quantiles(values, n=4, method="inclusive")
    return q1, median, q3


def fences(values: Sequence[float]) -> tuple[float, float]:
    """Tukey's fences: what lies outside, 1.5 times the middle half's width beyond it, is an outlier."""
    q1, _, q3 = quartiles(values)
    return q1 - 1.5 * (q3 - q1), q3 + 1.5 * (q3 - q1)


def confidence(
    values: Sequence[float], statistic: Callable[[Sequence[float]], float], *, resamples: int
) -> tuple[float, float]:
    """Between which two numbers the statistic would lie in 95 of 100 samples like this one (the bootstrap).

    Drawn with a fixed seed, so that the same file always gives the same answer. Long lists are drawn fewer times,
    100 at the least, so that it takes seconds and no more.
    """
    rng = random.Random(2025)
    times = min(resamples, max(100, _DRAWS // len(values)))
    found = sorted(statistic(rng.choices(values, k=len(values))) for _ in range(times))
    return found[int(0.025 * times)], found[min(int(0.975 * times), times - 1)]


def rounded(value: float) -> float:
    """Ten significant digits: free of what binary fractions add at the end."""
    return float(f"{value:.10g}")
