from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

from django_jobkit.views import JobSubmitView

from . import worker
from .forms import ReportForm
from .samples import SAMPLES


class SubmitView(JobSubmitView):
    """The form. What it accepts becomes a job, whose page comes next. For those who may submit jobs."""

    form_class = ReportForm
    template_name = "filereport/submit.html"
    title = _("New report")

    def get_context_data(self) -> dict[str, Any]:
        return {"samples": SAMPLES}

    def submit(self, form: ReportForm) -> str:
        file_name, data = form.picked
        self.refuse_if_full(worker.task_for(file_name))  # before anything is stored
        return worker.submit(file_name, data, owner=self.request.user.get_username())
