from datetime import date

import pytest
from filereport.analysis.reading import FileProblem
from filereport.analysis.table import (
    MAX_ROWS,
    DateColumn,
    NumberColumn,
    TextColumn,
    parse_date,
    parse_european_number,
    parse_number,
    parse_table,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12.0),
        ("-0.5", -0.5),
        ("+3", 3.0),
        ("1,234.50", 1234.5),
        ("2e-3", 0.002),
        ("12,34", None),  # neither thousands nor, in a file with commas between values, a decimal comma
        ("1_000", None),  # a number to Python only
        ("nan", None),
        ("inf", None),
        ("1e400", None),
        ("१२", None),
        ("", None),
        ("12 kg", None),
    ],
)
def test_numbers_as_spreadsheets_write_them(text, value):
    assert parse_number(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("1234,5", 1234.5), ("1.234,50", 1234.5), ("1.5", 1.5), ("-7", -7.0), ("1,234.50", None), ("1,2,3", None)],
)
def test_numbers_with_a_decimal_comma(text, value):
    assert parse_european_number(text) == value


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2024-02-29", date(2024, 2, 29)),
        ("2025-04-01 06:00", date(2025, 4, 1)),
        ("2025-04-01T06:00:00Z", date(2025, 4, 1)),
        ("31.3.2025", date(2025, 3, 31)),
        ("2023-02-29", None),  # no leap year
        ("03/04/2025", None),  # March or April?
        ("2025", None),
    ],
)
def test_dates_that_can_mean_only_one_day(text, day):
    assert parse_date(text) == day


def test_columns_have_the_kind_of_their_values():
    table = parse_table("day,shop,sold\n2025-01-01,North,3\n2025-01-02,n/a,\n")

    assert table.columns == [
        DateColumn("day", [date(2025, 1, 1), date(2025, 1, 2)]),
        TextColumn("shop", ["North", None]),
        NumberColumn("sold", [3.0, None]),
    ]
    assert table.lines == [2, 3]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_separator_is_found_in_the_first_line(delimiter):
    table = parse_table(f"a{delimiter}b\n1{delimiter}2\n")

    assert table.delimiter == delimiter
    assert table.columns == [NumberColumn("a", [1.0]), NumberColumn("b", [2.0])]


def test_lines_are_those_of_the_file_where_values_span_several_and_blank_ones_are_left_out():
    table = parse_table('\nnote,size\n"two\nlines",1\n\n,,\n"x\u2028y",2\n,\n'.replace(",,", ","))

    assert table.lines == [3, 7]
    assert table.columns[0] == TextColumn("note", ["two\nlines", "x\u2028y"])


def test_columns_without_a_name_and_with_the_same_one_are_told_apart():
    table = parse_table("a,,a\nx,y,z\n")

    assert [column.name for column in table.columns] == ["a", "column 2", "a (2)"]


def test_a_text_in_a_column_of_numbers_is_a_mistake_in_the_file():
    rows = "".join(f"{n}\n" for n in range(2, 37))

    with pytest.raises(FileProblem) as problem:
        parse_table(f"level\n{rows}sensor cleaned\n")
    assert str(problem.value) == (
        "Line 37, column “level”: “sensor cleaned” is not a number, unlike 35 other values of the column. "
        "Correct it, or leave it empty."
    )


def test_a_column_with_many_of_both_is_a_column_of_texts():
    assert parse_table("seat\n1\n2\n3\n4B\n").columns == [TextColumn("seat", ["1", "2", "3", "4B"])]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n1,2,3\n", "Line 3 has 3 values, but the first line names 2 columns."),
        ("a,b\n", "no rows below it"),
        ("1,2\n3,4\n", "The first line holds numbers only; it should name the columns."),
        ('a,b\n1,"2\n', "Line 2 can't be read as CSV"),
        ("a" + ",b" * 100 + "\n", "The file has 101 columns; at most 100 are read."),
        ("a\n" + "1\n" * (MAX_ROWS + 1), "more than 200,000 rows"),
        (f"a\n{'x' * 200_000}\n", "Line 2 can't be read as CSV: field larger"),
    ],
)
def test_what_is_no_table_is_refused_with_its_line(text, words):
    with pytest.raises(FileProblem) as problem:
        parse_table(text)
    assert words in str(problem.value)
