"""A site with jobs in a dict, and the people who come to look at them."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from http.client import HTTPConnection

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client
from pytest_django.live_server_helper import LiveServer

from django_jobkit.jobs import JobStatus, State
from django_jobkit.kit import JobKit, jobkits
from tests.jobs.fakes import DictStorage
from tests.web import csp

JOB_ID = "job-20260831-102030-0123456789ab"


@pytest.fixture(autouse=True)
def _fresh_site(settings, request):
    """No job, no cache entry and no kit of another test."""
    settings.CACHES = {
        "default": {
            "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
            "LOCATION": request.node.nodeid,
            "OPTIONS": {"MAX_ENTRIES": 10_000},
        }
    }
    settings.STORAGES = {
        **settings.STORAGES,
        "default": {
            "BACKEND": "django.core.files.storage.InMemoryStorage",
            "OPTIONS": {"base_url": "/media/"},
        },
    }


@pytest.fixture
def live_server(settings, transactional_db):
    """A server of this test's own, which sends all its pages under a strict policy.

    That of pytest-django is started once, with the middleware of that moment.
    """
    csp.switch_on(settings)
    server = LiveServer("localhost")
    connection = HTTPConnection(server.thread.host, server.thread.port, timeout=10)
    with closing(connection):
        connection.request("GET", "/jobs/")
        assert "Content-Security-Policy" in connection.getresponse().headers
    yield server
    server.stop()


def in_a_dict(alias: str = "default") -> JobKit:
    """The kit of this alias, its jobs in a `DictStorage` that counts calls and fails on demand."""
    kit = jobkits[alias]
    kit.storage = DictStorage()
    return kit


@pytest.fixture
def kit() -> JobKit:
    return in_a_dict()


@pytest.fixture
def storage(kit) -> DictStorage:
    return kit.storage


def put(kit: JobKit, job_id: str = JOB_ID, data: bytes | None = None, **fields) -> None:
    """Record a job, or put these bytes where its record should be."""
    if data is None:
        fields = {"state": State.SUCCEEDED, "queued_at": datetime(2026, 8, 31, 10, 20, 30, tzinfo=UTC), **fields}
        kit.store.save(job_id, kit.status_class(**fields))
    else:
        kit.storage.write(f"{kit.prefix}/{job_id}/status.json", data)
    kit.ids_cache.invalidate(kit.prefix)


@pytest.fixture
def job(kit) -> JobStatus:
    put(kit, title="Draw the charts", command="draw", attempts=1)
    return kit.store.get(JOB_ID)


def user(name: str, *permissions: str, **fields):
    person = get_user_model().objects.create_user(name, password="secret", **fields)
    person.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    assert person.user_permissions.count() == len(permissions)
    return person


def client_of(person) -> Client:
    client = Client()
    client.force_login(person)
    return client


@pytest.fixture
def staff(db) -> Client:
    """May see, delete and retry."""
    return client_of(user("staff", "view_job", "delete_job", "retry_job", is_staff=True))


@pytest.fixture
def viewer(db) -> Client:
    """May see, not delete."""
    return client_of(user("viewer", "view_job", is_staff=True))


@pytest.fixture
def stranger(db) -> Client:
    """Logged in, on the staff, and without any permission."""
    return client_of(user("stranger", is_staff=True))
