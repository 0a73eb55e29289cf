from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_jobkit.exceptions import EmptyJobID, InvalidJobID, JobIDTooLong, MalformedJobID, NoTimestamp
from django_jobkit.jobs import ids
from tests.vectors import cases, text

ERRORS = {"empty": EmptyJobID, "too_long": JobIDTooLong, "invalid_format": MalformedJobID}


@pytest.mark.parametrize(("given_", "expected"), cases("jobid_validate.json"))
def test_validate_agrees_with_the_go_reference(given_, expected):
    job_id = text(given_, "id")

    assert ids.is_valid(job_id) is expected["valid"]
    if expected["valid"]:
        ids.validate(job_id)
    else:
        with pytest.raises(InvalidJobID) as caught:
            ids.validate(job_id)
        assert type(caught.value) is ERRORS[expected["error"]]


@pytest.mark.parametrize(("given_", "expected"), cases("jobid_sanitize.json"))
def test_sanitize_agrees_with_the_go_reference(given_, expected):
    job_id = text(given_, "id")

    if "id" in expected:
        assert ids.sanitize(job_id) == expected["id"]
    else:
        with pytest.raises(InvalidJobID) as caught:
            ids.sanitize(job_id)
        assert type(caught.value) is ERRORS[expected["error"]]


@pytest.mark.parametrize(("given_", "expected"), cases("jobid_created_at.json"))
def test_the_creation_time_agrees_with_the_go_reference(given_, expected):
    job_id = text(given_, "id")

    assert ids.sort_key(job_id) == expected["sort_key"]
    if "created_at" in expected:
        assert ids.created_at(job_id) == datetime.fromisoformat(expected["created_at"])
        assert ids.created_at(job_id).utcoffset().total_seconds() == 0
    else:
        with pytest.raises(NoTimestamp):
            ids.created_at(job_id)


@pytest.mark.parametrize(("given_", "expected"), cases("jobid_new.json"))
def test_new_agrees_with_the_go_reference(given_, expected):
    made = ids.new(text(given_, "prefix"), now=datetime.fromisoformat(given_["time"][:19] + "+00:00"))

    assert re.sub(r"[0-9a-f]{12}\Z", "*" * 12, made) == expected["id"]
    assert len(made) == expected["length"]
    assert made.startswith(expected["prefix"] + "-")


def test_new_ids_differ_and_carry_the_present_time():
    before = datetime.now(UTC).replace(microsecond=0)
    first, second = ids.new(), ids.new()

    assert first != second
    assert before <= ids.created_at(first) <= datetime.now(UTC)


@pytest.mark.parametrize(
    ("job_id", "error"),
    [
        ("", EmptyJobID),
        (" \u3000", EmptyJobID),
        ("a" * 129, JobIDTooLong),
        ("ａｂｃ", MalformedJobID),
        ("..", MalformedJobID),
        ("%2e%2e", MalformedJobID),
        ("a\x00", MalformedJobID),
        ("abc\u200f", MalformedJobID),  # right-to-left mark
        (b"abc", MalformedJobID),
        (None, MalformedJobID),
        (7, MalformedJobID),
    ],
)
def test_bad_ids_are_refused_with_the_error_that_says_why(job_id, error):
    with pytest.raises(error):
        ids.sanitize(job_id)


def test_the_message_shows_a_hostile_id_escaped():
    with pytest.raises(MalformedJobID, match=re.escape(r"'a\x1b[31m\u202e'")):
        ids.validate("a\x1b[31m\u202e")


@given(st.text())
def test_any_text_sanitizes_to_a_valid_id_or_is_refused(value):
    try:
        clean = ids.sanitize(value)
    except InvalidJobID:
        return
    ids.validate(clean)
    assert ids.sanitize(clean) == clean


@given(st.text())
def test_any_prefix_makes_a_valid_id_whose_time_reads_back(prefix):
    now = datetime(2026, 8, 31, 1, 2, 3, tzinfo=UTC)
    made = ids.new(prefix, now=now)
    ids.validate(made)
    # A prefix may itself look like an older time; then that one is read, as in Go.
    assert ids.sort_key(made) == "20260831010203" or re.search(r"[0-9]{8}", prefix)


@given(st.text(alphabet=st.sampled_from("0123456789-_abk"), max_size=60))
def test_the_sort_key_is_empty_or_the_creation_time(value):
    key = ids.sort_key(value)
    if key:
        assert ids.created_at(value).strftime("%Y%m%d%H%M%S") == key
    else:
        with pytest.raises(NoTimestamp):
            ids.created_at(value)
