"""Doing a job again with what its record says of how it was submitted."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError

from django_jobkit.backends import retry
from django_jobkit.backends.calls import NoSuchTask
from django_jobkit.jobs import JobStatus, State
from django_jobkit.testing import assert_job
from tests.inprocess.helpers import eventually

from .conftest import finished
from .site_tasks import fail, ran, summarize


def test_a_tracked_task_runs_again_as_the_same_job_with_its_files(backend, kit):
    job_id = kit.enqueue(summarize, ["a.csv"], {"depth": 3}, title="Mine", owner="ann")
    finished(backend, job_id)
    assert retry(job_id, kit.store.get(job_id), None) == job_id
    assert eventually(lambda: kit.store.get(job_id).state == State.SUCCEEDED and len(ran) == 2)
    assert ran[0] == ran[1] == (job_id, "a.csv", 3)
    assert_job(job_id, attempts=2, owner="ann")


def test_any_other_task_makes_a_new_job(backend, kit):
    job_id = fail.using(priority=7).enqueue("no").id
    finished(backend, job_id)
    new_id = retry(job_id, kit.store.get(job_id), None)
    assert new_id != job_id
    result = finished(backend, new_id)
    assert (result.args, result.task.priority) == (["no"], 7)


def test_a_job_that_no_backend_has_run_is_said_to_be_none_to_retry(backend, kit):
    with pytest.raises(ValidationError, match="doesn’t say how it was submitted"):
        retry("a", JobStatus(state=State.FAILED), None)


def test_a_job_whose_code_is_gone_cannot_be_retried(backend, kit):
    status = JobStatus(state=State.FAILED)
    status.extra["django_task"] = {"path": "tests.backends.site_tasks.gone", "token": "0"}
    with pytest.raises(NoSuchTask):
        retry("a", status, None)
