"""Submitting a job from a form and by a program: who may, what comes of it, and what is answered when it can't be."""

from __future__ import annotations

import json
import re

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.test import Client
from django.urls import NoReverseMatch

from django_jobkit.access import OwnerAccess
from django_jobkit.backends import processwide, stop_queues
from django_jobkit.backends.compat import task_backends
from django_jobkit.jobs import JobStatus, State, ids
from tests.backends.conftest import BACKEND
from tests.backends.site_tasks import PATIENCE, hold, ran, released, started
from tests.inprocess.helpers import eventually
from tests.web.conftest import client_of, in_a_dict, user
from tests.web.submit_site import handed_over

AS_JSON = {"HTTP_ACCEPT": "application/json"}
FORM = {"path": "a.csv", "depth": "2"}


@pytest.fixture(autouse=True)
def _site(settings, kit):
    settings.ROOT_URLCONF = "tests.web.submit_site"
    options = {"WORKERS": 1, "BUFFER": 0, "DURABLE": False}
    settings.TASKS = {"default": {"BACKEND": BACKEND, "OPTIONS": options}}
    for event in (started, released):
        event.clear()
    ran.clear()
    yield
    released.set()
    processwide.forget_queues()


@pytest.fixture
def submitter(transactional_db):
    """May submit jobs and see them; as on a site, no transaction is around its requests."""
    return client_of(user("ann", "add_job", "view_job", is_staff=True))


@pytest.fixture
def full():
    hold.enqueue()
    assert started.wait(PATIENCE)


def only_job(kit):
    (row,) = [row for row in kit.history.latest(10) if row.status.command != "hold"]
    return row.status


# --- a browser -------------------------------------------------------------------------------------------------------


def test_a_form_becomes_a_job_whose_page_comes_next(submitter, kit):
    html = submitter.get("/new/").content.decode()
    assert 'name="path"' in html
    assert "csrfmiddlewaretoken" in html
    response = submitter.post("/new/", FORM)
    job_id = only_job(kit).job_id
    assert (response.status_code, response["Location"]) == (302, f"/jobs/{job_id}/")
    assert eventually(lambda: only_job(kit).state == State.SUCCEEDED)
    assert ran == [(job_id, "a.csv", 2)]
    assert "Summary of a.csv" in submitter.get(response["Location"]).content.decode()


def test_the_job_is_its_submitters_and_has_what_the_view_says_of_it(submitter, kit):
    submitter.post("/by-position/", FORM)
    assert eventually(lambda: only_job(kit).state == State.SUCCEEDED)
    assert (only_job(kit).owner, only_job(kit).command) == ("ann", "summarize")


class Numbered(OwnerAccess):
    """Knows people by their numbers, since names may change hands."""

    def identity(self, request):
        return f"user-{request.user.pk}" if request.user.is_authenticated else ""


def test_the_owner_is_who_the_access_class_takes_for_it(submitter, settings, transactional_db):
    settings.JOBKIT = {"default": {"ACCESS": f"{__name__}.Numbered"}}
    kit = in_a_dict()
    person = user("bob")
    client = client_of(person)
    job_id = client.post("/new/", FORM, **AS_JSON).json()["job_id"]
    assert kit.store.get(job_id).owner == f"user-{person.pk}"
    assert client.get(f"/jobs/{job_id}/").status_code == 200


def backend():
    return task_backends["default"]


def test_what_the_form_refuses_stands_in_it_again(submitter, kit):
    response = submitter.post("/new/", {"path": "a path that is far too long for it"})
    assert response.status_code == 400
    html = response.content.decode()
    assert "at most 20 characters" in html
    assert "a path that is far too long for it" in html
    assert kit.history.ids() == []


def test_a_view_without_a_form_is_a_button(submitter, kit):
    html = submitter.get("/wait/").content.decode()
    assert "<h1>Wait</h1>" in html
    assert "<button" in html
    assert submitter.post("/wait/").status_code == 302
    assert started.wait(PATIENCE)


def test_the_arguments_and_the_next_page_may_be_the_views_own(submitter, kit):
    response = submitter.post("/by-position/", FORM)
    job_id = only_job(kit).job_id
    assert response["Location"] == f"/thanks/{job_id}/"
    assert eventually(lambda: ran == [(job_id, "a.csv", 5)])


def test_a_task_may_be_a_function_that_hands_the_job_over(submitter, kit):
    handed_over.clear()
    assert submitter.post("/hand-over/").status_code == 302
    assert handed_over == [only_job(kit).job_id]


def test_a_view_without_a_task_says_that_it_needs_one(submitter, kit):
    with pytest.raises(ImproperlyConfigured, match=r"ForgetfulView needs a task, or a submit\(\) of its own"):
        submitter.post("/forgetful/")


def test_the_page_may_have_a_template_of_the_sites_own(submitter, settings, tmp_path):
    (tmp_path / "plain_submit.html").write_text("plain: {{ form.path }} {{ problem }}")
    settings.TEMPLATES = [{**settings.TEMPLATES[0], "DIRS": [tmp_path]}]
    assert submitter.get("/plain/").content.decode().startswith("plain: <input")


def test_without_a_page_to_go_to_nothing_is_submitted(submitter, kit, settings):
    settings.ROOT_URLCONF = "tests.web.submit_site_without_pages"
    with pytest.raises(NoReverseMatch):
        submitter.post("/new/", FORM)
    assert kit.history.ids() == []


# --- a program -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("as_json", [False, True])
def test_a_program_is_told_the_id_and_where_to_follow_the_job(submitter, kit, as_json):
    if as_json:
        response = submitter.post("/new/", {"path": "a.csv", "depth": 2}, content_type="application/json")
    else:
        response = submitter.post("/new/", FORM, **AS_JSON)
    assert response.status_code == 202
    job_id = response.json()["job_id"]
    assert ids.is_valid(job_id)
    assert response.json() == {
        "job_id": job_id,
        "state": "queued",
        "urls": {
            "detail": f"/jobs/{job_id}/",
            "status": f"/jobs/{job_id}/status/",
            "api": f"/jobs/-/api/{job_id}/",
        },
    }
    assert response["Location"] == f"/jobs/{job_id}/status/"
    for url in response.json()["urls"].values():
        assert submitter.get(url).status_code == 200
    assert eventually(lambda: ran == [(job_id, "a.csv", 2)])


def test_a_program_is_told_what_the_form_refuses_by_field(submitter, kit):
    response = submitter.post("/new/", {"depth": "x"}, **AS_JSON)
    assert response.status_code == 400
    error = response.json()["error"]
    assert error["code"] == "invalid_form"
    assert {name: found[0]["code"] for name, found in error["fields"].items()} == {
        "path": "required",
        "depth": "invalid",
    }


@pytest.mark.parametrize("body", ["{", "[]", "7", '"x"', "[" * 10_000, b"\xff"])
def test_a_body_that_is_no_json_object_is_400(submitter, kit, body):
    response = submitter.generic("POST", "/new/", body, content_type="application/json")
    assert (response.status_code, response.json()["error"]["code"]) == (400, "invalid_json")


# --- who may ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["get", "post"])
def test_who_is_unknown_has_to_log_in(db, kit, method):
    client = Client()
    response = getattr(client, method)("/new/", FORM)
    assert response["Location"].startswith("/admin/login/?next=/new/")
    assert getattr(client, method)("/new/", FORM, **AS_JSON).status_code == 401
    assert kit.history.ids() == []


@pytest.mark.parametrize("method", ["get", "post"])
def test_seeing_jobs_is_not_submitting_them(viewer, kit, method):
    assert getattr(viewer, method)("/new/", FORM).status_code == 403
    response = getattr(viewer, method)("/new/", FORM, **AS_JSON)
    assert (response.status_code, response.json()["error"]["code"]) == (403, "forbidden")
    assert kit.history.ids() == []


def test_a_request_that_another_sites_page_may_have_forged_is_refused(submitter, kit):
    browser = Client(enforce_csrf_checks=True)
    browser.cookies = submitter.cookies
    assert browser.post("/new/", FORM).status_code == 403
    answer = browser.post("/new/", json.dumps(FORM), content_type="application/json")
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "csrf_failed")
    assert kit.history.ids() == []

    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', browser.get("/new/").content.decode())[1]
    assert browser.post("/new/", {**FORM, "csrfmiddlewaretoken": token}).status_code == 302
    assert eventually(lambda: backend().stats().done == 1 and backend().stats().running == 0)
    headers = {"HTTP_X_CSRFTOKEN": token}
    assert browser.post("/new/", json.dumps(FORM), content_type="application/json", **headers).status_code == 202


def test_the_form_works_where_the_site_has_no_csrf_middleware(submitter, settings):
    settings.MIDDLEWARE = [name for name in settings.MIDDLEWARE if "csrf" not in name]
    browser = Client(enforce_csrf_checks=True)
    browser.cookies = submitter.cookies
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', browser.get("/new/").content.decode())[1]
    assert browser.post("/new/", FORM).status_code == 403
    assert browser.post("/new/", {**FORM, "csrfmiddlewaretoken": token}).status_code == 302


# --- when it can't be ------------------------------------------------------------------------------------------------


def test_a_full_queue_is_429_and_leaves_nothing_behind(submitter, kit, full):
    files = dict(kit.storage.files)
    for _ in range(3):
        response = submitter.post("/new/", FORM, **AS_JSON)
        assert (response.status_code, response["Retry-After"]) == (429, "10")
        assert response.json()["error"]["code"] == "queue_full"
    assert kit.storage.files.keys() == files.keys()
    assert backend().stats().refused == 3


def test_a_browser_gets_back_what_was_typed(submitter, full):
    response = submitter.post("/new/", FORM)
    assert (response.status_code, response["Retry-After"]) == (429, "10")
    html = response.content.decode()
    assert "The queue takes no more jobs just now." in html
    assert 'value="a.csv"' in html


def test_a_queue_that_stops_is_503(submitter, kit):
    processwide.service_of(backend())
    stop_queues(PATIENCE)
    response = submitter.post("/new/", FORM, **AS_JSON)
    assert (response.status_code, response["Retry-After"]) == (503, "10")
    assert response.json()["error"]["code"] == "queue_stopped"
    assert submitter.post("/new/", FORM).status_code == 503
    assert kit.history.ids() == []


def test_a_storage_that_fails_is_503(submitter, kit):
    kit.storage.write_fails = True
    response = submitter.post("/new/", FORM, **AS_JSON)
    assert (response.status_code, response["Retry-After"]) == (503, "10")
    assert response.json()["error"]["code"] == "unavailable"
    assert submitter.post("/new/", FORM).status_code == 503


def test_a_queue_that_fills_up_in_the_last_moment_leaves_a_job_that_says_so(submitter, kit, full, monkeypatch):
    monkeypatch.setattr("django_jobkit.views.JobSubmitView.refuse_if_full", lambda self, task: None)
    assert submitter.post("/new/", FORM, **AS_JSON).status_code == 429
    status = only_job(kit)
    assert (status.state, status.title) == (State.FAILED, "About a.csv")
    assert status.error.startswith("It could not be queued. QueueFull")


def test_a_site_with_a_transaction_around_each_request_gets_the_same_answers(submitter, kit, full, settings):
    """Otherwise the job would be handed over after the view, and a full queue be a 500."""
    connection.settings_dict["ATOMIC_REQUESTS"] = True
    try:
        assert submitter.post("/new/", FORM, **AS_JSON).status_code == 429
        released.set()
        assert eventually(lambda: backend().stats().running == 0)
        assert submitter.post("/new/", FORM, **AS_JSON).status_code == 202
    finally:
        connection.settings_dict["ATOMIC_REQUESTS"] = False


def test_a_job_that_exists_is_409(submitter, kit, monkeypatch):
    kit.store.save("mine", JobStatus(state=State.QUEUED))
    monkeypatch.setattr(
        "tests.web.submit_site.SummaryView.submit",
        lambda self, form: self.kit.enqueue(self.get_task(), ["a.csv"], job_id="mine"),
    )
    response = submitter.post("/new/", FORM, **AS_JSON)
    assert (response.status_code, response.json()["error"]["code"]) == (409, "job_exists")
