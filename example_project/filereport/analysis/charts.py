"""The charts of a report: one panel for each measure, one above the other, along one axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from .groups import Grouping
from .measures import mean
from .svg import Drawing
from .table import NumberColumn

WIDTH: Final = 720
MOST_PANELS: Final = 4
_LEFT, _RIGHT, _TOP, _PLOT, _GAP = 64, 20, 48, 130, 56


def ticks(low: float, high: float, count: int = 4) -> list[float]:
    """About ``count`` round numbers (1, 2 or 5 times a power of ten apart) that reach from ``low`` to ``high``."""
    size = max(abs(low), abs(high))
    if high - low <= 1e-9 * size:  # all but equal: some room around them
        low, high = low - max(1, 0.1 * size), high + max(1, 0.1 * size)
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    return [float(f"{index * step:.12g}") for index in range(math.floor(low / step), math.ceil(high / step) + 1)]


def short(value: float) -> str:
    """A number as an axis shows it: ``1.5k``, ``2M``, ``0.25``."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            return f"{value / (1e3 if unit == 'k' else limit):.4g}{unit}"
    return f"{value:.4g}"


def time_chart(title: str, grouping: Grouping) -> str:
    """For each measure its means over time, within the band of the lowest and the highest; or bars of its sums."""
    names = [name for name, groups in grouping.values.items() if any(groups)][:MOST_PANELS]
    kind = "sums" if grouping.shown == "sum" else "means, with the lowest and highest values"
    drawing = _panels(title, f"{', '.join(names)} by {grouping.by}: {kind}.", len(names))
    for index, name in enumerate(names):
        groups = grouping.values[name]
        top = _top(index)
        if grouping.shown == "sum":
            scale = _Scale([0.0, *map(sum, groups)], top)
            drawing.text(_LEFT, top - 10, f"{name}, sum", "name")
            _grid(drawing, scale)
            for at, values in enumerate(groups):
                _bar(drawing, scale, at, len(groups), sum(values), index, f"{grouping.labels[at]}: {sum(values):,.10g}")
        else:
            scale = _Scale([value for values in groups for value in values], top)
            drawing.text(_LEFT, top - 10, f"{name}, mean and range", "name")
            _grid(drawing, scale)
            shown = [(_middle(at, len(groups)), values) for at, values in enumerate(groups) if values]
            upper = [(x, scale.y(max(values))) for x, values in shown]
            lower = [(x, scale.y(min(values))) for x, values in shown]
            drawing.path([*upper, *reversed(lower)], f"band bar{index}", closed=True)
            drawing.path([(x, scale.y(mean(values))) for x, values in shown], f"line line{index}")
    _labels(drawing, grouping.labels, _top(len(names) - 1) + _PLOT + 18)
    return drawing.render()


def group_chart(title: str, grouping: Grouping) -> str:
    """For each measure a bar of the mean of each group."""
    names = [name for name, groups in grouping.values.items() if any(groups)][:MOST_PANELS]
    drawing = _panels(title, f"Means of {', '.join(names)} by {grouping.by}.", len(names))
    for index, name in enumerate(names):
        means = [mean(values) if values else 0.0 for values in grouping.values[name]]
        scale = _Scale([0.0, *means], _top(index))
        drawing.text(_LEFT, scale.top - 10, f"{name}, mean", "name")
        _grid(drawing, scale)
        for at, value in enumerate(means):
            _bar(drawing, scale, at, len(means), value, index, f"{grouping.labels[at]}: {value:,.4g}")
    _labels(drawing, grouping.labels, _top(len(names) - 1) + _PLOT + 18)
    return drawing.render()


def histogram(title: str, columns: Sequence[NumberColumn]) -> str:
    """For each column how many of its values lie in each of a few ranges; a note where no column holds numbers."""
    columns = columns[:MOST_PANELS]
    names = ", ".join(column.name for column in columns)
    drawing = _panels(title, f"How the values of {names} are spread." if columns else "No numbers.", len(columns) or 1)
    if not columns:
        drawing.text(_LEFT, _TOP + 40, "The table has no column of numbers.")
    for index, column in enumerate(columns):
        values = [value for value in column.values if value is not None]
        edges = ticks(min(values), max(values), 12)
        counts = [0] * (len(edges) - 1)
        for value in values:
            counts[min(int((value - edges[0]) / (edges[1] - edges[0])), len(counts) - 1)] += 1
        scale = _Scale([0.0, *counts], _top(index))
        drawing.text(_LEFT, scale.top - 10, f"{column.name}, number of rows", "name")
        _grid(drawing, scale)
        for at, count in enumerate(counts):
            _bar(
                drawing, scale, at, len(counts), count, index, f"{short(edges[at])} to {short(edges[at + 1])}: {count}"
            )
        _labels(drawing, [short(edge) for edge in edges[:-1]], scale.bottom + 18, at_start=True)
    return drawing.render()


def word_chart(title: str, words: Sequence[tuple[str, int]]) -> str:
    """A lying bar for each word, as long as the word is frequent."""
    row, left = 26, 130
    counts = ", ".join(f"{word} {count}" for word, count in words)
    drawing = Drawing(
        WIDTH, _TOP + row * max(len(words), 1) + 16, title=title, description=f"The most frequent words: {counts}."
    )
    drawing.text(20, 28, title, "heading")
    if not words:
        drawing.text(20, _TOP + 16, "Nothing but very common words.")
    for index, (word, count) in enumerate(words):
        y = _TOP + row * index
        length = (WIDTH - left - 70) * count / words[0][1]
        drawing.text(left - 10, y + 15, _cut(word, 16), anchor="end")
        drawing.rect(left, y + 2, max(length, 1), row - 8, "bar0", tip=f"{word}: {count}")
        drawing.text(left + length + 8, y + 15, str(count))
    return drawing.render()


class _Scale:
    """From values to the height of a panel, between two round numbers."""

    def __init__(self, values: Sequence[float], top: float) -> None:
        self.ticks = ticks(min(values), max(values))
        self.top = top
        self.bottom = top + _PLOT

    def y(self, value: float) -> float:
        low, high = self.ticks[0], self.ticks[-1]
        return self.bottom - (value - low) / (high - low) * _PLOT


def _panels(title: str, description: str, count: int) -> Drawing:
    drawing = Drawing(WIDTH, _top(count - 1) + _PLOT + 32, title=title, description=description)
    drawing.text(20, 28, title, "heading")
    return drawing


def _top(index: int) -> int:
    return _TOP + 24 + index * (_PLOT + _GAP)


def _grid(drawing: Drawing, scale: _Scale) -> None:
    for tick in scale.ticks:
        y = scale.y(tick)
        drawing.line((_LEFT, y), (WIDTH - _RIGHT, y), "grid")
        drawing.text(_LEFT - 8, y + 4, short(tick), anchor="end")


def _middle(at: int, count: int) -> float:
    return _LEFT + (WIDTH - _LEFT - _RIGHT) * (at + 0.5) / count


def _bar(drawing: Drawing, scale: _Scale, at: int, count: int, value: float, series: int, tip: str) -> None:
    width = (WIDTH - _LEFT - _RIGHT) / count
    top, bottom = sorted((scale.y(value), scale.y(0)))
    drawing.rect(_middle(at, count) - width * 0.38, top, width * 0.76, bottom - top, f"bar{series}", tip=tip)


def _labels(drawing: Drawing, labels: Sequence[str], y: float, *, at_start: bool = False) -> None:
    """The labels under a panel, as many of them as find room, below each bar's middle or where it starts."""
    room = (WIDTH - _LEFT - _RIGHT) / len(labels)
    longest = min(max(map(len, labels)), 18)
    every = max(1, math.ceil(longest * 8.5 / room))
    for at in range(0, len(labels), every):
        drawing.text(_middle(at, len(labels)) - (room / 2 if at_start else 0), y, _cut(labels[at], 18), anchor="middle")


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
