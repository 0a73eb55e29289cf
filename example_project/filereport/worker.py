"""Reports as jobs on threads of this very process, each recorded by the kit from submit to end.

All that ties the site's work (`analysis`) to the kit stands here. Jobs that wait or run when the process is killed
stay on record as they were; a real queue would run them again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import PurePath

from django.conf import settings

from django_jobkit import jobkits
from django_jobkit.jobs import JobStatus, State, ids

from .analysis import FileProblem, analyse, kind_of

workers = ThreadPoolExecutor(max_workers=3, thread_name_prefix="report")
logger = logging.getLogger(__name__)


def submit(file_name: str, data: bytes, *, owner: str = "") -> str:
    """Have a report made of a file, and return the job's ID at once.

    Raises `FileProblem` for a type of file that isn't read here, `StorageUnavailable` when the file can't be stored,
    and RuntimeError when the site is stopping.
    """
    kit = jobkits["default"]
    status = JobStatus(
        command=f"report-{kind_of(file_name)}",
        state=State.QUEUED,
        title=file_name,
        queued_at=datetime.now(UTC),
        owner=owner,
    )
    job_id = ids.new("report")
    kit.storage.write(_input_name(job_id, file_name), data)
    # On record before a worker can get hold of it: otherwise "queued" could be written over its "running".
    kit.recorder.record(job_id, status)
    try:
        future = workers.submit(run, job_id, file_name)
    except RuntimeError:
        _record_never_begun(job_id)
        raise
    future.add_done_callback(lambda future: _look_after(job_id, future))
    return job_id


def run(job_id: str, file_name: str) -> None:
    """Make the report, unless it has been made before, and record how that went."""
    kit = jobkits["default"]
    status = JobStatus(state=State.RUNNING, started_at=datetime.now(UTC))
    if kit.recorder.begin(job_id, status, count_attempt):
        return
    try:
        _make_report(job_id, file_name, status)
        status.finished_at = datetime.now(UTC)
        kit.recorder.record(job_id, status, stop_if_deleted)
    except JobDeleted:
        kit.history.delete(job_id)  # what this run has written since


def _make_report(job_id: str, file_name: str, status: JobStatus) -> None:
    """Write the outputs and say in ``status`` how it ended."""
    kit = jobkits["default"]
    try:
        data = kit.storage.read(_input_name(job_id, file_name)).data
        progress = Progress(job_id, status)
        report = analyse(file_name, data, resamples=settings.REPORT_RESAMPLES, progress=progress)
        for name, content in report.files.items():
            kit.storage.write(kit.output_name(job_id, name), content)
    except JobDeleted:
        raise
    except FileProblem as problem:
        status.state, status.error = State.FAILED, str(problem)
    except Exception as error:
        logger.exception("report %s failed", job_id)
        status.state, status.error = State.FAILED, f"{type(error).__name__}: {error}"
    else:
        status.state, status.outputs, status.progress_message = State.SUCCEEDED, list(report.files), report.headline


def count_attempt(next_: JobStatus, _prev: JobStatus | None) -> None:
    next_.attempts += 1


class JobDeleted(Exception):
    """Somebody has deleted the job while it was running."""


class Progress:
    """Records how far a job is, at most once a second."""

    def __init__(self, job_id: str, status: JobStatus, clock: Callable[[], float] = time.monotonic) -> None:
        self.job_id = job_id
        self.status = status
        self.clock = clock
        self.recorded = clock()

    def __call__(self, current: int, total: int, message: str) -> None:
        self.status.progress_current, self.status.progress_total = current, total
        self.status.progress_message = message
        if self.clock() - self.recorded >= 1:
            self.recorded = self.clock()
            jobkits["default"].recorder.record(self.job_id, self.status, stop_if_deleted)


def stop_if_deleted(_next: JobStatus, prev: JobStatus | None) -> None:
    if prev is None:
        raise JobDeleted


def stop() -> None:
    """Let the running jobs end, and record of those still waiting that they never began."""
    workers.shutdown(cancel_futures=True)


def _look_after(job_id: str, future: Future[None]) -> None:
    if future.cancelled():
        _record_never_begun(job_id)
    elif error := future.exception():
        # Nobody else asks a future of a pool how it went.
        logger.error("report %s has no record of its end", job_id, exc_info=error)


def _record_never_begun(job_id: str) -> None:
    status = JobStatus(state=State.FAILED, error="The site stopped before the report was begun. Submit it again.")
    jobkits["default"].recorder.record(job_id, status)


def _input_name(job_id: str, file_name: str) -> str:
    """Where the file waits: in the job's directory, so that it goes when the job does."""
    return jobkits["default"].output_name(job_id, f"input{PurePath(file_name).suffix.lower()}")
