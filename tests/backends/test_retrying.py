"""Doing a job again with what its record says of how it was submitted."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError
from django.test import RequestFactory

from django_jobkit.backends import retry
from django_jobkit.backends.calls import NoSuchTask
from django_jobkit.jobs import JobStatus, State
from django_jobkit.jobs.retries import seen_of
from django_jobkit.testing import assert_job
from django_jobkit.views import JobRetryView
from tests.inprocess.helpers import eventually
from tests.web.everybody import Everybody

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


@pytest.fixture
def click(backend, kit):
    """Clicks the button of a job's page, as it was seen, and tells which job one is led to."""
    kit.retry, kit.access = retry, Everybody()

    def post(job_id, seen):
        request = RequestFactory().post("/", {"seen": seen})
        request._dont_enforce_csrf_checks = True
        return JobRetryView.as_view()(request, job_id=job_id)["Location"].split("/")[-2]

    return post


def test_two_clicks_run_a_tracked_task_once_more_though_it_ends_between_them(backend, kit, click):
    job_id = kit.enqueue(summarize, ["a.csv"])
    finished(backend, job_id)
    seen = seen_of(kit.store.get(job_id))
    assert click(job_id, seen) == job_id
    assert eventually(lambda: kit.store.get(job_id).state == State.SUCCEEDED and len(ran) == 2)
    assert click(job_id, seen) == job_id
    assert kit.store.get(job_id).state == State.SUCCEEDED
    assert click(job_id, seen_of(kit.store.get(job_id))) == job_id  # by somebody who has seen that
    assert eventually(lambda: kit.store.get(job_id).state == State.SUCCEEDED and len(ran) == 3)


@pytest.mark.parametrize("durable", [True, False])
def test_two_clicks_make_one_job_of_any_other_task(tasks, kit, click, durable):
    backend = tasks(DURABLE=durable)
    job_id = fail.enqueue("no").id
    finished(backend, job_id)
    seen = seen_of(kit.store.get(job_id))
    new_id = click(job_id, seen)
    assert click(job_id, seen) == new_id != job_id
    finished(backend, new_id)
    assert kit.store.get(new_id).retry_of == job_id
    assert kit.store.get(job_id).retried_as == new_id
    assert click(new_id, seen_of(kit.store.get(new_id))) not in (job_id, new_id)
