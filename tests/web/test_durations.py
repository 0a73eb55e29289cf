from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from django_jobkit.jobs import JobStatus, State
from django_jobkit.web.durations import duration_of

START = datetime(2026, 8, 31, 8, 0, tzinfo=UTC)
NOW = START + timedelta(hours=2)


@pytest.mark.parametrize(
    ("state", "finished", "seconds", "goes_on"),
    [
        (State.SUCCEEDED, 41, 41, False),
        (State.FAILED, 0.5, 0.5, False),
        (State.RUNNING, None, 7200, True),
        (State.RUNNING, 41, 7200, True),  # the end is that of the attempt before
    ],
)
def test_from_the_start_to_the_end_or_to_now(state, finished, seconds, goes_on):
    end = None if finished is None else START + timedelta(seconds=finished)
    found = duration_of(JobStatus(state=state, started_at=START, finished_at=end), NOW)
    assert (found.seconds, found.goes_on) == (seconds, goes_on)
    assert found.machine == f"PT{seconds:.0f}S"


@pytest.mark.parametrize(
    "status",
    [
        JobStatus(state=State.SUCCEEDED),
        JobStatus(state=State.RUNNING),
        JobStatus(state=State.QUEUED, started_at=START),
        JobStatus(state=State.FAILED, started_at=START),
        JobStatus(state=State.FAILED, started_at=START, finished_at=START - timedelta(seconds=1)),
        JobStatus(state="paused", started_at=START, finished_at=NOW),
        {"state": "succeeded", "started_at": "yesterday", "finished_at": START},
        {"state": "running", "started_at": datetime(2026, 8, 31)},  # noqa: DTZ001
        None,
    ],
)
def test_none_where_the_record_does_not_tell_or_not_sensibly(status):
    assert duration_of(status, NOW) is None


def test_a_row_that_is_a_dict_has_one_too():
    assert duration_of({"state": "running", "started_at": START}, NOW).text == "2 h"
