"""A site's own views for submitting jobs, and where it maps them."""

from __future__ import annotations

from django import forms
from django.contrib import admin
from django.urls import include, path

from django_jobkit.views import JobSubmitView
from tests.backends.site_tasks import summarize, until_told


class SummaryForm(forms.Form):
    path = forms.CharField(max_length=20)
    depth = forms.IntegerField(initial=1, required=False)

    def clean_depth(self):
        return self.cleaned_data["depth"] or 1


class SummaryView(JobSubmitView):
    task = summarize
    form_class = SummaryForm

    def get_status_fields(self, form):
        return {"title": f"About {form.cleaned_data['path']}"}


class OneButtonView(JobSubmitView):
    task = until_told
    title = "Wait"


class ByPositionView(SummaryView):
    def get_task_args(self, form):
        return [form.cleaned_data["path"]]

    def get_task_kwargs(self, form):
        return {"depth": 5}

    def get_success_url(self, job_id):
        return f"/thanks/{job_id}/"


handed_over = []


class HandOverView(JobSubmitView):
    """Its task is a function that hands the job to a queue of the site's own."""

    def task(job_id):
        handed_over.append(job_id)


class ForgetfulView(JobSubmitView):
    pass


urlpatterns = [
    path("admin/", admin.site.urls),
    path("jobs/", include("django_jobkit.urls")),
    path("new/", SummaryView.as_view()),
    path("wait/", OneButtonView.as_view()),
    path("by-position/", ByPositionView.as_view()),
    path("hand-over/", HandOverView.as_view()),
    path("forgetful/", ForgetfulView.as_view()),
    path("plain/", SummaryView.as_view(template_name="plain_submit.html")),
]
