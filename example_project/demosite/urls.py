from django.conf import settings
from django.contrib import admin
from django.contrib.staticfiles.views import serve
from django.urls import include, path
from django.views.generic import RedirectView
from filereport.views import SubmitView

admin.site.site_header = admin.site.site_title = "File reports"
admin.site.site_url = None  # the header's own links lead to all there is

urlpatterns = [
    path("", SubmitView.as_view(), name="submit"),
    path("jobs/", include("django_jobkit.urls")),
    path("admin/", admin.site.urls),
    # A real site's static files come from its web server.
    path(f"{settings.STATIC_URL.lstrip('/')}<path:path>", serve, {"insecure": True}),
    path("favicon.ico", RedirectView.as_view(url=f"{settings.STATIC_URL}filereport/icon.svg")),
]
