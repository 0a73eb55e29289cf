"""From the text of a CSV file to columns, each of one kind."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final, TypeVar

from .reading import FileProblem

T = TypeVar("T")

MAX_ROWS: Final = 200_000
MAX_COLUMNS: Final = 100
MISSING: Final = frozenset({"", "-", "na", "n/a", "nan", "none", "null"})
"""What stands for a value that isn't there, in lower case."""
_MOSTLY: Final = 0.9
"""From this share of its values on, a column has a kind, and a value of another kind is a mistake in the file."""

_POINT = re.compile(r"[+-]?(\d+|\d{1,3}(,\d{3})+)(\.\d+)?([eE][+-]?\d{1,3})?", re.ASCII)
_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?", re.ASCII)
_ISO_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)([T ]\d\d:\d\d.*)?", re.ASCII)
_DOTTED_DATE = re.compile(r"(\d\d?)\.(\d\d?)\.(\d{4})", re.ASCII)


@dataclass(frozen=True, slots=True)
class NumberColumn:
    name: str
    values: list[float | None]


@dataclass(frozen=True, slots=True)
class DateColumn:
    name: str
    values: list[date | None]


@dataclass(frozen=True, slots=True)
class TextColumn:
    name: str
    values: list[str | None]


Column = NumberColumn | DateColumn | TextColumn


@dataclass(frozen=True, slots=True)
class Table:
    """``lines`` holds the line of the file on which each row begins, counted from 1. Missing values are None."""

    columns: list[Column]
    lines: list[int]
    delimiter: str

    @property
    def numbers(self) -> list[NumberColumn]:
        return [column for column in self.columns if isinstance(column, NumberColumn)]


def parse_table(text: str) -> Table:
    """The table that a CSV text holds, its first line naming the columns.

    The separator is the one of comma, semicolon, tab and bar that the first line has most of. With another one than
    the comma, numbers may have a decimal comma. Raises `FileProblem`, with the line, for rows of another length
    than the first line's and for a value unlike nearly all others of its column.
    """
    first_line = next(line for line in text.split("\n") if line.strip())
    delimiter = max(",;\t|", key=first_line.count)
    names, rows, lines = _rows(text, delimiter)
    number = parse_number if delimiter == "," else parse_european_number
    columns = [_column(name, [row[index].strip() for row in rows], lines, number) for index, name in enumerate(names)]
    return Table(columns, lines, delimiter)


def parse_number(text: str) -> float | None:
    """The number of ``-1234.5``, ``1,234.50`` or ``2e-3``; None for anything else, and beyond a googol."""
    if not _POINT.fullmatch(text):
        return None
    value = float(text.replace(",", ""))
    return value if abs(value) < 1e100 else None


def parse_european_number(text: str) -> float | None:
    """As `parse_number`, and the number of ``1234,5`` or ``1.234,50`` where that can't be read as one."""
    if "," not in text:
        return parse_number(text)
    return parse_number(text.replace(".", "").replace(",", ".")) if _COMMA.fullmatch(text) else None


def parse_date(text: str) -> date | None:
    """The day of ``2025-03-31`` (a time may follow) or ``31.3.2025``; None for anything else."""
    if match := _ISO_DATE.fullmatch(text):
        year, month, day = match.group(1, 2, 3)
    elif match := _DOTTED_DATE.fullmatch(text):
        day, month, year = match.group(1, 2, 3)
    else:
        return None
    try:
        return date(int(year), int(month), int(day))
    except ValueError:
        return None


def _rows(text: str, delimiter: str) -> tuple[list[str], list[list[str]], list[int]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    names: list[str] = []
    rows: list[list[str]] = []
    lines: list[int] = []
    begins = 1
    try:
        for row in reader:
            if not any(value.strip() for value in row):
                pass  # a blank line, or one of separators only, as spreadsheets leave them at the end
            elif not names:
                names = _names(row)
            elif len(row) != len(names):
                raise FileProblem(
                    f"Line {begins} has {len(row)} values, but the first line names {len(names)} columns."
                )
            elif len(rows) == MAX_ROWS:
                raise FileProblem(f"The file has more than {MAX_ROWS:,} rows.")
            else:
                rows.append(row)
                lines.append(begins)
            begins = reader.line_num + 1
    except csv.Error as error:
        raise FileProblem(f"Line {begins} can't be read as CSV: {error}.") from error
    if not rows:
        raise FileProblem("The file has a line that names the columns, but no rows below it.")
    return names, rows, lines


def _names(row: list[str]) -> list[str]:
    if len(row) > MAX_COLUMNS:
        raise FileProblem(f"The file has {len(row)} columns; at most {MAX_COLUMNS} are read.")
    if all(parse_number(value.strip()) is not None for value in row):
        raise FileProblem("The first line holds numbers only; it should name the columns.")
    names = [name.strip() or f"column {index}" for index, name in enumerate(row, 1)]
    seen: Counter[str] = Counter()
    for index, name in enumerate(names):
        seen[name] += 1
        if seen[name] > 1:
            names[index] = f"{name} ({seen[name]})"
    return names


def _column(name: str, texts: list[str], lines: Sequence[int], number: Callable[[str], float | None]) -> Column:
    texts = ["" if text.lower() in MISSING else text for text in texts]
    if (numbers := _parsed(name, texts, lines, number, "a number")) is not None:
        return NumberColumn(name, numbers)
    if (dates := _parsed(name, texts, lines, parse_date, "a date")) is not None:
        return DateColumn(name, dates)
    return TextColumn(name, [text or None for text in texts])


def _parsed(
    name: str, texts: list[str], lines: Sequence[int], parse: Callable[[str], T | None], kind: str
) -> list[T | None] | None:
    """The values of a column that is of this kind, or None if it isn't."""
    values = [parse(text) if text else None for text in texts]
    wrong = [index for index, value in enumerate(values) if value is None and texts[index]]
    right = sum(value is not None for value in values)
    if not right or right < _MOSTLY * (right + len(wrong)):
        return None
    if wrong:
        shown = texts[wrong[0]]
        shown = shown if len(shown) <= 40 else f"{shown[:39]}…"
        raise FileProblem(
            f"Line {lines[wrong[0]]}, column “{name}”: “{shown}” is not {kind}, unlike {right:,} other values of the "
            f"column. Correct it, or leave it empty."
        )
    return values
