"""Who may see which jobs, and do what with them: the one object that the views ask.

``JOBKIT[alias]["ACCESS"]`` is the dotted path of an `Access` of the site's own::

    class TeamAccess(Access):
        def allows(self, request, action):
            return request.user.is_authenticated

        def allows_job(self, request, action, job_id, status):
            return status is not None and status.owner == request.user.username
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from django.http import HttpRequest

from .jobs.status import Status


class Action(StrEnum):
    """What somebody wants to do with jobs. The permission for it is ``django_jobkit.{action}_job``."""

    VIEW = "view"
    DELETE = "delete"


class Access:
    """Closed to everybody; subclasses open it. One instance serves all requests of a kit, from many threads.

    Both questions may also be answered by raising: `PermissionDenied` is a no, and the kit's own errors
    (`StatusUnavailable`, say, where it can't be found out just now) get the answer they get anywhere.
    """

    challenge: ClassVar[str] = 'Session realm="jobs"'
    """The ``WWW-Authenticate`` of a 401. This scheme has browsers show no password box of their own."""

    def allows(self, request: HttpRequest, action: Action) -> bool:
        """Whether this person may do this to jobs at all. Asked first, before anything is read.

        If not, somebody unknown is sent to log in (401 on JSON URLs), and somebody `known` gets 403.
        """
        return False

    def allows_job(self, request: HttpRequest, action: Action, job_id: str, status: Status | None) -> bool:
        """Whether this person, whom `allows` let in, may do this to this job.

        ``status`` is None where there is no status to read, so that one can't tell whose job it is. A job that may
        not be viewed is answered as one that doesn't exist; any other action is 403.
        """
        return True

    def known(self, request: HttpRequest) -> bool:
        """Whether it is known who is asking: it decides between "log in" and "you may not"."""
        user = getattr(request, "user", None)
        return bool(user is not None and user.is_authenticated)


class StaffAccess(Access):
    """Active staff users with ``django_jobkit.view_job``; to delete, with ``django_jobkit.delete_job``."""

    def allows(self, request: HttpRequest, action: Action) -> bool:
        user = getattr(request, "user", None)  # there is none where Django's authentication isn't installed
        return bool(
            user is not None and user.is_active and user.is_staff and user.has_perm(f"django_jobkit.{action}_job")
        )
