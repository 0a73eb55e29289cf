"""A site that runs its tasks on `InProcessBackend`, with its jobs in memory."""

from __future__ import annotations

import pytest

from django_jobkit.backends import processwide
from django_jobkit.backends.compat import task_backends
from tests.inprocess.helpers import eventually

from . import site_tasks

BACKEND = "django_jobkit.backends.InProcessBackend"


@pytest.fixture(autouse=True)
def _fresh_process():
    """No queue, and nothing noted down, of another test; and none left running."""
    site_tasks.ran.clear()
    site_tasks.raised_when_told.clear()
    site_tasks.started.clear()
    site_tasks.released.clear()
    yield
    site_tasks.released.set()
    processwide.forget_queues()


@pytest.fixture
def kit(jobkit):
    return jobkit


@pytest.fixture
def tasks(kit, settings):
    """Has the site use the backend, with these options; returns the backend."""

    def use(**options):
        settings.TASKS = {"default": {"BACKEND": BACKEND, "OPTIONS": options}}
        return task_backends["default"]

    use()
    yield use
    site_tasks.released.set()  # before the settings change back, which stops the queues


@pytest.fixture
def backend(tasks):
    return tasks()


@pytest.fixture
def quick(tasks):
    """Without files of accepted calls, and with one worker, so that the order is plain."""
    return tasks(DURABLE=False, WORKERS=1)


def finished(backend, job_id):
    """The result, once there is one."""
    found = []

    def is_finished():
        found[:] = [backend.get_result(job_id)]
        return found[0].is_finished

    assert eventually(is_finished), found
    return found[0]
