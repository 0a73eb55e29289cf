"""Who did what to which job, and when: in the log ``django_jobkit.audit``, and in the admin's where there is one."""

from __future__ import annotations

import logging
from typing import Any, Final

from django.apps import apps
from django.conf import settings
from django.db import DatabaseError, transaction
from django.http import HttpRequest
from django.utils import translation
from django.utils.translation import gettext as _

from .access import Action

logger = logging.getLogger("django_jobkit.audit")

_DONE: Final = {Action.DELETE: "deleted", Action.RETRY: "retried"}


def record(
    request: HttpRequest, kit: str, action: Action, job_id: str, *, who: str, title: str = "", result: str = ""
) -> None:
    """Note that ``who`` has done this by this request. ``result`` is the ID of the job that came of it.

    Never raises for trouble with the database: what was done is done.
    """
    more = {"kit": kit, "action": str(action), "job_id": job_id, "user": who, "result": result}
    outcome = f" as job {result}" if result else ""
    logger.info("%a %s job %s of %s%s", who, _DONE[action], job_id, kit, outcome, extra=more)
    user: Any = getattr(request, "user", None)
    # Not for a program, known by its token, that a user's cookie came along with.
    if getattr(user, "pk", None) is not None and user.get_username() == who and _has_admin_log():
        _note_in_admin(user.pk, kit, action, job_id, title, result)


def _has_admin_log() -> bool:
    return apps.is_installed("django.contrib.admin") and bool(settings.DATABASES.get("default"))


def object_id(kit: str, job_id: str) -> str:
    """How the admin's log knows the job: job IDs have no colon."""
    return f"{kit}:{job_id}"


def _note_in_admin(user_id: Any, kit: str, action: Action, job_id: str, title: str, result: str) -> None:
    from django.contrib.admin.models import CHANGE, DELETION, LogEntry
    from django.contrib.contenttypes.models import ContentType

    from .models import Job

    with translation.override(settings.LANGUAGE_CODE):  # one language for a log that all read
        outcome = _("Retried as %(job_id)s") % {"job_id": result} if result else ""
    try:
        with transaction.atomic():
            LogEntry.objects.create(
                user_id=user_id,
                content_type=ContentType.objects.get_for_model(Job),
                object_id=object_id(kit, job_id),
                object_repr=(title or job_id)[:200],
                action_flag=DELETION if action == Action.DELETE else CHANGE,
                change_message=outcome,
            )
    except DatabaseError as error:
        logger.warning("not in the admin's log: %s", error, extra={"job_id": job_id})
