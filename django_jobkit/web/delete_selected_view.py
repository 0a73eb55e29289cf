"""Deleting several jobs at once: a page that names them, then their deletion, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from ..access import Action
from ..exceptions import (
    InvalidJobID,
    StatusCorrupt,
    StatusNotFound,
    StatusUnavailable,
    StorageUnavailable,
)
from ..jobs import ids
from ..jobs.paging import load_items
from ..jobs.status import Status
from . import notices
from .baseviews import PageView
from .display import title_of
from .history_page import PROBLEMS
from .responses import answer_to

SELECTED: Final = "job"
"""The parameter that holds the ID of a job that was selected, as often as there are such jobs."""


@dataclass(frozen=True, slots=True)
class Selected:
    """A job that was selected. ``refusal`` says why it can't be deleted; ``problem`` why there is no status."""

    job_id: str
    status: Status | None = None
    problem: str = ""
    refusal: str = ""
    error: Exception | None = None

    @property
    def title(self) -> str:
        return self.job_id if self.status is None else title_of(self.job_id, self.status)

    @property
    def problem_text(self) -> str:
        return str(PROBLEMS.get(self.problem, ""))

    @property
    def unfinished(self) -> bool:
        return self.status is not None and self.status.state in ("queued", "running")


class JobDeleteSelectedView(PageView):
    """POST. Without ``confirm``, names the jobs that ``job`` gives the IDs of, and asks; with it, deletes them.

    Each is asked about as if it were deleted alone. At most `MAX_PER_PAGE` of them, in the order given. The query is
    that of the history's page, to which it leads back.
    """

    action = Action.DELETE

    def get(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        return HttpResponseRedirect(self.links.list)  # somebody who had to log in first: what they selected is lost

    def post(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        chosen = list(dict.fromkeys(request.POST.getlist(SELECTED)))
        settings = self.kit.settings
        back = self.links.list
        if not chosen:
            notices.tell(request, messages.WARNING, _("No job was selected."))
            return HttpResponseRedirect(back)
        for job_id in chosen:
            ids.validate(job_id)
        found = self._look_at(chosen[: settings.max_per_page])
        deletable = [job for job in found if not job.refusal]
        refused = [job for job in found if job.refusal]
        if not deletable or "confirm" in request.POST:
            for job in refused:
                notices.tell(request, messages.ERROR, _not_deleted(job, job.refusal))
            self._delete(deletable)
            return HttpResponseRedirect(back)
        return self.page(
            "delete_selected",
            _("Delete jobs"),
            jobs=deletable,
            refused=refused,
            unfinished=sum(job.unfinished for job in deletable),
            parameter=SELECTED,
            back_url=back,
        )

    def _look_at(self, job_ids: Sequence[str]) -> list[Selected]:
        read = load_items(
            job_ids, self._read, concurrency=self.kit.settings.concurrency, timeout=self.kit.settings.timeout
        )
        listed: set[str] | None = None
        found = []
        for job in read:
            if job.error is not None:  # worded here, since the threads that read don't know the reader's language
                job = Selected(job.job_id, refusal=str(answer_to(job.error).text))
            if job.problem == "missing":
                listed = set(self.kit.history.ids()) if listed is None else listed
                if job.job_id not in listed:
                    job = Selected(job.job_id, refusal=_("There is no job with this ID."))
            found.append(job if job.refusal else self._admitted(job))
        return found

    def _read(self, job_id: str) -> Selected:
        try:
            return Selected(job_id, self.kit.store.get(job_id))
        except StatusNotFound:
            return Selected(job_id, problem="missing")
        except StatusCorrupt:
            return Selected(job_id, problem="corrupt")
        except StatusUnavailable as error:
            return Selected(job_id, error=error)

    def _admitted(self, job: Selected) -> Selected:
        access = self.kit.access
        try:
            if not access.allows_job(self.request, Action.VIEW, job.job_id, job.status):
                return Selected(job.job_id, refusal=_("There is no job with this ID."))
            if access.allows_job(self.request, Action.DELETE, job.job_id, job.status):
                return job
        except PermissionDenied:
            pass
        return Selected(job.job_id, refusal=_("Your account has no permission to do this."))

    def _delete(self, jobs: Sequence[Selected]) -> None:
        deleted = []
        for job in jobs:
            try:
                self.delete_directory(job.job_id, job.title)
            except (StorageUnavailable, InvalidJobID) as error:
                notices.tell(self.request, messages.ERROR, _not_deleted(job, str(answer_to(error).text)))
            else:
                deleted.append(job)
        if len(deleted) == 1:
            text = _("Job %(job_id)s has been deleted.") % {"job_id": deleted[0].job_id}
        else:
            text = ngettext("%(count)s job has been deleted.", "%(count)s jobs have been deleted.", len(deleted)) % {
                "count": len(deleted)
            }
        if deleted:
            notices.tell(self.request, messages.SUCCESS, text)


def _not_deleted(job: Selected, reason: str) -> str:
    return _("Job %(job_id)s has not been deleted. %(reason)s") % {"job_id": job.job_id, "reason": reason}
