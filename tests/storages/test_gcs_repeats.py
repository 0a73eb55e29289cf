"""Google Cloud Storage takes about one write per second to one object: what says nothing new isn't sent."""

from __future__ import annotations

import pytest

from django_jobkit.jobs import JobStatus, Recorder, State, StatusStore
from tests.jobs.fakes import Clock
from tests.storages.providers import google
from tests.storages.test_gcs import environment  # noqa: F401  (a fixture for every test)

pytestmark = [pytest.mark.component, pytest.mark.slow]


def test_a_record_that_only_repeats_costs_no_write(gcs_proxy, gcs_bucket):
    clock = Clock()  # all within one second
    recorder = Recorder(StatusStore(google(gcs_proxy.url, gcs_bucket), clock=clock))
    for _ in range(5):
        recorder.record("a", JobStatus(state=State.RUNNING))
    recorder.record("a", JobStatus(state=State.FAILED))
    assert gcs_proxy.kinds().count("write") == 2
    assert gcs_proxy.kinds().count("read") == 6
