from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from django_jobkit.jobs import JobStatus, State, Status, codec, json_field
from django_jobkit.web.job_page import (
    Field,
    Timeline,
    error_text,
    other_fields,
    raw_record,
    timeline_of,
)


@dataclass(kw_only=True)
class ComicStatus(JobStatus):
    pages: int = json_field(0)
    cover: str = json_field("", omit="never")
    printed_at: datetime | None = json_field(None)
    tags: list[str] = json_field([])


class TestOtherFields:
    def test_the_sites_own_fields_are_shown_as_they_are_stored(self):
        moment = datetime(2026, 8, 31, tzinfo=UTC)
        status = ComicStatus(
            job_id="x", title="t", pages=3, printed_at=moment, tags=["a", "<b>"], result={"n": [1, None]}
        )
        assert other_fields(status) == [
            Field("result", '{"n":[1,null]}', own=True),
            Field("pages", "3", own=True),
            Field("cover", "", own=True),
            Field("printed_at", "", moment, own=True),
            Field("tags", '["a","<b>"]', own=True),
        ]

    def test_members_that_the_class_does_not_know_are_shown_too(self):
        status = codec.decode(
            b'{"job_id":"x","outputs":["a"],"huge":1e999,"flag":true,"nothing":null,"text":"t"}', Status
        )
        assert other_fields(status) == [
            Field("outputs", '["a"]'),
            Field("huge", "1e999"),
            Field("flag", "true"),
            Field("nothing", "null"),
            Field("text", "t"),
        ]

    def test_a_long_value_is_cut(self):
        [field] = other_fields(JobStatus(result="x" * 10_000))
        assert len(field.text) == 2_000
        assert field.text.endswith("…")

    def test_deep_nesting_is_no_problem(self):
        status = codec.decode(b'{"deep":' + b"[" * 9_000 + b"]" * 9_000 + b"}", JobStatus)
        assert other_fields(status)[0].text.startswith("[[[")


class TestRawRecord:
    @pytest.mark.parametrize(
        "document",
        [
            "{}",
            "[]",
            '{"a":1}',
            '{"a": {}, "b": [], "c": [1, {"d": [[], {}]}]}',
            '{"text":"a { b } [ c ] , : \\" \\\\","n":-1.50e+10,"big":123456789012345678901234567890,"x":null}',
            '{"月":"次"}',
        ],
    )
    def test_it_is_the_same_json_with_line_breaks(self, document):
        assert json.loads(raw_record(document.encode())) == json.loads(document)

    def test_it_is_indented_and_its_numbers_stay_as_they_were_spelt(self):
        assert raw_record(b' {"a":[1.50,{}],"b":{"c":1e999}} ') == (
            '{\n  "a": [\n    1.50,\n    {}\n  ],\n  "b": {\n    "c": 1e999\n  }\n}'
        )

    def test_characters_that_hide_others_are_escaped(self):
        shown = raw_record('{"a":"x\u202ey\u2028\x7f\x85"}'.encode())
        assert shown == '{\n  "a": "x\\u202ey\\u2028\\u007f\\u0085"\n}'
        assert json.loads(shown) == {"a": "x\u202ey\u2028\x7f\x85"}

    @pytest.mark.parametrize(
        "data", [b'{"a":"' + b"x" * 500_000 + b'"}', b"[" * 5_000 + b"]" * 5_000, b"[" + b"1," * 200_000 + b"1]"]
    )
    def test_a_long_or_deep_one_is_cut(self, data):
        assert len(raw_record(data)) <= 400_000


QUEUED = datetime(2026, 8, 31, 8, tzinfo=UTC)
STARTED, FINISHED, NOW = (QUEUED + timedelta(seconds=seconds) for seconds in (3, 44, 104))


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (Status(queued_at=QUEUED), Timeline()),
        (JobStatus(queued_at=QUEUED), Timeline()),
        (JobStatus(state=State.RUNNING, queued_at=QUEUED, started_at=STARTED), Timeline("3 s", "", "1 min 41 s")),
        (JobStatus(state=State.RUNNING, started_at=STARTED), Timeline("", "", "1 min 41 s")),
        (JobStatus(state=State.FAILED, queued_at=QUEUED, started_at=STARTED), Timeline("3 s", "", "")),
        (
            JobStatus(state=State.SUCCEEDED, queued_at=QUEUED, started_at=STARTED, finished_at=FINISHED),
            Timeline("3 s", "41 s", ""),
        ),
        (JobStatus(finished_at=FINISHED), Timeline()),
        (JobStatus(queued_at=FINISHED, started_at=QUEUED), Timeline("0 s", "", "")),  # clocks that differ
    ],
)
def test_the_timeline_says_how_long_each_step_took(status, expected):
    assert timeline_of(status, NOW) == expected


@pytest.mark.parametrize(
    ("text", "gist", "long"),
    [
        ("", "", False),
        ("OSError: disk full", "OSError: disk full", False),
        ("OSError: disk full\n" + "a\n" * 6 + "a", "OSError: disk full", False),
        ("OSError: disk full\n" + "a\n" * 7 + "a", "OSError: disk full", True),
        ("x" * 600, "x" * 199 + "…", False),
        ("x" * 601, "x" * 199 + "…", True),
        ("\n\n  first\nsecond", "first", False),
        ("Traceback (most recent call last):\n  File x\nOSError: disk full\n", "OSError: disk full", False),
    ],
)
def test_a_long_error_is_folded_under_the_line_that_says_what_is_wrong(text, gist, long):
    error = error_text(text)
    assert (error.text, error.gist, error.long) == (text, gist, long)
