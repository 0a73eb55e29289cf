from datetime import date

import pytest
from filereport.analysis.measures import confidence, describe, deviation, fences, mean, quartiles
from filereport.analysis.table import DateColumn, NumberColumn, TextColumn


@pytest.mark.parametrize(
    ("values", "expected"),
    [([1, 2, 3, 4, 5], (2, 3, 4)), ([4, 1, 3, 2], (1.75, 2.5, 3.25)), ([7], (7, 7, 7)), ([1, 3], (1.5, 2, 2.5))],
)
def test_quartiles(values, expected):
    assert quartiles(values) == expected


@pytest.mark.parametrize(("values", "expected"), [([2, 4, 4, 4, 5, 5, 7, 9], 32 / 7), ([3, 3], 0), ([5], 0)])
def test_the_standard_deviation_is_that_of_a_sample(values, expected):
    assert deviation(values) ** 2 == pytest.approx(expected)


def test_fences_lie_one_and_a_half_middle_halves_beyond_it():
    assert fences([1, 2, 3, 4, 5]) == (-1, 7)


def test_a_confidence_interval_holds_the_mean_and_narrows_with_more_values():
    few, many = [1.0, 5.0, 9.0] * 5, [1.0, 5.0, 9.0] * 100
    low, high = confidence(few, mean, resamples=500)
    narrow_low, narrow_high = confidence(many, mean, resamples=500)

    assert low < narrow_low < 5 < narrow_high < high
    assert confidence(few, mean, resamples=500) == (low, high)


def test_a_confidence_interval_of_equal_values_is_that_value():
    assert confidence([4.0], mean, resamples=100) == (4, 4)


def test_numbers_are_described_with_the_lines_of_their_outliers_the_farthest_first():
    column = NumberColumn("size", [1.0, 2.0, None, 3.0, 2.0, 30.0, 2.0, 90.0, 2.0, 2.0, 2.0])

    described = describe(column, range(2, 13), resamples=100)

    assert described["count"] == 10
    assert described["missing"] == 1
    assert (described["min"], described["median"], described["max"]) == (1, 2, 90)
    assert described["mean"] == 13.6
    assert described["outlier_count"] == 2
    assert described["outliers"] == [{"line": 9, "value": 90}, {"line": 7, "value": 30}]


def test_dates_and_texts_are_described():
    days = DateColumn("day", [date(2025, 3, 1), None, date(2024, 2, 1)])
    shops = TextColumn("shop", ["b", "a", "b", None])

    assert describe(days, [], resamples=1) == {
        "name": "day",
        "kind": "date",
        "count": 2,
        "missing": 1,
        "first": "2024-02-01",
        "last": "2025-03-01",
    }
    assert describe(shops, [], resamples=1) == {
        "name": "shop",
        "kind": "text",
        "count": 3,
        "missing": 1,
        "distinct": 2,
        "most_frequent": [{"value": "b", "count": 2}, {"value": "a", "count": 1}],
    }
