"""A site of its own look with a page that shows a job by one tag and one script."""

from django.conf import settings
from django.http import HttpResponse
from django.template import engines
from django.urls import include, path
from django.views.static import serve

PAGE = """{% load jobkit %}<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Your order</title>
<meta name="viewport" content="width=device-width, initial-scale=1"></head>
<body><main><h1>Your order</h1>{% job_live job_id %}</main>{% jobkit_script %}</body></html>"""


def order(request, job_id):
    return HttpResponse(engines["django"].from_string(PAGE).render({"job_id": job_id}, request))


def media(request, name):
    return serve(request, name, settings.MEDIA_ROOT)


urlpatterns = [
    path("media/<path:name>", media),
    path("jobs/", include("django_jobkit.urls")),
    path("order/<str:job_id>/", order),
]
