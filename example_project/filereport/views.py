from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse

from django_jobkit.jobs.files import content_type
from django_jobkit.views import JobSubmitView
from django_jobkit.web.baseviews import PageView

from . import worker
from .forms import ReportForm
from .samples import SAMPLES


class SubmitView(JobSubmitView):
    """The form. What it accepts becomes a job, whose page comes next. For those who may submit jobs."""

    form_class = ReportForm
    template_name = "filereport/submit.html"
    title = "New report"

    def get_context_data(self) -> dict[str, Any]:
        return {"samples": SAMPLES}

    def submit(self, form: ReportForm) -> str:
        file_name, data = form.picked
        self.refuse_if_full(worker.task_for(file_name))  # before anything is stored
        return worker.submit(file_name, data, owner=self.request.user.get_username())


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
