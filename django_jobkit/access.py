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
from typing import Any, ClassVar

from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest

from .jobs.status import Status


class Action(StrEnum):
    """What somebody wants to do with jobs. The permission for it is ``django_jobkit.{action}_job``."""

    VIEW = "view"
    ADD = "add"
    """Submit a new one. There is no job yet, so only `Access.allows` is asked."""
    DELETE = "delete"
    RETRY = "retry"


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

    def owner_filter(self, request: HttpRequest) -> str | None:
        """Whose jobs this person, whom `allows` let view jobs, is shown in lists: those with this ``owner``.

        None is everybody's. Lists and counts ask this instead of asking `allows_job` for each job, so let the two
        agree.
        """
        return None

    def known(self, request: HttpRequest) -> bool:
        """Whether it is known who is asking: it decides between "log in" and "you may not"."""
        user = _user_of(request)
        return bool(user is not None and user.is_authenticated)

    def name_of(self, request: HttpRequest) -> str:
        """Who is asking, as the log of deletions and retries is to name them."""
        user = _user_of(request)
        return str(user.get_username()) if user is not None and user.is_authenticated else ""

    def challenge_for(self, request: HttpRequest) -> str:
        """The ``WWW-Authenticate`` of the 401 that answers this request."""
        return self.challenge

    def recognizes(self, request: HttpRequest) -> bool:
        """Whether the request comes with what this class knows people by. `FirstOf` asks."""
        return True

    def needs_csrf_token(self, request: HttpRequest) -> bool:
        """Whether a browser may have sent this for another site's page, as it sends cookies without being asked."""
        return True


def _user_of(request: HttpRequest) -> Any:
    return getattr(request, "user", None)  # there is none where Django's authentication isn't installed


class StaffAccess(Access):
    """Active staff users with ``django_jobkit.view_job``; to delete, ``delete_job``; to submit, ``add_job``; to retry,
    ``retry_job``.
    """

    def allows(self, request: HttpRequest, action: Action) -> bool:
        user = _user_of(request)
        return bool(
            user is not None and user.is_active and user.is_staff and user.has_perm(f"django_jobkit.{action}_job")
        )


class OwnerAccess(Access):
    """Each active user has their own jobs, those whose ``owner`` is their username; others' don't exist for them.

    With a job of one's own one may do whatever `owner_actions` says. Beyond that, Django's permissions count:
    ``django_jobkit.view_job`` shows everybody's jobs, also damaged ones, which nobody can say the owner of;
    ``delete_job`` lets one delete whatever job one sees, and ``retry_job`` retry it. Superusers have all of them.

    Whoever submits a job sets ``owner=request.user.get_username()``, as `JobSubmitView` does; where usernames change
    hands, override `identity` and set that. Rows of a `LOAD` of the site's own need a member ``owner``.
    """

    owner_actions: ClassVar[frozenset[Action]] = frozenset(Action)
    """What one may do with one's own jobs. Leave ``Action.DELETE`` out, and it takes the permission."""

    def identity(self, request: HttpRequest) -> str:
        """What this person's jobs have as their ``owner``; empty for somebody who can't have any."""
        user = _user_of(request)
        return str(user.get_username()) if user is not None and user.is_authenticated and user.is_active else ""

    def allows(self, request: HttpRequest, action: Action) -> bool:
        return (action in self.owner_actions and bool(self.identity(request))) or self._has_permission(request, action)

    def allows_job(self, request: HttpRequest, action: Action, job_id: str, status: Status | None) -> bool:
        return (action in self.owner_actions and self._is_owner(request, status)) or self._has_permission(
            request, action
        )

    def owner_filter(self, request: HttpRequest) -> str | None:
        return None if self._has_permission(request, Action.VIEW) else self.identity(request)

    def _is_owner(self, request: HttpRequest, status: Status | None) -> bool:
        identity = self.identity(request)
        return bool(identity) and identity == getattr(status, "owner", None)

    def _has_permission(self, request: HttpRequest, action: Action) -> bool:
        user = _user_of(request)
        return bool(user is not None and user.is_active and user.has_perm(f"django_jobkit.{action}_job"))


class FirstOf(Access):
    """Several ways in, such as tokens for machines and the login for people: a function can be the ``ACCESS``::

        def access():
            return FirstOf(GoogleTokenAccess(audience=..., accounts=...), StaffAccess())

    The first member that `recognizes` a request decides alone, whatever the others would say: a token that is refused
    is not made good by a cookie that came along. The last one decides where none does.
    """

    def __init__(self, *members: Access) -> None:
        if not members:
            raise ImproperlyConfigured("FirstOf needs access objects to choose from.")
        self.members = members

    def _of(self, request: HttpRequest) -> Access:
        return next((member for member in self.members if member.recognizes(request)), self.members[-1])

    def allows(self, request: HttpRequest, action: Action) -> bool:
        return self._of(request).allows(request, action)

    def allows_job(self, request: HttpRequest, action: Action, job_id: str, status: Status | None) -> bool:
        return self._of(request).allows_job(request, action, job_id, status)

    def owner_filter(self, request: HttpRequest) -> str | None:
        return self._of(request).owner_filter(request)

    def known(self, request: HttpRequest) -> bool:
        return self._of(request).known(request)

    def name_of(self, request: HttpRequest) -> str:
        return self._of(request).name_of(request)

    def challenge_for(self, request: HttpRequest) -> str:
        """All ways in there are, since each would do (RFC 9110, 11.6.1)."""
        return ", ".join(dict.fromkeys(member.challenge_for(request) for member in self.members))

    def recognizes(self, request: HttpRequest) -> bool:
        return any(member.recognizes(request) for member in self.members)

    def needs_csrf_token(self, request: HttpRequest) -> bool:
        return self._of(request).needs_csrf_token(request)
