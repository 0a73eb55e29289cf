"""Eight processes record over one job on local files."""

from __future__ import annotations

import json
import multiprocessing

import pytest
from django.core.files.storage import FileSystemStorage

from django_jobkit.jobs.recorder import Recorder
from django_jobkit.jobs.status import JobStatus, State
from django_jobkit.jobs.store import StatusStore
from django_jobkit.storages import adapt

PROCESSES = 8
RECORDS = 1000


def work(location: str, number: int, start) -> None:
    recorder = Recorder(StatusStore(adapt(FileSystemStorage(location))))
    start.wait()
    for count in range(RECORDS):
        if count % 3 == 0:
            status = JobStatus(state=State.RUNNING, title=f"{number}-{count}")
        else:
            status = JobStatus(state=State.RUNNING)
        recorder.record("job", status, add_attempt)


def add_attempt(next_: JobStatus, prev: JobStatus | None) -> None:
    next_.attempts += 1


def succeed_in_the_middle(location: str, number: int, start, halfway) -> None:
    recorder = Recorder(StatusStore(adapt(FileSystemStorage(location))))
    start.wait()
    for count in range(RECORDS):
        if number == 0 and count == RECORDS // 2:
            recorder.record("job", JobStatus(state=State.SUCCEEDED, title="done"))
            halfway.set()
        elif not recorder.begin("job", JobStatus(state=State.RUNNING, title=f"{number}"), add_attempt):
            recorder.record("job", JobStatus(state=State.FAILED, error=f"{number}"))


def run(target, location, *events) -> None:
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=target, args=(str(location), n, *events)) for n in range(PROCESSES)]
    for process in processes:
        process.start()
    events[0].set()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0] * PROCESSES


@pytest.mark.slow
def test_no_attempt_is_lost_among_eight_processes(tmp_path):
    run(work, tmp_path, multiprocessing.get_context("fork").Event())
    document = json.loads((tmp_path / "jobs/job/status.json").read_text())
    assert document["attempts"] == PROCESSES * RECORDS
    assert document["title"]


@pytest.mark.slow
def test_a_success_among_eight_processes_is_never_rolled_back(tmp_path):
    context = multiprocessing.get_context("fork")
    start, halfway = context.Event(), context.Event()
    run(succeed_in_the_middle, tmp_path, start, halfway)
    assert halfway.is_set()
    document = json.loads((tmp_path / "jobs/job/status.json").read_text())
    assert (document["state"], document["title"]) == ("succeeded", "done")
