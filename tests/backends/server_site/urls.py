from __future__ import annotations

import importlib.util
import os

from django import forms
from django.http import JsonResponse
from django.urls import include, path

from django_jobkit.access import Access
from django_jobkit.backends.compat import task_backends
from django_jobkit.views import JobSubmitView

from .work import note, wait_until, work

if importlib.util.find_spec("changing"):
    import changing  # noqa: F401  # what a test changes while the site runs


class Anybody(Access):
    def allows(self, request, action):
        return True

    def needs_csrf_token(self, request):
        return False


class WorkForm(forms.Form):
    wait = forms.BooleanField(required=False)
    pool = forms.BooleanField(required=False)


class SubmitView(JobSubmitView):
    task = work
    form_class = WorkForm


class LateSubmitView(SubmitView):
    """Is asked while the site runs, and submits when the queue is stopping."""

    def submit(self, form):
        note(what="request")
        wait_until(lambda: task_backends["default"].stats().state == "stopping")
        return super().submit(form)


def who(request):
    return JsonResponse({"pid": os.getpid()})


urlpatterns = [
    path("submit/", SubmitView.as_view()),
    path("late/", LateSubmitView.as_view()),
    path("who/", who),
    path("jobs/", include("django_jobkit.urls")),
]
