"""Doing a job again, through the function that the site has registered for it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.transaction import non_atomic_requests
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _

from .. import audit
from ..access import Action
from ..exceptions import JobKitError
from ..jobs import ids, retries
from ..jobs.status import Status
from ..jobs.swap import Saved
from ..kit import JobKit
from . import notices
from .baseviews import PageView
from .display import title_of
from .responses import HANDLED, Answer, NotRetriable, answer_to
from .retry_notes import RetryNotes, link

SEEN: Final = "seen"
"""The parameter that holds what the page said of the job's retries: `seen_of` its record."""

_PAUSES: Final = (0.1, 0.2, 0.4, 0.8, 1.5)  # seconds, in which most retries are done

logger = logging.getLogger("django_jobkit.views")


def may_be_retried(kit: JobKit, status: Status) -> bool:
    """Whether the site can retry jobs, and this one has ended."""
    return kit.retry is not None and status.state in retries.RETRIABLE


# Non-atomic, as submitting is: a queue that is full says so when the job is handed to it.
@method_decorator(non_atomic_requests, name="dispatch")
class JobRetryView(PageView):
    """POST: calls ``RETRY(job_id, status, request)``, and leads to the job that it names.

    That job's ``retry_of`` is then this one's ID, whatever the function recorded, and this one's ``retried_as`` that
    one's. With ``seen``, the function is called only if the job wasn't retried since; without it, only if it never was:
    a second click on one button leads to the job that the first one made.

    What goes wrong, also that the site has no ``RETRY`` or that the job hasn't ended, is a message on this job's page;
    where the site has no messages, a page of its own, with 409 for those two and for what the function has against it.
    GET leads to the job's page. No transaction of ATOMIC_REQUESTS is around it.
    """

    action = Action.RETRY
    http_method_names = ["get", "head", "post", "options"]

    pause: Callable[[float], object] = staticmethod(time.sleep)

    def get(self, request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        self.read_job()
        return self._to(self.job_id)  # somebody who had to log in first, or tries an outage's page again

    def post(self, request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        notes = RetryNotes(self.kit, self.job_id)
        for pause in (*_PAUSES, None):
            status, file = self.read_job()
            if self.kit.retry is None:
                break
            try:
                held = notes.claim(request.POST.get(SEEN), Saved(status, file.version))
            except retries.BeingRetried:
                if pause is None:
                    return self._being_retried()
                self.pause(pause)  # a browser shows what its second click is answered: let that be the first one's job
            except retries.AlreadyRetried as already:
                return self._retried_before(already.retried_as)
            except retries.NotEnded:
                break
            except JobKitError as error:
                return self._failed(error)
            else:
                return self._run(notes, held)
        return self._failed(NotRetriable(self.job_id))

    def _run(self, notes: RetryNotes, held: retries.Claim[Any]) -> HttpResponseBase:
        title = title_of(self.job_id, held.status)
        try:
            new_id = self._retry(held.status)
        except BaseException as error:
            notes.release(held)
            if isinstance(error, PermissionDenied) or not isinstance(error, Exception):
                raise
            return self._failed(error, " ".join(error.messages) if isinstance(error, ValidationError) else "")
        notes.settle(held, new_id)
        link(self.kit, new_id, self.job_id, pause=self.pause)
        who = self.kit.access.name_of(self.request)
        audit.record(self.request, self.kit.alias, Action.RETRY, self.job_id, who=who, title=title, result=new_id)
        text = _("This job is a retry of %(job_id)s.") % {"job_id": self.job_id}
        notices.tell(self.request, messages.SUCCESS, text)
        return self._to(new_id)

    def _retry(self, status: Status) -> str:
        assert self.kit.retry is not None
        new_id = self.kit.retry(self.job_id, status, self.request)
        if not isinstance(new_id, str):
            raise TypeError(f"{self.kit.name_of('RETRY')} returned {new_id!r} instead of the new job's ID.")
        ids.validate(new_id)
        return new_id

    def _to(self, job_id: str) -> HttpResponseBase:
        return HttpResponseRedirect(self.links.to_job("detail", job_id))

    def _retried_before(self, new_id: str) -> HttpResponseBase:
        """To the job that another request has made, or back to this one, which runs or ran again itself."""
        if ids.is_valid(new_id) and new_id != self.job_id:
            text = _("%(job_id)s has been retried already, as this job.") % {"job_id": self.job_id}
        else:
            new_id, text = self.job_id, _("This job has been retried already.")
        notices.tell(self.request, messages.INFO, text)
        return self._to(new_id)

    def _being_retried(self) -> HttpResponseBase:
        notices.tell(self.request, messages.WARNING, _("This job is just being retried. Load this page again soon."))
        return self._to(self.job_id)

    def _failed(self, error: Exception, text: str = "") -> HttpResponseBase:
        """Back to the job's page with a message; where the site has no messages, a page that says what can be said."""
        if not text:
            if not isinstance(error, HANDLED):
                logger.error("job %a could not be retried: %s", self.job_id, error, exc_info=error)
                text = _("It could not be retried. The site’s log says why.")
            else:
                text = str(answer_to(error).text)
        if notices.tell(self.request, messages.ERROR, text):
            return self._to(self.job_id)
        if isinstance(error, HANDLED):
            raise error
        refused = isinstance(error, ValidationError)
        status = HTTPStatus.CONFLICT if refused else HTTPStatus.INTERNAL_SERVER_ERROR
        return self.explain(Answer(status, "not_retriable", _("Not to be retried"), text), error)
