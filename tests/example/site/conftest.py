"""These tests run under the example's own settings; see `tests.example.conftest`."""

from collections import deque
from concurrent.futures import Executor, Future

import pytest
from django.core.cache import cache


class Hands(Executor):
    """Workers that begin a job when the test says so: at once, or on `work`."""

    def __init__(self):
        self.waiting = deque()
        self.stopped = False
        self.at_once = True

    def submit(self, function, /, *args, **kwargs):
        if self.stopped:
            raise RuntimeError("cannot schedule new futures after shutdown")
        future = Future()
        self.waiting.append((future, function, args, kwargs))
        if self.at_once:
            self.work()
        return future

    def work(self):
        while self.waiting:
            future, function, args, kwargs = self.waiting.popleft()
            try:
                future.set_result(function(*args, **kwargs))
            except BaseException as error:
                future.set_exception(error)

    def shutdown(self, wait=True, *, cancel_futures=False):
        self.stopped = True
        while cancel_futures and self.waiting:
            self.waiting.popleft()[0].cancel()


@pytest.fixture(autouse=True)
def media(settings, tmp_path):
    """The directory that holds this test's jobs."""
    options = {"location": tmp_path, "base_url": "/files/"}
    backend = "django.core.files.storage.FileSystemStorage"
    settings.STORAGES = {**settings.STORAGES, "default": {"BACKEND": backend, "OPTIONS": options}}
    settings.REPORT_RESAMPLES = 20
    cache.clear()
    return tmp_path


@pytest.fixture(autouse=True)
def hands(monkeypatch):
    from filereport import worker

    hands = Hands()
    monkeypatch.setattr(worker, "workers", hands)
    return hands


@pytest.fixture
def staff(client, db):
    """A client of somebody who may see jobs."""
    from django.contrib.auth.models import Permission, User

    user = User.objects.create_user("ann", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(content_type__app_label="django_jobkit"))
    client.force_login(user)
    return client
