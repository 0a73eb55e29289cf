"""Doing a job again that a backend has run; what ``JOBKIT[alias]["RETRY"]`` may name."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext as _

from django_jobkit.conf import DEFAULT_ALIAS
from django_jobkit.jobs import Status
from django_jobkit.kit import jobkits

from .calls import is_tracked
from .results import call_in


def retry(job_id: str, status: Status, request: HttpRequest) -> str:  # noqa: ARG001 - as RETRY is called
    """Submit the job's task anew with the same arguments, and return the ID of the job that this makes.

    For a tracked task that is the same job, with its directory: what it was given stands there. Raises
    ValidationError, in words for people, for a job whose record doesn't say what task it is of; `NoSuchTask`, and what
    `JobKit.enqueue` does.
    """
    call = call_in(status)
    if call is None:
        raise ValidationError(_("The record of this job doesn’t say how it was submitted."))
    task = call.task()
    if is_tracked(task):
        kit = jobkits[getattr(task.func, "jobkit_alias", DEFAULT_ALIAS)]
        return kit.enqueue(task, call.args, call.kwargs, job_id=job_id)
    backend = task.get_backend()
    enqueue = getattr(backend, "enqueue_recorded", backend.enqueue)
    return str(enqueue(task, call.args, call.kwargs).id)
