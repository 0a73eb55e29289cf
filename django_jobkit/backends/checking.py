"""What can be known about a backend's settings without touching a storage."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from django.core.checks import CheckMessage, Error, Warning

from django_jobkit.kit import jobkits

from .results import missing_fields

if TYPE_CHECKING:
    from .inprocess import InProcessBackend


def messages(backend: InProcessBackend) -> Iterator[CheckMessage]:
    """Everything wrong or doubtful, each by the setting's name."""
    for problem in backend.problems:
        yield Error(problem.message, hint=problem.hint, id="jobkit.E010")
    if backend.problems:
        return
    where = f"TASKS[{backend.alias!r}]"
    settings = backend.settings
    if settings.kit not in jobkits:
        yield Error(
            f"{where}['OPTIONS']['KIT'] is {settings.kit!r}, which is no alias in JOBKIT.",
            hint=f"Add it to JOBKIT, or choose from {', '.join(map(repr, jobkits))}.",
            id="jobkit.E010",
        )
        return
    try:
        kit = backend.kit
        missing = missing_fields(kit.status_class)
        storage = kit.storage
    except Exception:
        return  # the check of JOBKIT says what is wrong with that
    if missing:
        yield Error(
            f"{where} keeps its tasks in {kit.settings.status_class}, which has no {', '.join(missing)}.",
            hint="Let the class inherit from django_jobkit.jobs.JobStatus.",
            id="jobkit.E011",
        )
    if settings.durable and not storage.atomic_swap:
        yield Warning(
            f"{where} is durable, but the storage {kit.settings.storage!r} can't write on a condition, so two "
            f"processes that find a job which was left may both run it.",
            hint="Use local files, Google Cloud Storage or S3, or set DURABLE to False.",
            id="jobkit.W010",
        )
