"""Rows put together: by month (or year) where the table has dates, by a text column elsewhere."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Final, Literal

from .measures import mean, rounded
from .table import DateColumn, Table, TextColumn

MOST_GROUPS: Final = 25
MOST_MONTHS: Final = 60


@dataclass(frozen=True, slots=True)
class Grouping:
    """``values[column][group]`` are the numbers of a group, in the order of ``labels``.

    ``shown`` is what tells more of a group: its sum where days have many rows (sales), else its mean (temperatures).
    """

    by: str
    kind: Literal["time", "text"]
    labels: list[str]
    rows: list[int]
    values: dict[str, list[list[float]]]
    shown: Literal["sum", "mean"]

    def as_json(self) -> dict[str, Any]:
        return {
            "by": self.by,
            "shown": self.shown,
            "groups": [
                {
                    "group": label,
                    "rows": self.rows[index],
                    "columns": {name: _totals(groups[index]) for name, groups in self.values.items() if groups[index]},
                }
                for index, label in enumerate(self.labels)
            ],
        }


def group(table: Table) -> Grouping | None:
    """The rows by month of the first date column (by year past 60 months), or else by the text column with the
    fewest values, from 2 to 25. None where there is neither, or no number to put together."""
    if not table.numbers:
        return None
    for column in table.columns:
        if isinstance(column, DateColumn):
            days = [day for day in column.values if day is not None]
            shown: Literal["sum", "mean"] = "sum" if len(set(days)) < 0.9 * len(days) else "mean"
            for unit, length in (("month", 7), ("year", 4)):
                keys = [None if day is None else day.isoformat()[:length] for day in column.values]
                if unit == "year" or len(set(keys)) <= MOST_MONTHS:
                    return _grouped(table, keys, f"{unit} of {column.name}", "time", shown)
    texts = [column for column in table.columns if isinstance(column, TextColumn)]
    choices = {column.name: len(set(column.values) - {None}) for column in texts}
    fitting = [column for column in texts if 2 <= choices[column.name] <= MOST_GROUPS]
    if not fitting:
        return None
    chosen = min(fitting, key=lambda column: choices[column.name])
    return _grouped(table, chosen.values, chosen.name, "text", "mean")


def _grouped(
    table: Table, keys: list[str | None], by: str, kind: Literal["time", "text"], shown: Literal["sum", "mean"]
) -> Grouping:
    members: dict[str, list[int]] = defaultdict(list)
    for row, key in enumerate(keys):
        if key is not None:
            members[key].append(row)
    labels = sorted(members)
    values = {
        column.name: [
            [value for row in members[label] if (value := column.values[row]) is not None] for label in labels
        ]
        for column in table.numbers
    }
    return Grouping(by, kind, labels, [len(members[label]) for label in labels], values, shown)


def _totals(values: list[float]) -> dict[str, float]:
    return {
        "count": len(values),
        "sum": rounded(sum(values)),
        "mean": rounded(mean(values)),
        "min": min(values),
        "max": max(values),
    }
