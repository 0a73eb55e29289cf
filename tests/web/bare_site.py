"""A site in which nothing but the kit is installed: no database, no users, no admin, no context processor.

Run as a program, it tries every page and says so.
"""

from __future__ import annotations

import django
from django.conf import settings
from django.core.management import call_command
from django.test import Client, override_settings

JOB_ID = "job-20260831-102030-0123456789ab"


def main() -> None:
    settings.configure(
        SECRET_KEY="x",
        ALLOWED_HOSTS=["testserver"],
        ROOT_URLCONF="tests.web.urls_without_admin",
        INSTALLED_APPS=["django_jobkit"],
        MIDDLEWARE=["django.middleware.common.CommonMiddleware"],
        TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}],
        STATIC_URL="/static/",
        STORAGES={"default": {"BACKEND": "django.core.files.storage.InMemoryStorage"}},
        USE_TZ=True,
        JOBKIT={"default": {"ACCESS": "tests.web.everybody.Everybody", "CACHE": None}},
    )
    django.setup()

    from django_jobkit import jobkits
    from django_jobkit.jobs import JobStatus, State

    call_command("check", fail_level="WARNING")
    jobkits["default"].store.save(JOB_ID, JobStatus(title="Chart", state=State.FAILED, outputs=["a.txt"]))
    client = Client()
    assert client.get("/jobs/nothing/").status_code == 404
    assert client.get("/jobs/no%20id/").status_code == 400
    for path in ("", f"{JOB_ID}/", f"{JOB_ID}/delete/", f"{JOB_ID}/status/", "-/api/", f"-/api/{JOB_ID}/"):
        response = client.get("/jobs/" + path)
        assert response.status_code == 200, (path, response.content)
        assert b"Chart" in response.content
    assert client.post(f"/jobs/{JOB_ID}/delete/").status_code == 302
    assert b"no jobs yet" in client.get("/jobs/").content
    with override_settings(JOBKIT={}):  # closed by default
        assert client.get("/jobs/")["Location"] == "/accounts/login/?next=/jobs/"
        assert client.get("/jobs/-/api/").status_code == 401
    print("well")


if __name__ == "__main__":
    main()
