"""Doing a job again."""

from __future__ import annotations

import logging

import pytest
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import connections
from django.test import Client
from django.urls import reverse

from django_jobkit.exceptions import QueueFull
from django_jobkit.jobs import JobStatus, State
from django_jobkit.kit import jobkits
from django_jobkit.views import JobRetryView
from tests.web.conftest import JOB_ID, client_of, in_a_dict, put, user

CALLS: list[tuple] = []
RESULT: list = []


def retry(job_id, status, request):
    """What the site's function does here: whatever the test has put into RESULT."""
    CALLS.append((job_id, status, request.user.get_username()))
    [result] = RESULT
    if isinstance(result, Exception):
        raise result
    if callable(result):
        return result()
    if isinstance(result, JobStatus):
        jobkits["default"].store.save(result.job_id, result)
        return result.job_id
    return result


@pytest.fixture
def site(settings):
    """A site that can retry jobs, and a failed one."""
    CALLS.clear()
    RESULT[:] = [JobStatus(job_id="again", state=State.QUEUED, title="Anew")]
    settings.JOBKIT = {"default": {"RETRY": f"{__name__}.retry"}}
    kit = in_a_dict()
    put(kit, state=State.FAILED, title="Draw", error="disk full")
    return kit


def post(client, **kwargs):
    return client.post(reverse("jobkit:retry", args=[JOB_ID]), **kwargs)


def shown(response) -> list[str]:
    return [str(message) for message in response.context["messages"]]


def button(client) -> bool:
    return (
        reverse("jobkit:retry", args=[JOB_ID]) in client.get(reverse("jobkit:detail", args=[JOB_ID])).content.decode()
    )


def test_the_new_job_is_shown_and_links_back_to_the_old_one(staff, site):
    response = post(staff, follow=True)
    assert response.redirect_chain == [("/jobs/again/", 302)]
    assert shown(response) == [f"This job is a retry of {JOB_ID}."]
    assert f'href="/jobs/{JOB_ID}/"' in response.content.decode()
    again = site.store.get("again")
    assert (again.retry_of, again.title, again.state) == (JOB_ID, "Anew", State.QUEUED)
    [(job_id, status, who)] = CALLS
    assert (job_id, status.title, who) == (JOB_ID, "Draw", "staff")
    assert site.store.get(JOB_ID).state == State.FAILED


def test_the_link_is_the_kits_to_make(staff, site):
    RESULT[:] = [JobStatus(job_id="again", state=State.QUEUED, retry_of="another")]
    post(staff)
    assert site.store.get("again").retry_of == JOB_ID


def test_a_link_that_is_there_is_not_written_again(staff, site):
    site.store.save("again", JobStatus(retry_of=JOB_ID))
    RESULT[:] = ["again"]
    site.storage.calls.clear()
    post(staff)
    assert site.storage.calls == {"read": 2, "write": 2}  # the writes are of the old job: see test_retry_once


def test_a_job_that_is_recorded_a_moment_later_is_linked_as_well(staff, site, monkeypatch):
    RESULT[:] = ["again"]
    pauses = []

    def pause(seconds):
        pauses.append(seconds)
        if len(pauses) == 2:
            put(site, "again")

    monkeypatch.setattr(JobRetryView, "pause", staticmethod(pause))
    post(staff)
    assert site.store.get("again").retry_of == JOB_ID
    assert len(pauses) == 2


def test_one_that_is_not_recorded_for_long_is_not_waited_for(staff, site, monkeypatch):
    RESULT[:] = ["again"]
    pauses = []
    monkeypatch.setattr(JobRetryView, "pause", staticmethod(pauses.append))
    assert post(staff)["Location"] == "/jobs/again/"
    assert sum(pauses) < 0.5


def test_a_job_can_run_again_under_its_own_id(staff, site):
    RESULT[:] = [JOB_ID]
    assert post(staff)["Location"] == f"/jobs/{JOB_ID}/"
    assert site.store.get(JOB_ID).retry_of == ""


def test_a_class_without_the_field_is_no_trouble(staff, settings):
    RESULT[:] = ["again"]
    settings.JOBKIT = {"default": {"RETRY": f"{__name__}.retry", "STATUS_CLASS": "django_jobkit.jobs.Status"}}
    kit = in_a_dict()
    put(kit, state=State.FAILED)
    put(kit, "again")
    assert post(staff)["Location"] == "/jobs/again/"


class TestTheButton:
    @pytest.mark.parametrize(
        ("state", "expected"),
        [("failed", True), ("succeeded", True), ("running", False), ("queued", False), ("x", False)],
    )
    def test_is_there_for_what_has_ended(self, staff, site, state, expected):
        put(site, state=state)
        assert button(staff) is expected

    def test_is_there_for_who_may(self, viewer, site):
        assert not button(viewer)

    def test_is_there_where_the_site_can(self, staff, kit):
        put(kit, state=State.FAILED)
        assert not button(staff)


class TestTrouble:
    @pytest.mark.parametrize(
        ("result", "text"),
        [
            (ValidationError("Too old to be retried."), "Too old to be retried."),
            (RuntimeError("secret"), "It could not be retried. The site’s log says why."),
            (QueueFull("no"), "The queue takes no more jobs just now."),
            (None, "It could not be retried."),
            ("no id", "A job ID has"),
        ],
    )
    def test_is_a_message_on_the_jobs_page(self, staff, site, caplog, result, text):
        RESULT[:] = [result]
        response = post(staff, follow=True)
        assert response.redirect_chain == [(f"/jobs/{JOB_ID}/", 302)]
        [message] = shown(response)
        assert text in message
        assert "secret" not in response.content.decode()
        assert not [record for record in caplog.records if record.name == "django_jobkit.audit"]

    @pytest.mark.parametrize("state", ["running", "queued"])
    def test_a_job_that_has_not_ended_stays(self, staff, site, state):
        put(site, state=state)
        response = post(staff, follow=True)
        assert "can’t be retried" in shown(response)[0]
        assert not CALLS

    def test_a_site_that_cannot_says_so(self, staff, kit):
        put(kit, state=State.FAILED)
        assert "can’t be retried" in shown(post(staff, follow=True))[0]

    def test_without_messages_it_is_a_page(self, staff, site, settings):
        settings.MIDDLEWARE = [name for name in settings.MIDDLEWARE if "messages" not in name]
        put(site, state=State.RUNNING)
        assert post(staff).status_code == 409
        put(site, state=State.FAILED)
        RESULT[:] = [QueueFull("no")]
        assert post(staff).status_code == 429
        for error, status, text in (
            (ValidationError("Too old to be retried."), 409, "Too old to be retried."),
            (RuntimeError("secret"), 500, "It could not be retried. The site’s log says why."),
        ):
            RESULT[:] = [error]
            response = post(staff)
            assert response.status_code == status
            assert text in response.content.decode()
            assert "secret" not in response.content.decode()

    @pytest.mark.django_db(transaction=True)
    def test_a_full_queue_is_said_to_be_full_also_where_requests_are_transactions(self, site, monkeypatch):
        monkeypatch.setitem(connections["default"].settings_dict, "ATOMIC_REQUESTS", True)

        def full(job_id):
            raise QueueFull("no")

        RESULT[:] = [lambda: site.enqueue(full)]
        response = post(client_of(user("root", is_superuser=True, is_staff=True)), follow=True)
        assert "The queue takes no more jobs just now." in shown(response)[0]
        assert site.store.get(JOB_ID).retried_as == ""

    def test_a_new_job_whose_record_cannot_be_linked_is_shown_all_the_same(self, staff, site, caplog):
        RESULT[:] = ["not-recorded"]
        assert post(staff)["Location"] == "/jobs/not-recorded/"
        put(site, state=State.FAILED)
        put(site, "broken", data=b"{")
        RESULT[:] = ["broken"]
        assert post(staff)["Location"] == "/jobs/broken/"
        assert "not recorded as a retry" in caplog.text


class TestWhoMay:
    def test_get_leads_to_the_jobs_page_and_does_nothing(self, staff, site):
        """Where one is sent after having to log in, and what the page of an outage has one try again."""
        response = staff.get(reverse("jobkit:retry", args=[JOB_ID]))
        assert (response.status_code, response["Location"]) == (302, f"/jobs/{JOB_ID}/")
        assert not CALLS

    def test_the_permission_is_one_of_its_own(self, db, site):
        client = client_of(user("ann", "view_job", "delete_job", is_staff=True))
        assert post(client).status_code == 403
        assert not CALLS

    def test_the_function_may_refuse(self, staff, site):
        RESULT[:] = [PermissionDenied()]
        assert post(staff).status_code == 403

    def test_a_forged_request_does_nothing(self, db, site):
        client = Client(enforce_csrf_checks=True)
        client.force_login(user("root", is_superuser=True, is_staff=True))
        assert post(client).status_code == 403
        assert not CALLS

    def test_others_jobs_are_none(self, db, settings):
        settings.JOBKIT = {"default": {"RETRY": f"{__name__}.retry", "ACCESS": "django_jobkit.access.OwnerAccess"}}
        put(in_a_dict(), state=State.FAILED, owner="bob")
        assert post(client_of(user("ann"))).status_code == 404


def test_it_is_in_the_log_with_who_and_what_came_of_it(staff, site, caplog):
    with caplog.at_level(logging.INFO, "django_jobkit.audit"):
        post(staff)
    [record] = [record for record in caplog.records if record.name == "django_jobkit.audit"]
    assert (record.user, record.action, record.job_id, record.result) == ("staff", "retry", JOB_ID, "again")
