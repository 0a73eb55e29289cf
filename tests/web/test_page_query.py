from __future__ import annotations

import pytest
from django.http import QueryDict

from django_jobkit.web.page_query import NotANumber, nearby, read_page, with_page


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", (1, 20)),
        ("page=&per_page=", (1, 20)),  # as an empty form field sends them
        ("page=3&per_page=50", (3, 50)),
        ("page=%203%20&per_page=%2B50", (3, 50)),
        ("page=0", (0, 20)),  # paging shows the first page for what is below it
        ("page=-1", (-1, 20)),
        ("page=007", (7, 20)),
        ("page=1000000000", (1_000_000_000, 20)),
        ("page=" + "9" * 5000, (10**18, 20)),  # past what int() reads
        ("page=-" + "9" * 5000, (-(10**18), 20)),
        ("page=" + "0" * 5000 + "2", (2, 20)),
        ("page=2&page=5", (5, 20)),
        ("per_page=100000", (1, 200)),
        ("per_page=201", (1, 200)),
        ("per_page=200", (1, 200)),
        ("per_page=1", (1, 1)),
        ("per_page=0", (1, 20)),  # nobody may ask for everything on one page
        ("per_page=-5", (1, 20)),
    ],
)
@pytest.mark.parametrize("lenient", [True, False])
def test_numbers_are_read_the_same_for_people_and_machines(query, expected, lenient):
    assert read_page(QueryDict(query), 20, 200, lenient=lenient) == expected


def test_a_long_line_that_is_no_number_takes_no_long_time_to_refuse():
    with pytest.raises(NotANumber):  # with a pattern that backtracks, an hour
        read_page(QueryDict("page=" + "0" * 1_000_000 + "x"), 20, 200, lenient=False)


@pytest.mark.parametrize("text", ["abc", "1e9", "1.5", "0x1", "1_000", "１", "٣", "--1", "1 2", "%00", "1%0A", "NaN"])
def test_what_is_no_whole_number_counts_as_absent_for_people_and_is_refused_for_machines(text):
    assert read_page(QueryDict(f"page={text}&per_page=7"), 20, 200, lenient=True) == (1, 7)
    assert read_page(QueryDict(f"page=7&per_page={text}"), 20, 200, lenient=True) == (7, 20)
    for query, name in [(f"page={text}", "page"), (f"per_page={text}", "per_page")]:
        with pytest.raises(NotANumber, match=f"^{name}$"):
            read_page(QueryDict(query), 20, 200, lenient=False)


def test_a_default_above_the_maximum_is_cut_to_it():
    assert read_page(QueryDict(""), 500, 200, lenient=True) == (1, 200)


@pytest.mark.parametrize(
    ("page", "total_pages", "expected"),
    [
        (1, 0, []),
        (1, 1, [1]),
        (1, 3, [1, 2, 3]),
        (3, 3, [1, 2, 3]),
        (1, 9, [1, 2, 3, 4, 5]),
        (2, 9, [1, 2, 3, 4, 5]),
        (3, 9, [1, 2, 3, 4, 5]),
        (4, 9, [2, 3, 4, 5, 6]),
        (7, 9, [5, 6, 7, 8, 9]),
        (8, 9, [5, 6, 7, 8, 9]),
        (9, 9, [5, 6, 7, 8, 9]),
        (10**9, 2 * 10**9, list(range(10**9 - 2, 10**9 + 3))),
    ],
)
def test_nearby_pages_are_a_window_that_stays_inside_the_range(page, total_pages, expected):
    assert nearby(page, total_pages) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "?page=7"),
        ("page=3", "?page=7"),
        ("page=3&page=4", "?page=7"),
        ("state=failed&state=queued&page=3&q=a+b", "?state=failed&state=queued&page=7&q=a+b"),
        ("q=%3Cb%3E%26%22&empty=", "?q=%3Cb%3E%26%22&empty=&page=7"),
        ("q=%E6%9C%88", "?q=%E6%9C%88&page=7"),
    ],
)
def test_links_keep_the_other_parameters_and_replace_the_page(query, expected):
    assert with_page(QueryDict(query), 7) == expected


def test_without_a_query_a_link_is_just_the_page():
    assert with_page(None, 7) == "?page=7"
