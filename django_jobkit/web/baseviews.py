"""What all views do, in this order: find the kit, ask who may, check the ID, act, turn errors into answers.

This is the one place that asks the access object.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils.decorators import method_decorator
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.generic import View

from .. import audit
from ..access import Action
from ..exceptions import StatusCorrupt, StatusNotFound
from ..jobs import ids
from ..jobs.files import StoredFile
from ..jobs.staleness import Staleness, staleness
from ..jobs.status import Status
from ..kit import jobkits
from .display import title_of
from .entrance import csrf_failure, login_redirect
from .links import Links
from .look import look_for
from .responses import (
    DAMAGES,
    HANDLED,
    METHOD_NOT_ALLOWED,
    NOT_LOGGED_IN,
    Answer,
    CsrfFailed,
    about_error,
    answer_to,
    json_error,
    with_retry,
)

if TYPE_CHECKING:
    from django.contrib.admin import AdminSite


class HiddenJob(StatusNotFound):
    """The job exists, and whoever asks is not to know: answered as any ID without a job."""


class KitView(View, ABC):
    """What all views have in common. Subclasses say what an error looks like.

    URLs pass ``kit`` (the alias, ``default`` if they don't) and, where they are about one job, ``job_id``.
    """

    action = Action.VIEW
    """What a request amounts to."""

    admin_site: AdminSite | None = None
    """Whose pages these are: nobody gets in there who may not into the admin. None for the site's own."""

    def setup(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().setup(request, *args, **kwargs)
        self.kit = jobkits[kwargs.get("kit", "default")]
        self.links = Links(request)
        self.job_id: str = kwargs.get("job_id", "")

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            self.admit()
            if "job_id" in kwargs:
                # Not cleaned, as elsewhere: of two spellings of a URL, one would be a job's second address.
                ids.validate(self.job_id)
            response = super().dispatch(request, *args, **kwargs)
        except HANDLED as error:
            response = self._refuse(error)
        response.headers.setdefault("Cache-Control", "private, no-store")
        if response.status_code == HTTPStatus.UNAUTHORIZED:
            response.headers.setdefault("WWW-Authenticate", self.kit.access.challenge_for(request))
        return response

    def _refuse(self, error: Exception) -> HttpResponseBase:
        if isinstance(error, PermissionDenied):
            try:
                if not self.kit.access.known(self.request):
                    return self.challenge()
            except HANDLED as other:  # a token that is none, say: the admin refuses before it is looked at
                error = other
        return self.explain(answer_to(error), error)

    # Django's LoginRequiredMiddleware is not to redirect here: the access object decides, and not always by a login.
    dispatch.login_required = False  # type: ignore[attr-defined]

    # --- who may ----------------------------------------------------------------------------------------------------

    def admit(self) -> None:
        """Raise PermissionDenied for whom the access object doesn't let in."""
        if self.admin_site is not None and not self.admin_site.has_permission(self.request):
            raise PermissionDenied
        if not self.kit.access.allows(self.request, self.action):
            raise PermissionDenied

    def admit_to_job(self, status: Status | None) -> None:
        """As `admit`, for this one job; for one that may not even be viewed, `HiddenJob`."""
        access = self.kit.access
        if not access.allows_job(self.request, Action.VIEW, self.job_id, status):
            raise HiddenJob(self.job_id)
        if self.action != Action.VIEW and not access.allows_job(self.request, self.action, self.job_id, status):
            raise PermissionDenied

    def refuse_forgery(self) -> None:
        """Raise `CsrfFailed` for a request that a browser may have sent for another site's page."""
        if self.kit.access.needs_csrf_token(self.request) and csrf_failure(self.request):
            raise CsrfFailed

    def owner(self) -> str | None:
        """Whose jobs this person is shown in lists and counts; None is everybody's."""
        return self.kit.access.owner_filter(self.request)

    def may(self, action: Action) -> bool:
        """Whether to offer this person to do this to jobs. No where it can't be found out: it is asked again then."""
        try:
            return self.kit.access.allows(self.request, action)
        except HANDLED:
            return False

    def may_with_job(self, action: Action, status: Status | None) -> bool:
        """Whether to offer this person to do this to this job."""
        try:
            return self.may(action) and self.kit.access.allows_job(self.request, action, self.job_id, status)
        except HANDLED:
            return False

    # --- the job ----------------------------------------------------------------------------------------------------

    def read_job(self) -> tuple[Status, StoredFile]:
        """The job's status and its file, in one read. Raises as `StatusStore.get`."""
        try:
            status, file = self.kit.store.read_file(self.job_id)
        except StatusCorrupt:
            self.admit_to_job(None)
            raise
        self.admit_to_job(status)
        return status, file

    def has_remains(self) -> bool:
        """Whether there is a directory for this job, which has no status, as the history's list of IDs tells."""
        self.admit_to_job(None)
        return self.job_id in self.kit.history.ids()

    def delete_job(self) -> None:
        """Delete the job with all its files, whatever its record is like. Raises `StatusNotFound` if there is none."""
        title = ""
        try:
            title = title_of(self.job_id, self.read_job()[0])
        except StatusCorrupt:
            pass
        except StatusNotFound as error:
            if isinstance(error, HiddenJob) or not self.has_remains():
                raise
        self.delete_directory(self.job_id, title)

    def delete_directory(self, job_id: str, title: str = "") -> None:
        """Delete all that there is of a job that may be deleted, and note who did."""
        self.kit.history.delete(job_id)
        who = self.kit.access.name_of(self.request)
        audit.record(self.request, self.kit.alias, Action.DELETE, job_id, who=who, title=title)

    def doubt(self, status: Status) -> Staleness:
        """Whether an unfinished job looks lost just now."""
        return staleness(status, datetime.now(UTC), queued_after=self.kit.settings.queued_warning)

    # --- answers ----------------------------------------------------------------------------------------------------

    @abstractmethod
    def challenge(self) -> HttpResponseBase:
        """The answer to somebody unknown, who would have to log in first."""

    @abstractmethod
    def explain(self, answer: Answer, error: Exception) -> HttpResponseBase:
        """The answer to what went wrong."""


@method_decorator(csrf_protect, name="dispatch")
class PageView(KitView):
    """A page, in the look of the site."""

    def page(self, template: str, title: str, *, status: int = HTTPStatus.OK, **context: Any) -> HttpResponse:
        """``template`` is the name of one of the kit's, or the whole name of another, which ends in ``.html``."""
        look = look_for(self.request, self.admin_site)
        context |= {**look, "title": title, "links": self.links, "job_id": self.job_id}
        name = template if template.endswith(".html") else f"django_jobkit/{template}.html"
        return render(self.request, name, context, status=status)

    def challenge(self) -> HttpResponseBase:
        return login_redirect(self.request, self.admin_site)

    def explain(self, answer: Answer, error: Exception) -> HttpResponseBase:
        return with_retry(
            self.page("error", str(answer.title), status=answer.status, **self.about(answer, error)), answer
        )

    def about(self, answer: Answer, error: Exception) -> dict[str, Any]:
        """The context of the page that explains an error."""
        damage = error.kind if isinstance(error, StatusCorrupt) else ""
        return {
            "answer": answer,
            "retry_url": self.request.get_full_path(),
            "damage": damage,
            "damage_text": DAMAGES.get(damage, ""),
            "may_view": self.may(Action.VIEW),
            "delete_url": self.links.to_job("delete", self.job_id)
            if damage and self.may_with_job(Action.DELETE, None)
            else "",
        }


@method_decorator(csrf_exempt, name="dispatch")
class JSONView(KitView):
    """JSON, errors included: that of the CSRF check too, which is made here for that reason."""

    def admit(self) -> None:
        super().admit()
        if self.request.method not in ("GET", "HEAD", "OPTIONS"):
            self.refuse_forgery()

    def challenge(self) -> HttpResponseBase:
        return json_error(NOT_LOGGED_IN)

    def explain(self, answer: Answer, error: Exception) -> HttpResponseBase:
        return json_error(answer, **about_error(error))

    def http_method_not_allowed(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        response = json_error(METHOD_NOT_ALLOWED)
        response["Allow"] = ", ".join(name.upper() for name in self.http_method_names if hasattr(self, name))
        return response
