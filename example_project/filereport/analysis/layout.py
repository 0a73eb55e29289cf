"""The summary as plain text, for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def columns(rows: Sequence[Sequence[str]], *, right: Iterable[int] = ()) -> str:
    """Rows of texts set in columns, two blanks between them; those in ``right`` are set to the right."""
    to_right = set(right)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if index in to_right else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def heading(text: str, under: str = "-") -> str:
    return f"{text}\n{under * len(text)}\n"


def number(value: float) -> str:
    """Four digits that matter; all of a whole number's up to a billion."""
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.4g}"


def table_text(summary: dict[str, Any]) -> str:
    """The summary of a table, as `pipeline` makes it."""
    parts = [heading(summary["file"], "="), f"{summary['rows']:,} rows, {len(summary['columns'])} columns.\n"]
    measured = [column for column in summary["columns"] if column["kind"] == "number"]
    if measured:
        head = ["column", "values", "missing", "min", "median", "mean", "95 % interval", "max", "outliers"]
        body = [
            [
                column["name"],
                f"{column['count']:,}",
                str(column["missing"]),
                *(number(column[key]) for key in ("min", "median", "mean")),
                " to ".join(map(number, column["mean_95"])),
                number(column["max"]),
                str(column["outlier_count"]),
            ]
            for column in measured
        ]
        parts += [heading("Numbers"), columns([head, *body], right=range(1, 9)), ""]
    for column in measured:
        if column["outliers"]:
            shown = ", ".join(f"{number(found['value'])} (line {found['line']})" for found in column["outliers"])
            more = " …" if column["outlier_count"] > len(column["outliers"]) else ""
            parts.append(f"Outliers of {column['name']}: {shown}{more}\n")
    if others := [_other(column) for column in summary["columns"] if column["kind"] != "number"]:
        parts += [heading("Other columns"), "\n".join(others), ""]
    if grouping := summary["grouping"]:
        names, shown = [column["name"] for column in measured], grouping["shown"]
        rows = [["", "rows", *names]]
        for group in grouping["groups"]:
            cells = (group["columns"].get(name) for name in names)
            rows.append([group["group"], str(group["rows"]), *(number(cell[shown]) if cell else "" for cell in cells)])
        parts += [heading(f"The {shown} by {grouping['by']}"), columns(rows, right=range(1, len(rows[0]))), ""]
    return "\n".join(parts)


def _other(column: dict[str, Any]) -> str:
    if column["kind"] == "date":
        said = f"{column['first']} to {column['last']}"
    else:
        frequent = ", ".join(f"{found['value'][:40]} ({found['count']})" for found in column["most_frequent"][:5])
        said = f"{column['distinct']} different: {frequent}" if column["distinct"] else "empty"
    return f"{column['name']}: {said}; {column['missing']} missing"


def prose_text(summary: dict[str, Any]) -> str:
    """The summary of a text, as `pipeline` makes it."""
    sentences = summary["sentences"]
    low, high = map(number, sentences["mean_words_95"])
    facts = [
        ["Words", f"{summary['words']:,}"],
        ["Different words", f"{summary['different_words']:,}"],
        ["Sentences", f"{sentences['count']:,}"],
        ["Words per sentence", f"{number(sentences['mean_words'])} (95 % interval {low} to {high})"],
        ["Reading time", f"{max(1, round(summary['words'] / 230))} min"],
        ["LIX", f"{summary['lix']:.0f}, {summary['readability']} to read"],
    ]
    if summary["variety"] is not None:
        facts.append(["Variety", f"{summary['variety']:.1f} different words in 100"])
    frequent = columns([[found["word"], str(found["count"])] for found in summary["frequent_words"]] or [["none", ""]])
    longest = "\n\n".join(f"{found['words']} words: {found['sentence']}" for found in sentences["longest"])
    return "\n".join(
        [
            heading(summary["file"], "="),
            columns(facts),
            "",
            heading("Most frequent words"),
            frequent,
            "",
            heading("Longest sentences"),
            longest,
            "",
        ]
    )
