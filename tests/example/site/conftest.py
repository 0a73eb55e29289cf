"""These tests run under the example's own settings; see `tests.example.conftest`."""

import pytest
from django.core.cache import cache

from django_jobkit.backends import processwide, stop_queues
from django_jobkit.kit import JobKit
from django_jobkit.testing.eager import run_now

PATIENCE = 20.0


class Queue:
    """The site's own queue, as a server process would have it."""

    def drain(self):
        """Have it run what it has, and stop."""
        stop_queues(PATIENCE)

    def start_again(self):
        """As the next process does with its first request."""
        processwide.forget_queues()
        from django_jobkit.backends import startup

        startup.look_for_jobs()


@pytest.fixture(autouse=True)
def media(settings, tmp_path):
    """The directory that holds this test's jobs."""
    options = {"location": tmp_path}
    backend = "django.core.files.storage.FileSystemStorage"
    settings.STORAGES = {**settings.STORAGES, "default": {"BACKEND": backend, "OPTIONS": options}}
    settings.REPORT_RESAMPLES = 20
    cache.clear()
    return tmp_path


@pytest.fixture(autouse=True)
def _at_once(request, monkeypatch):
    """Jobs run in the call that submits them, unless the test has the ``queue`` run them."""
    if "queue" in request.fixturenames:
        return

    def hand_over(kit, task, job_id, args, kwargs):
        run_now(task, job_id, args, kwargs)

    monkeypatch.setattr(JobKit, "hand_over", hand_over)


@pytest.fixture
def queue(media):
    yield Queue()
    processwide.forget_queues()


@pytest.fixture
def staff(client, transactional_db):
    """A client of somebody who may see and submit jobs; no transaction is around its requests, as on the site."""
    from django.contrib.auth.models import Permission, User

    user = User.objects.create_user("ann", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(content_type__app_label="django_jobkit"))
    client.force_login(user)
    return client
