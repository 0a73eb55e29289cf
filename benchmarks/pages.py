"""Pages per second: the kit's history and its JSON poll, beside the admin's list of django-celery-results.

    pip install django-celery-results
    python benchmarks/pages.py            10,000 jobs here, 10,000 rows there
    python benchmarks/pages.py --quick    few of both, to see that it runs

Both in this one process and run, through Django's test client, by one superuser who is logged in: jobs in local files
with a warm cache in memory, rows in an SQLite database in memory. Only the ratios mean anything. The page of the kit
reads no storage then, and the table of the admin has no text to show beside each row; both have 20 rows.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import django
from django.conf import settings

PER_PAGE = 20


def configure(location: str) -> None:
    settings.configure(
        SECRET_KEY="only for this benchmark",
        ALLOWED_HOSTS=["testserver"],
        ROOT_URLCONF=__name__,
        USE_TZ=True,
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        INSTALLED_APPS=[
            "django.contrib.admin",
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "django.contrib.sessions",
            "django.contrib.messages",
            "django.contrib.staticfiles",
            "django_celery_results",
            "django_jobkit",
        ],
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.middleware.common.CommonMiddleware",
            "django.middleware.csrf.CsrfViewMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
            "django.contrib.messages.middleware.MessageMiddleware",
        ],
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "APP_DIRS": True,
                "OPTIONS": {
                    "context_processors": [
                        "django.template.context_processors.request",
                        "django.contrib.auth.context_processors.auth",
                        "django.contrib.messages.context_processors.messages",
                    ]
                },
            }
        ],
        STATIC_URL="/static/",
        STORAGES={
            "default": {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": location}},
            "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
        },
        CACHES={
            "default": {
                "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
                "OPTIONS": {"MAX_ENTRIES": 100_000},
            }
        },
        JOBKIT={"default": {"PER_PAGE": PER_PAGE}},
    )
    django.setup()


def url_patterns() -> list[Any]:
    from django.contrib import admin
    from django.urls import include, path

    return [path("admin/", admin.site.urls), path("jobs/", include("django_jobkit.urls"))]


def fill(count: int) -> str:
    """As many jobs as rows; the ID of one job."""
    from datetime import UTC, datetime, timedelta

    from django_celery_results.models import TaskResult

    from django_jobkit.jobs import JobStatus, codec, ids

    TaskResult.objects.bulk_create(
        TaskResult(
            task_id=f"task-{n}", task_name="report.make", status="SUCCESS", worker="worker@host", result='"done"'
        )
        for n in range(count)
    )
    jobs = Path(settings.STORAGES["default"]["OPTIONS"]["location"], "jobs")
    start = datetime(2026, 1, 1, tzinfo=UTC)
    job_id = ""
    for n in range(count):  # written as they stand in a bucket: saving each would take most of the time
        moment = start + timedelta(seconds=n)
        job_id = ids.new("report", now=moment)
        status = JobStatus(
            job_id=job_id, command="make", state="succeeded", title=f"Report {n}", attempts=1, queued_at=moment
        )
        status.updated_at = status.finished_at = moment
        (jobs / job_id).mkdir(parents=True)
        (jobs / job_id / "status.json").write_bytes(codec.encode(status))
    return job_id


def per_second(request: Callable[[], Any], seconds: float) -> float:
    """Requests per second: the median of five rounds, so that a hiccup of the machine doesn't count."""
    rates = []
    for _ in range(5):
        done, started = 0, time.perf_counter()
        while (taken := time.perf_counter() - started) < seconds / 5 or not done:
            request()
            done += 1
        rates.append(done / taken)
    return statistics.median(rates)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few jobs and rows: shows that it runs, not how fast")
    quick = parser.parse_args().quick
    try:
        import django_celery_results  # noqa: F401
    except ImportError:
        sys.exit("This compares with django-celery-results. Run: pip install django-celery-results")
    with tempfile.TemporaryDirectory() as location:
        configure(location)
        globals()["urlpatterns"] = url_patterns()
        from django.contrib.auth import get_user_model
        from django.core.management import call_command
        from django.test import Client

        call_command("migrate", verbosity=0)
        count = 100 if quick else 10_000
        job_id = fill(count)
        client = Client()
        client.force_login(get_user_model().objects.create_superuser("bench"))

        etag = client.get(f"/jobs/{job_id}/status/").headers["ETag"]
        requests: dict[str, tuple[int, Callable[[], Any]]] = {
            "admin changelist of django-celery-results": (
                200,
                lambda: client.get("/admin/django_celery_results/taskresult/"),
            ),
            "history page of the kit": (200, lambda: client.get("/jobs/")),
            "JSON poll, unchanged": (
                304,
                lambda: client.get(f"/jobs/{job_id}/status/", headers={"If-None-Match": etag}),
            ),
        }
        from django.contrib import admin
        from django_celery_results.models import TaskResult

        admin.site._registry[TaskResult].list_per_page = PER_PAGE
        print(
            f"Python {sys.version.split()[0]}, Django {django.__version__}; {count:,} jobs and rows, {PER_PAGE} a page"
        )
        rates = {}
        for name, (status, request) in requests.items():
            for _ in range(2):  # the second is warm
                assert request().status_code == status, name
            rates[name] = per_second(request, 0.1 if quick else 5)
        theirs = rates["admin changelist of django-celery-results"]
        for name, rate in rates.items():
            print(f"  {name:<44} {rate:8.1f} per second   {rate / theirs:6.2f} times the changelist")


if __name__ == "__main__":
    main()
