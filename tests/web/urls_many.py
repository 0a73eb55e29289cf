"""The kit's URLs included several times: as DESIGN.md shows it, with a namespace, and below captured prefixes."""

from django.urls import include, path, re_path

from django_jobkit.views import JobDetailView, JobHistoryView, JobStatusView

urlpatterns = [
    path("jobs/", include("django_jobkit.urls")),
    path("comics/", include("django_jobkit.urls"), {"kit": "comics"}),
    path("music/", include("django_jobkit.urls", namespace="music"), {"kit": "music"}),
    path("teams/<slug:team>/<int:year>/", include("django_jobkit.urls", namespace="teams")),
    path("日本/jobs/", include("django_jobkit.urls", namespace="japan")),
    re_path(r"^any(?P<prefix>.*)/jobs/", include("django_jobkit.urls", namespace="any")),
    re_path(r"^(?P<prefix>/.*)/jobs/", include("django_jobkit.urls", namespace="slashes")),
    path("mine/", JobHistoryView.as_view()),
    path("mine/<str:job_id>.json", JobStatusView.as_view()),
    path("mine/<str:job_id>/", JobDetailView.as_view()),
]
