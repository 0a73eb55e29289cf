"""The pages and the JSON of one kit, ``default`` or the one that the site names::

    path("jobs/", include("django_jobkit.urls")),
    path("comics/", include("django_jobkit.urls", namespace="comics"), {"kit": "comics"}),

An ID may be any text without a slash here: one that can't be a job's is answered with 400 and the reason.
"""

from __future__ import annotations

from typing import Any

from django.urls import URLPattern, path

from . import views
from .web.links import APP_NAME, ROUTES

app_name = APP_NAME

_VIEWS = {
    "history": views.JobHistoryView,
    "delete-selected": views.JobDeleteSelectedView,
    "queue": views.JobQueueView,
    "api-list": views.JobListAPIView,
    "api-queue": views.JobQueueAPIView,
    "openapi": views.OpenAPIView,
    "api-job": views.JobAPIView,
    "detail": views.JobDetailView,
    "status": views.JobStatusView,
    "delete": views.JobDeleteView,
    "retry": views.JobRetryView,
    "output": views.JobOutputView,
}


def patterns(**initkwargs: Any) -> list[URLPattern]:
    """The URL patterns, their views made with these attributes."""
    return [
        path(ROUTES[name].format(job_id="<str:job_id>", name="<path:name>"), view.as_view(**initkwargs), name=name)
        for name, view in _VIEWS.items()
    ]


urlpatterns = patterns()
