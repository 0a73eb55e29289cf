"""Which jobs a query asks for, as people and as programs write it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.http import QueryDict
from django.utils import timezone

from django_jobkit.web.history_filters import (
    FilterForm,
    InvalidFilter,
    other_parameters,
    read_filters,
    with_state,
    without_filters,
)


def at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)


@pytest.mark.parametrize(
    ("query", "filters"),
    [
        ("", {}),
        ("state=&command=&q=+&prefix=&since=&until=&order=", {}),
        ("page=2&per_page=5&theme=dark", {}),
        ("state=running", {"state": "running"}),
        ("command=+draw+", {"command": "draw"}),
        ("q=Sales%20by", {"text": "Sales by"}),
        ("prefix=job-2026", {"prefix": "job-2026"}),
        ("order=newest", {}),
        ("order=oldest", {"newest_first": False}),
        ("since=2026-08-31", {"since": at(2026, 8, 30, 15)}),  # midnight in Tokyo
        ("until=2026-08-31", {"until": at(2026, 8, 31, 15)}),  # the day is included
        ("since=2026-08-31&until=2026-08-31", {"since": at(2026, 8, 30, 15), "until": at(2026, 8, 31, 15)}),
        ("since=2026-08-31T10:20:30Z", {"since": at(2026, 8, 31, 10, 20, 30)}),
        ("since=2026-08-31T10:20:30%2B02:00", {"since": at(2026, 8, 31, 8, 20, 30)}),
        ("since=2026-08-31T10:20:30+02:00", {"since": at(2026, 8, 31, 8, 20, 30)}),  # unescaped, it is a space
        ("until=2026-08-31T10:20", {"until": at(2026, 8, 31, 1, 20)}),
        ("until=2026-08-31+10:20", {"until": at(2026, 8, 31, 1, 20)}),
        ("q=a&q=b", {"text": "b"}),
        ("q=a%00%E2%80%AEb", {"text": "ab"}),
    ],
)
def test_what_is_asked_for(query, filters):
    with timezone.override("Asia/Tokyo"):
        assert read_filters(QueryDict(query)) == filters


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("state=paused", "state"),
        ("state=RUNNING", "state"),
        ("order=up", "order"),
        ("since=yesterday", "since"),
        ("since=2026-02-30", "since"),
        ("since=31.08.2026", "since"),
        ("since=2026-8-1", "since"),
        ("until=0001-01-01", "until"),
        ("until=0999-12-31", "until"),
        ("until=9999-12-31", "until"),
        ("until=2026-08-31T25:00", "until"),
        ("since=２０２６-08-31", "since"),
        ("since=2026-09-01&until=2026-08-31", "until"),
        ("q=" + "x" * 201, "q"),
        ("command=" + "x" * 201, "command"),
        ("prefix=" + "x" * 129, "prefix"),
    ],
)
def test_what_makes_no_sense_is_named_to_programs_and_left_out_for_people(query, name):
    with pytest.raises(InvalidFilter) as caught:
        read_filters(QueryDict(query))
    assert caught.value.name == name
    assert caught.value.message
    form = FilterForm(QueryDict(query + "&command=draw" * ("command" not in query)))
    assert form.filters().get("command", "draw") == "draw"
    assert name in form.errors
    assert {"q": "text", "order": "newest_first"}.get(name, name) not in form.filters()


@pytest.mark.parametrize(
    ("query", "active"), [("", False), ("order=oldest", False), ("q=a", True), ("state=paused", False)]
)
def test_an_order_alone_leaves_no_job_out(query, active):
    assert FilterForm(QueryDict(query)).is_active is active


def test_links_keep_what_else_the_query_says_but_for_the_page():
    query = QueryDict("page=3&per_page=5&q=a+b&theme=dark&state=running&order=")
    assert without_filters(query) == "?per_page=5&theme=dark"
    assert with_state(query, "failed") == "?per_page=5&theme=dark&q=a+b&state=failed"
    assert other_parameters(query) == [("per_page", "5"), ("theme", "dark")]
