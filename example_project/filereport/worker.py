"""Reports as tasks of Django, which the site's own processes run (see TASKS in the settings).

All that ties the site's work (`analysis`) to the kit stands here.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Any, Final

from django.conf import settings

from django_jobkit import jobkits
from django_jobkit.exceptions import PermanentJobError
from django_jobkit.jobs import ids
from django_jobkit.tracking import Job, tracked

from .analysis import FileProblem, analyse, kind_of

try:
    from django.tasks import task
except ImportError:  # before Django 6.0: pip install "django-jobkit[tasks]"
    from django_tasks import task


@task()
@tracked(command="report-text")
def report_text(job: Job, file_name: str) -> None:
    make_report(job, file_name)


@task()
@tracked(command="report-table")
def report_table(job: Job, file_name: str) -> None:
    make_report(job, file_name)


TASKS: Final[dict[str, Any]] = {"text": report_text, "table": report_table}


def submit(file_name: str, data: bytes, *, owner: str = "") -> str:
    """Have a report made of a file, and return the job's ID at once.

    Raises `FileProblem` for a type of file that isn't read here, `StorageUnavailable` or `StatusUnavailable` when the
    job can't be stored, `QueueFull` when too many jobs wait, and `QueueStopped` when the site is stopping.
    """
    kit = jobkits["default"]
    wanted = task_for(file_name)
    job_id = ids.new("report")
    # Beside the record, and not in the task's arguments: those are to be short, and go with the job when it is deleted.
    kit.storage.write(kit.output_name(job_id, _input_name(file_name)), data)
    return kit.enqueue(wanted, [file_name], job_id=job_id, title=file_name, owner=owner)


def task_for(file_name: str) -> Any:
    """The task for a file of this name. Raises `FileProblem` for a type of file that isn't read here."""
    return TASKS[kind_of(file_name)]


def make_report(job: Job, file_name: str) -> None:
    """Write the report's files beside the job's record."""

    steps = 0

    def progress(current: int, total: int, message: str) -> None:
        nonlocal steps
        steps = total
        job.check_cancelled()  # when the site stops, or the job was deleted
        job.progress(current, total, message)

    data = job.read_file(_input_name(file_name)).read()
    try:
        report = analyse(file_name, data, resamples=settings.REPORT_RESAMPLES, progress=progress)
    except FileProblem as problem:
        raise PermanentJobError(str(problem)) from problem  # it would be no better the next time
    job.check_cancelled()
    for name, content in report.files.items():
        job.save_output(name, content)
    job.progress(steps, steps, report.headline)


def _input_name(file_name: str) -> str:
    return f"input{PurePath(file_name).suffix.lower()}"
