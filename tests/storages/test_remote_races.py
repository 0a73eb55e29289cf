"""Eight processes record over one job in object storage, also while answers get lost on their way."""

from __future__ import annotations

import functools
import itertools

import pytest

from django_jobkit.jobs import JobStatus, Recorder, State, StatusStore
from tests.storages.processes import run_processes
from tests.storages.providers import amazon, google
from tests.storages.proxy import lost, reset, truncated

pytestmark = [pytest.mark.component, pytest.mark.slow]

PROCESSES = 8
RECORDS = {google: 12, amazon: 4}  # moto needs some milliseconds for each request


@pytest.fixture(params=[google, amazon], ids=["gcs", "s3"])
def provider(request, monkeypatch):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "set by the test")
    return request.param


@pytest.fixture
def proxy(provider, request):
    return request.getfixturevalue("gcs_proxy" if provider is google else "s3_proxy")


@pytest.fixture
def bucket(provider, request):
    return request.getfixturevalue("gcs_bucket" if provider is google else "s3_bucket")


@pytest.fixture
def reopen(provider, proxy, bucket):
    return functools.partial(provider, proxy.url, bucket, timeout=60)


def add_attempt(next_, prev) -> None:
    next_.attempts += 1


def add_attempts(reopen, number: int, records: int) -> None:
    recorder = Recorder(StatusStore(reopen()))
    for count in range(records):
        recorder.record("job", JobStatus(state=State.RUNNING, title=f"{number}-{count}"), add_attempt)


def succeed_in_the_middle(reopen, number: int, records: int) -> None:
    recorder = Recorder(StatusStore(reopen()))
    for count in range(records):
        if number == 0 and count == records // 2:
            recorder.record("job", JobStatus(state=State.SUCCEEDED, title="done"))
        elif not recorder.begin("job", JobStatus(state=State.RUNNING, title=str(number)), add_attempt):
            recorder.record("job", JobStatus(state=State.FAILED, error=str(number)))


def everybody(work, reopen, records: int) -> None:
    run_processes(work, [(reopen, number, records) for number in range(PROCESSES)], timeout=240)


def test_no_attempt_is_lost(provider, reopen):
    everybody(add_attempts, reopen, RECORDS[provider])
    assert StatusStore(reopen()).get("job").attempts == PROCESSES * RECORDS[provider]


def test_a_success_is_never_rolled_back(provider, reopen):
    everybody(succeed_in_the_middle, reopen, RECORDS[provider])
    status = StatusStore(reopen()).get("job")
    assert (status.state, status.title) == (State.SUCCEEDED, "done")


def test_no_attempt_is_lost_while_answers_get_lost(provider, proxy, reopen):
    """Every seventh write loses its answer after it was applied, or before, or in the middle of it.

    A write that lost its answer and was built on by others before it could be looked at is counted again: nothing
    stored tells it from one that was never applied. So the count may be high by those, and is never low.
    """
    faults = itertools.cycle([lost(), reset, truncated])
    count = itertools.count(1)
    broken = []

    def now_and_then(handler, request, forward):
        if next(count) % 7:
            handler.answer(forward(request))
        else:
            broken.append(request)
            next(faults)(handler, request, forward)

    proxy.break_next(now_and_then, "write", None)
    everybody(add_attempts, reopen, RECORDS[provider])
    proxy.mend()
    total = PROCESSES * RECORDS[provider]
    assert total <= StatusStore(reopen()).get("job").attempts <= total + len(broken)
    assert len(broken) > 3
