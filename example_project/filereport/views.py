from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.contrib import admin
from django.contrib.auth.mixins import UserPassesTestMixin
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.generic import FormView

from django_jobkit import jobkits
from django_jobkit.access import Action
from django_jobkit.baseviews import PageView
from django_jobkit.exceptions import StorageUnavailable
from django_jobkit.jobs.files import content_type

from . import worker
from .forms import ReportForm
from .samples import SAMPLES


class SubmitView(UserPassesTestMixin, FormView):  # type: ignore[type-arg]
    """The form. What it accepts becomes a job, whose page comes next. For those who may see jobs."""

    form_class = ReportForm
    template_name = "filereport/submit.html"

    def test_func(self) -> bool:
        return jobkits["default"].access.allows(self.request, Action.VIEW)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        site = {**admin.site.each_context(self.request), "is_nav_sidebar_enabled": False}
        return super().get_context_data(**site, title="New report", samples=SAMPLES, **kwargs)

    def form_valid(self, form: ReportForm) -> HttpResponse:
        file_name, data = form.picked
        try:
            job_id = worker.submit(file_name, data, owner=self.request.user.get_username())
        except (StorageUnavailable, RuntimeError):
            form.add_error(None, "The file can’t be taken just now. Please try again in a moment.")
            return self.render_to_response(self.get_context_data(form=form), status=HTTPStatus.SERVICE_UNAVAILABLE)
        return redirect("jobkit:detail", job_id)


class JobFileView(PageView):
    """One of a job's outputs, for those who may see the job; errors are answered as on the kit's own pages."""

    def get(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        status, _ = self.read_job()
        name = kwargs["name"]
        if name not in getattr(status, "outputs", ()):
            raise Http404
        try:
            data = self.kit.storage.read(self.kit.output_name(self.job_id, name)).data
        except FileNotFoundError as error:
            raise Http404 from error
        media_type = content_type(name)
        charset = "; charset=utf-8" if media_type.startswith("text/") else ""
        # Outputs hold words of the person's file: whatever stands there, the browser is to run nothing of it.
        headers = {"Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'"}
        return HttpResponse(data, content_type=f"{media_type}{charset}", headers=headers)
