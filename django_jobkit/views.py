"""The pages and the JSON of one kit: each calls the kit once and prints what it gave. See `web` for the rest."""

from __future__ import annotations

from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.utils.cache import get_conditional_response
from django.utils.translation import gettext as _

from .access import Action
from .exceptions import StatusCorrupt, StatusNotFound
from .jobs import ids, retries
from .jobs.status import Status
from .web.baseviews import HiddenJob, JSONView, PageView
from .web.delete_selected_view import JobDeleteSelectedView
from .web.display import member, title_of
from .web.history_views import JobHistoryView, JobListAPIView
from .web.job_page import error_text, other_fields, raw_record, reload_seconds_of, timeline_of
from .web.links import RELOAD
from .web.live import etag_of
from .web.openapi import OpenAPIView
from .web.output_view import JobOutputView
from .web.outputs import outputs_of
from .web.queue_page import JobQueueAPIView, JobQueueView
from .web.responses import HANDLED, Answer, json_body
from .web.retry_view import JobRetryView, may_be_retried
from .web.submit_view import JobSubmitView

__all__ = [
    "JobAPIView",
    "JobDeleteSelectedView",
    "JobDeleteView",
    "JobDetailView",
    "JobHistoryView",
    "JobListAPIView",
    "JobOutputView",
    "JobQueueAPIView",
    "JobQueueView",
    "JobRetryView",
    "JobStatusView",
    "JobSubmitView",
    "OpenAPIView",
]


class JobDetailView(PageView):
    """One job. While it isn't finished, the page keeps itself up to date, unless the query says ``reload=off``."""

    def get(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        status, file = self.read_job()
        retry_of = member(status, "retry_of") or ""
        retried_as = retries.retried_as(status)
        reload_seconds = reload_seconds_of(status)
        reloads = reload_seconds is not None and request.GET.get(RELOAD) != "off"
        status_url = self.links.to("status", self.job_id)
        return self.page(
            "job",
            title_of(self.job_id, status),
            job=status,
            doubt=self.doubt(status),
            outputs=outputs_of(self.kit, self.links, self.job_id, status),
            other_fields=other_fields(status),
            record=raw_record(file.data),
            error=error_text(status.error),
            timeline=timeline_of(status, datetime.now(UTC)),
            reload_seconds=reload_seconds,
            reload_url=self.links.list_query or "?",
            no_reload_url=f"{self.links.list_query or '?'}{'&' if self.links.list_query else ''}{RELOAD}=off",
            live_url=status_url if reloads else "",
            queued_after=self.kit.settings.queued_warning,
            retry_of_url=self.links.to_job("detail", retry_of) if ids.is_valid(retry_of) else "",
            retried_as=retried_as,
            retried_as_url=self.links.to_job("detail", retried_as) if ids.is_valid(retried_as) else "",
            retry_seen=retries.seen_of(status),
            status_url=status_url,
            delete_url=self.links.to_job("delete", self.job_id) if self.may_with_job(Action.DELETE, status) else "",
            retry_job_url=self.links.to_job("retry", self.job_id) if self._may_retry(status) else "",
        )

    def _may_retry(self, status: Status) -> bool:
        return may_be_retried(self.kit, status) and self.may_with_job(Action.RETRY, status)


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
            detail_url=self.links.to_job("detail", self.job_id),
        )

    def post(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        self.delete_job()
        messages.success(request, _("Job %(job_id)s has been deleted.") % {"job_id": self.job_id}, fail_silently=True)
        return HttpResponseRedirect(self.links.list)

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


class JobAPIView(JobStatusView):
    """GET as `JobStatusView`; DELETE deletes the job with all its files, and is answered with 204."""

    def setup(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().setup(request, *args, **kwargs)
        if request.method == "DELETE":
            self.action = Action.DELETE

    def delete(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        self.delete_job()
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
