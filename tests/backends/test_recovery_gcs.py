"""What was left is found on object storage as on local files: its listings and deletes are other requests."""

from __future__ import annotations

import pytest

from django_jobkit.backends import processwide, stop_queues
from django_jobkit.backends.compat import task_backends
from django_jobkit.backends.markers import Markers
from django_jobkit.jobs import State
from django_jobkit.kit import jobkits
from tests.inprocess.helpers import eventually
from tests.storages.providers import google
from tests.storages.servers import gcs_bucket, gcs_url  # noqa: F401

from .conftest import BACKEND
from .site_tasks import PATIENCE, note, ran, released, started, until_told

pytestmark = [pytest.mark.component, pytest.mark.slow]


def test_jobs_on_google_cloud_storage_are_run_by_the_next_process(settings, gcs_url, gcs_bucket):  # noqa: F811
    settings.JOBKIT = {"default": {"CACHE": None}}
    settings.TASKS = {"default": {"BACKEND": BACKEND, "OPTIONS": {"WORKERS": 1}}}
    kit = jobkits["default"]
    kit.storage = google(gcs_url, gcs_bucket)
    first = kit.submit(until_told)
    assert started.wait(PATIENCE)
    jobs = [first, *(note.enqueue(number).id for number in range(5))]
    stop_queues(0, grace=PATIENCE)
    assert sorted(key.job_id for key in Markers(kit)) == sorted(jobs)

    processwide.forget_queues()
    released.set()
    processwide.service_of(task_backends["default"]).look_if_due()
    assert eventually(lambda: all(kit.store.get(job_id).state == State.SUCCEEDED for job_id in jobs))
    assert sorted(ran, key=str) == sorted([0, 1, 2, 3, 4, first], key=str)
    assert eventually(lambda: list(Markers(kit)) == [])
