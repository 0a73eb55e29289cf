"""The steps from a file to its report."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final

from . import charts, layout, prose
from .groups import group
from .measures import describe, rounded
from .reading import FileProblem, decode
from .table import parse_table

Progress = Callable[[int, int, str], object]
"""``progress(current, total, message)``: called before each step."""

KINDS: Final = {".csv": "table", ".tsv": "table", ".txt": "text", ".md": "text"}
"""What a file is taken for, by the ending of its name."""


@dataclass(frozen=True, slots=True)
class Report:
    """The results: ``files`` by name, and a one-line ``headline``."""

    headline: str
    files: dict[str, bytes]


def kind_of(file_name: str) -> str:
    """``table`` or ``text``. Raises `FileProblem` for a name with another ending."""
    try:
        return KINDS[PurePath(file_name).suffix.lower()]
    except KeyError:
        raise FileProblem(f"“{file_name}” doesn't end in {', '.join(KINDS)}.") from None


def analyse(file_name: str, data: bytes, *, resamples: int = 10_000, progress: Progress) -> Report:
    """The report on a file. Raises `FileProblem` if the file is at fault.

    ``resamples`` is how often the confidence intervals draw from the data; it decides how long this takes.
    """
    steps = _table_report if kind_of(file_name) == "table" else _prose_report
    return steps(file_name, data, resamples, progress)


def _table_report(file_name: str, data: bytes, resamples: int, progress: Progress) -> Report:
    progress(0, 0, "Reading the file")
    table = parse_table(decode(data))
    total = len(table.columns) + 3
    described = []
    for done, column in enumerate(table.columns, 1):
        progress(done, total, f"Measuring {column.name}")
        described.append(describe(column, table.lines, resamples=resamples))
    progress(total - 2, total, "Putting rows together")
    grouping = group(table)
    summary = {
        "file": file_name,
        "rows": len(table.lines),
        "delimiter": table.delimiter,
        "columns": described,
        "grouping": grouping and grouping.as_json(),
    }
    progress(total - 1, total, "Drawing the chart")
    if grouping is None:
        chart = charts.histogram(file_name, table.numbers)
    elif grouping.kind == "time":
        chart = charts.time_chart(file_name, grouping)
    else:
        chart = charts.group_chart(file_name, grouping)
    missing = sum(column["missing"] for column in described)
    headline = f"{len(table.lines):,} rows, {len(table.columns)} columns, {missing:,} missing values"
    progress(total, total, "Writing the results")
    return Report(headline, _files(summary, layout.table_text(summary), chart))


def _prose_report(file_name: str, data: bytes, resamples: int, progress: Progress) -> Report:
    total = 5
    progress(0, total, "Reading the file")
    text = decode(data)
    progress(1, total, "Counting words")
    words = prose.require_words(text)
    frequent = prose.frequent_words(words)
    progress(2, total, "Measuring sentences")
    sentences = prose.sentences_of(text)
    sentence_measures = prose.describe_sentences(sentences, resamples=resamples)
    lix, readability = prose.readability(words, len(sentences))
    progress(3, total, "Measuring variety")
    variety = prose.variety(words, resamples=resamples)
    summary = {
        "file": file_name,
        "words": len(words),
        "different_words": len(set(words)),
        "lix": rounded(lix),
        "readability": readability,
        "variety": variety and rounded(variety),
        "sentences": sentence_measures,
        "frequent_words": [{"word": word, "count": count} for word, count in frequent],
    }
    progress(4, total, "Drawing the chart")
    chart = charts.word_chart(f"Most frequent words of {file_name}", frequent)
    headline = f"{len(words):,} words in {len(sentences):,} sentences, {readability} to read"
    progress(total, total, "Writing the results")
    return Report(headline, _files(summary, layout.prose_text(summary), chart))


def _files(summary: dict[str, Any], text: str, chart: str) -> dict[str, bytes]:
    return {
        "chart.svg": chart.encode(),
        "summary.txt": text.encode(),
        "summary.json": json.dumps(summary, ensure_ascii=False, indent=2, allow_nan=False).encode() + b"\n",
    }
