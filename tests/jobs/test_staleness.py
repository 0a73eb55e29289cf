from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from django_jobkit.jobs import JobStatus, Status
from django_jobkit.jobs.staleness import staleness

NOW = datetime(2026, 8, 31, 12, tzinfo=UTC)
AGO = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (JobStatus(state="running", lease_expires_at=NOW + AGO), ""),
        (JobStatus(state="running", lease_expires_at=NOW), "lost"),
        (JobStatus(state="running", lease_expires_at=NOW - AGO), "lost"),
        (JobStatus(state="running", updated_at=NOW - timedelta(days=9)), ""),  # no lease: nobody can tell
        (Status(state="running", updated_at=NOW - timedelta(days=9)), ""),
        (JobStatus(state="failed", lease_expires_at=NOW - AGO), ""),
        (JobStatus(state="succeeded", updated_at=NOW - timedelta(days=9)), ""),
        (JobStatus(state="queued", updated_at=NOW - timedelta(seconds=600)), ""),
        (JobStatus(state="queued", updated_at=NOW - timedelta(seconds=601)), "waiting"),
        (JobStatus(state="queued", queued_at=NOW - timedelta(seconds=601)), "waiting"),
        (JobStatus(state="queued", queued_at=NOW - timedelta(days=9), updated_at=NOW), ""),  # submitted again
        (JobStatus(state="queued"), ""),
        (JobStatus(state="paused", updated_at=NOW - timedelta(days=9)), ""),
    ],
)
def test_what_is_doubtful_about_a_job(status, expected):
    assert staleness(status, NOW, queued_after=600) == expected


def test_without_a_limit_no_queued_job_is_doubtful():
    assert staleness(JobStatus(state="queued", updated_at=NOW - timedelta(days=9)), NOW, queued_after=None) == ""
