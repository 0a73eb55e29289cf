"""The pages and the JSON of one kit: each calls the kit once and prints what it gave. See `baseviews` for the rest."""

from __future__ import annotations

from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.utils.cache import get_conditional_response
from django.utils.translation import gettext as _

from .access import Action
from .baseviews import HiddenJob, JSONView, PageView
from .display import member, title_of
from .exceptions import StatusCorrupt, StatusNotFound
from .history_page import json_of, lines_of
from .job_page import RELOAD_SECONDS, error_text, other_fields, outputs_of, raw_record, timeline_of
from .jobs import ids
from .live import etag_of
from .page_query import read_page
from .queue_page import JobQueueAPIView, JobQueueView, queues_of
from .responses import HANDLED, Answer, json_body
from .submit_view import JobSubmitView

__all__ = [
    "JobAPIView",
    "JobDeleteView",
    "JobDetailView",
    "JobHistoryView",
    "JobListAPIView",
    "JobQueueAPIView",
    "JobQueueView",
    "JobStatusView",
    "JobSubmitView",
]


class JobHistoryView(PageView):
    """All jobs, newest first, a page at a time.

    ``?page=`` outside the range shows the first or the last page, as does one that isn't a number the first.
    """

    def get(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        settings = self.kit.settings
        number, per_page = read_page(request.GET, settings.per_page, settings.max_per_page, lenient=True)
        page = self.kit.history.page(number, per_page, owner=self.owner())
        may_delete = self.may_with_job(Action.DELETE, None)  # offered for what can't be read only
        lines = lines_of(page.items, self.links, may_delete=may_delete, doubt=self.doubt)
        cut_off = settings.search_limit if page.searched is not None and not page.searched.complete else 0
        queue_url = self.links.to("queue") if queues_of(self.kit.alias) else ""
        return self.page("history", _("Jobs"), rows=lines, meta=page.meta, cut_off=cut_off, queue_url=queue_url)


class JobDetailView(PageView):
    """One job. While it isn't finished, the page keeps itself up to date, unless the query says ``reload=off``."""

    def get(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        status, file = self.read_job()
        retry_of = member(status, "retry_of") or ""
        reload_seconds = RELOAD_SECONDS.get(status.state)
        reloads = reload_seconds is not None and request.GET.get("reload") != "off"
        status_url = self.links.to("status", self.job_id)
        return self.page(
            "job",
            title_of(self.job_id, status),
            job=status,
            doubt=self.doubt(status),
            outputs=outputs_of(self.kit, self.job_id, status),
            other_fields=other_fields(status),
            record=raw_record(file.data),
            error=error_text(status.error),
            timeline=timeline_of(status, datetime.now(UTC)),
            reload_seconds=reload_seconds,
            live_url=status_url if reloads else "",
            etag=etag_of(file.data),
            queued_after=self.kit.settings.queued_warning,
            retry_of_url=self.links.to("detail", retry_of) if ids.is_valid(retry_of) else "",
            status_url=status_url,
            delete_url=self.links.to("delete", self.job_id) if self.may_with_job(Action.DELETE, status) else "",
        )


class JobDeleteView(PageView):
    """Asks before it deletes a job with all its files; what is left of a damaged job can be deleted as well.

    For such a job, the question stands on the page that says what is wrong with it.
    """

    action = Action.DELETE

    def get(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        status, _file = self.read_job()
        return self.page(
            "delete",
            _("Delete job"),
            job=status,
            job_title=title_of(self.job_id, status),
            detail_url=self.links.to("detail", self.job_id),
        )

    def post(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        self.delete_job()
        messages.success(request, _("Job %(job_id)s has been deleted.") % {"job_id": self.job_id}, fail_silently=True)
        return HttpResponseRedirect(self.links.history)

    def about(self, answer: Answer, error: Exception) -> dict[str, Any]:
        return {**super().about(answer, error), "delete_url": "", "ask_to_delete": self._is_deletable(error)}

    def _is_deletable(self, error: Exception) -> bool:
        if isinstance(error, StatusNotFound) and not isinstance(error, HiddenJob):
            try:
                return self.has_remains()
            except HANDLED:
                return False
        return isinstance(error, StatusCorrupt)


class JobStatusView(JSONView):
    """The stored record, byte for byte, with an ETag: a poll is one read, and 304 where nothing has changed."""

    def get(self, request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        _status, file = self.read_job()
        response = json_body(file.data)
        response["ETag"] = etag = etag_of(file.data)
        return get_conditional_response(request, etag=etag, response=response) or response


class JobListAPIView(JSONView):
    """The history as JSON: ``items`` beside the page's ten numbers. ``page`` and ``per_page`` have to be numbers."""

    def get(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        settings = self.kit.settings
        number, per_page = read_page(request.GET, settings.per_page, settings.max_per_page, lenient=False)
        page = self.kit.history.page(number, per_page, owner=self.owner())
        return json_body(json_of(page, settings.search_limit))


class JobAPIView(JobStatusView):
    """GET as `JobStatusView`; DELETE deletes the job with all its files, and is answered with 204."""

    def setup(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().setup(request, *args, **kwargs)
        if request.method == "DELETE":
            self.action = Action.DELETE

    def delete(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        self.delete_job()
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
