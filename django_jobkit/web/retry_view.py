"""Doing a job again, through the function that the site has registered for it."""

from __future__ import annotations

import logging
from typing import Any, Final

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.utils.translation import gettext as _

from .. import audit
from ..access import Action
from ..exceptions import JobKitError
from ..jobs import ids
from ..jobs.status import State, Status
from ..jobs.swap import NotSaved, Previous, swap
from ..kit import JobKit
from . import notices
from .baseviews import PageView
from .display import title_of
from .responses import HANDLED, NotRetriable, answer_to

RETRIABLE: Final = frozenset({State.FAILED, State.SUCCEEDED})

logger = logging.getLogger("django_jobkit.views")


def may_be_retried(kit: JobKit, status: Status) -> bool:
    """Whether the site can retry jobs, and this one has ended."""
    return kit.retry is not None and status.state in RETRIABLE


class JobRetryView(PageView):
    """POST only: calls ``RETRY(job_id, status, request)``, and leads to the job that it names.

    That job's ``retry_of`` is then this one's ID, whatever the function recorded. What goes wrong, also that the site
    has no ``RETRY`` or that the job hasn't ended, is a message on this job's page; where the site has no messages, a
    page of its own, with 409 for those two.
    """

    action = Action.RETRY
    http_method_names = ["post", "options"]

    def post(self, request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        status, _file = self.read_job()
        if not may_be_retried(self.kit, status):
            return self._failed(NotRetriable(self.job_id))
        try:
            new_id = self._retry(status)
        except PermissionDenied:
            raise
        except ValidationError as error:
            return self._failed(error, " ".join(error.messages))
        except Exception as error:
            return self._failed(error)
        who, title = self.kit.access.name_of(request), title_of(self.job_id, status)
        audit.record(request, self.kit.alias, Action.RETRY, self.job_id, who=who, title=title, result=new_id)
        notices.tell(request, messages.SUCCESS, _("This job is a retry of %(job_id)s.") % {"job_id": self.job_id})
        return HttpResponseRedirect(self.links.to("detail", new_id))

    def _retry(self, status: Status) -> str:
        assert self.kit.retry is not None
        # A copy: whatever the function does to it, the job stays as it is.
        new_id = self.kit.retry(self.job_id, status.clone(), self.request)
        if not isinstance(new_id, str):
            raise TypeError(f"{self.kit.name_of('RETRY')} returned {new_id!r} instead of the new job's ID.")
        ids.validate(new_id)
        link(self.kit, new_id, self.job_id)
        return new_id

    def _failed(self, error: Exception, text: str = "") -> HttpResponseBase:
        """Back to the job's page with a message; where the site has no messages, a page that says what can be said."""
        if not text:
            if not isinstance(error, HANDLED):
                logger.error("job %a could not be retried: %s", self.job_id, error, exc_info=error)
                text = _("It could not be retried. The site’s log says why.")
            else:
                text = str(answer_to(error).text)
        if not notices.tell(self.request, messages.ERROR, text) and isinstance(error, HANDLED):
            raise error
        return HttpResponseRedirect(self.links.to("detail", self.job_id))


def link(kit: JobKit, new_id: str, old_id: str) -> None:
    """Have the new job's record say which job it is a retry of. What can't be recorded now is logged.

    A job that runs again under its own ID is left as it is, as is one whose class has no ``retry_of``.
    """
    if new_id == old_id or not hasattr(kit.status_class, "retry_of"):
        return

    def decide(previous: Previous[Any]) -> Any:
        if previous.error is not None:
            raise previous.error
        if previous.status is None or previous.status.retry_of == old_id:
            return None  # a function may name a job that is recorded later
        next_ = previous.status.clone()
        next_.retry_of = old_id
        return next_

    try:
        swap(kit.store, new_id, decide)
    except (NotSaved, JobKitError) as error:
        logger.warning("job %a is not recorded as a retry of %a: %s", new_id, old_id, error, extra={"job_id": new_id})
