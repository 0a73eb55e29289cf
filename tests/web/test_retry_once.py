"""However often a button is clicked, and by however many people, one retry is one run."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from html import unescape

import pytest
from django.core.files.storage import FileSystemStorage
from django.test import RequestFactory
from django.urls import reverse

from django_jobkit import signals
from django_jobkit.jobs import JobStatus, State, retries
from django_jobkit.kit import jobkits
from django_jobkit.storages.generic import GenericJobStorage
from django_jobkit.views import JobRetryView
from tests.web.conftest import JOB_ID, in_a_dict, put

CALLS: list[str] = []
DO: list = []


def retry(job_id, status, request):
    CALLS.append(job_id)
    return DO[0](job_id) if DO else fresh(job_id)


def fresh(job_id: str) -> str:
    """A new job, which has failed by the time that anybody looks."""
    new_id = f"again-{len(CALLS)}"
    jobkits["default"].store.save(new_id, JobStatus(state=State.FAILED, title="Anew"))
    return new_id


@pytest.fixture(autouse=True)
def _calls(settings):
    CALLS.clear()
    DO.clear()
    settings.JOBKIT = {"default": {"RETRY": f"{__name__}.retry"}}


@pytest.fixture
def site():
    kit = in_a_dict()
    put(kit, state=State.FAILED, title="Draw", error="disk full")
    return kit


@pytest.fixture
def at_once(monkeypatch):
    """Nobody waits for the retry of somebody else."""
    monkeypatch.setattr(JobRetryView, "pause", staticmethod(lambda seconds: None))


def page(client, job_id: str = JOB_ID) -> str:
    return unescape(client.get(reverse("jobkit:detail", args=[job_id])).content.decode())


def seen(client, job_id: str = JOB_ID) -> dict[str, str]:
    """What the form of the job's page sends."""
    return {"seen": re.search(r'name="seen" value="([^"]*)"', page(client, job_id))[1]}


def post(client, data: dict[str, str], job_id: str = JOB_ID, **kwargs):
    return client.post(reverse("jobkit:retry", args=[job_id]), data, **kwargs)


def shown(response) -> list[str]:
    return [str(message) for message in response.context["messages"]]


def test_the_second_click_leads_to_the_job_that_the_first_has_made(staff, site):
    form = seen(staff)
    assert post(staff, form)["Location"] == "/jobs/again-1/"
    staff.get("/jobs/again-1/")  # shows the first one's message
    response = post(staff, form, follow=True)
    assert response.redirect_chain == [("/jobs/again-1/", 302)]
    assert shown(response) == [f"{JOB_ID} has been retried already, as this job."]
    assert CALLS == [JOB_ID]


def test_the_old_job_says_what_it_was_retried_as_and_may_be_retried_again(staff, site):
    post(staff, seen(staff))
    html = page(staff)
    assert '<dt>Retried as</dt><dd><a href="/jobs/again-1/"><bdi>again-1</bdi></a>' in html
    assert "Retry again</button>" in html
    assert post(staff, seen(staff))["Location"] == "/jobs/again-2/"
    assert "again-2</bdi></a>" in page(staff)
    assert (site.store.get(JOB_ID).state, site.store.get(JOB_ID).error) == (State.FAILED, "disk full")


def test_a_retry_may_be_retried(staff, site):
    post(staff, seen(staff))
    assert post(staff, seen(staff, "again-1"), "again-1")["Location"] == "/jobs/again-2/"
    assert site.store.get("again-1").retry_of == JOB_ID
    assert site.store.get("again-1").retried_as == "again-2"


def test_of_many_requests_at_once_on_local_files_one_runs_it(settings, tmp_path):
    settings.JOBKIT = {"default": {**settings.JOBKIT["default"], "ACCESS": "tests.web.everybody.Everybody"}}
    settings.STORAGES = {
        **settings.STORAGES,
        "default": {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": str(tmp_path), "base_url": "/media/"},
        },
    }
    kit = jobkits["default"]
    put(kit, state=State.FAILED)
    clicks = 4
    start = threading.Barrier(clicks)
    refused = threading.Semaphore(0)
    finished = threading.Event()

    def slow(job_id: str) -> str:
        for _ in range(clicks - 1):
            assert refused.acquire(timeout=20)  # all others have found the claim
        return fresh(job_id)

    def pause(seconds: float) -> None:
        refused.release()
        assert finished.wait(20)

    DO[:] = [slow]
    view = JobRetryView.as_view(pause=pause)
    form = {"seen": retries.seen_of(kit.store.get(JOB_ID))}

    def click(_number: int) -> str:
        request = RequestFactory().post("/", form)
        request._dont_enforce_csrf_checks = True
        start.wait(20)
        location = view(request, job_id=JOB_ID)["Location"]
        finished.set()
        return location

    with ThreadPoolExecutor(clicks) as pool:
        found = list(pool.map(click, range(clicks)))
    assert found == ["/jobs/again-1/"] * clicks
    assert CALLS == [JOB_ID]


def test_who_has_waited_for_long_is_told(staff, site, at_once):
    retries.claim(site.store, JOB_ID, None, site.recorder.now())
    response = post(staff, {}, follow=True)
    assert response.redirect_chain == [(f"/jobs/{JOB_ID}/", 302)]
    assert shown(response) == ["This job is just being retried. Load this page again soon."]
    assert not CALLS


def test_the_claim_of_a_process_that_died_ends(staff, site, at_once):
    form = seen(staff)
    retries.claim(site.store, JOB_ID, None, site.recorder.now())
    now = site.recorder.now()
    site.store.clock = lambda: now + timedelta(seconds=retries.CLAIM_SECONDS + 1)
    assert post(staff, form)["Location"] == "/jobs/again-1/"


def test_a_retry_that_failed_can_be_tried_again_with_the_same_form(staff, site):
    def fail(job_id: str) -> str:
        raise RuntimeError("no queue")

    form = seen(staff)
    before = site.storage.files["jobs/" + JOB_ID + "/status.json"].data
    DO[:] = [fail]
    post(staff, form)
    DO.clear()
    after = site.storage.files["jobs/" + JOB_ID + "/status.json"].data
    assert re.sub(rb'"updated_at":"[^"]*"', b"", after) == re.sub(rb'"updated_at":"[^"]*"', b"", before)
    assert post(staff, form)["Location"] == "/jobs/again-2/"


def test_whoever_waited_for_a_retry_that_failed_makes_one(staff, site, monkeypatch):
    form = seen(staff)
    held = retries.claim(site.store, JOB_ID, None, site.recorder.now())
    monkeypatch.setattr(JobRetryView, "pause", staticmethod(lambda _: retries.release(site.store, JOB_ID, held)))
    assert post(staff, form)["Location"] == "/jobs/again-1/"


def test_a_job_that_runs_again_under_its_own_id_does_so_once(staff, site):
    def same(job_id: str) -> str:
        site.enqueue(print, job_id=job_id)
        status = site.store.get(job_id)
        status.state = State.FAILED  # by an engine that is faster than the second click
        site.store.save(job_id, status)
        return job_id

    DO[:] = [same]
    form = seen(staff)
    post(staff, form)
    response = post(staff, form, follow=True)
    assert response.redirect_chain == [(f"/jobs/{JOB_ID}/", 302)]
    assert "This job has been retried already." in shown(response)
    assert len(CALLS) == 1
    assert "Retried as" not in page(staff)
    post(staff, seen(staff))
    assert len(CALLS) == 2


def test_a_form_that_says_nothing_runs_a_job_that_was_never_retried(staff, site):
    """As one in a template that a site has made when there was no such field."""
    assert post(staff, {})["Location"] == "/jobs/again-1/"
    assert post(staff, {})["Location"] == "/jobs/again-1/"
    assert CALLS == [JOB_ID]
    assert post(staff, {}, "again-1")["Location"] == "/jobs/again-2/"


@pytest.mark.parametrize("text", ["", " ", "x", "2026-08-31T10:20:30Z again-1 ", "9" * 5000, "\0<script>", "' "])
def test_whatever_else_a_form_says_runs_nothing(staff, site, text):
    assert post(staff, {"seen": text})["Location"] == f"/jobs/{JOB_ID}/"
    assert not CALLS


def test_a_storage_without_compare_and_swap_keeps_two_clicks_apart(staff, tmp_path):
    kit = jobkits["default"]
    kit.storage = GenericJobStorage(FileSystemStorage(tmp_path, allow_overwrite=True))
    put(kit, state=State.FAILED)
    form = seen(staff)
    assert [post(staff, form)["Location"] for _ in range(2)] == ["/jobs/again-1/"] * 2
    assert CALLS == [JOB_ID]


def test_nothing_runs_that_cannot_be_claimed(staff, site):
    form = seen(staff)
    site.storage.write_fails = True
    response = post(staff, form)
    site.storage.write_fails = False
    assert response["Location"] == f"/jobs/{JOB_ID}/"
    assert not CALLS
    assert "doesn’t answer as it should" in page(staff)


def test_a_retry_that_cannot_be_noted_is_shown_all_the_same_and_not_made_twice(staff, site, at_once, caplog):
    def and_then_fail(job_id: str) -> str:
        new_id = fresh(job_id)
        site.storage.write_fails = True
        return new_id

    DO[:] = [and_then_fail]
    form = seen(staff)
    assert post(staff, form)["Location"] == "/jobs/again-1/"
    assert "is not recorded as retried as 'again-1'" in caplog.text
    site.storage.write_fails = False
    assert post(staff, form)["Location"] == f"/jobs/{JOB_ID}/"
    assert CALLS == [JOB_ID]


def test_a_hostile_record_leads_nowhere(staff, site):
    put(site, state=State.FAILED, retried_as="//evil.example/<script>")
    assert not [href for href in re.findall(r'href="([^"]*)"', page(staff)) if "evil.example" in href]
    assert "<script>" not in client_text(staff)
    assert post(staff, {})["Location"] == f"/jobs/{JOB_ID}/"


def client_text(client) -> str:
    html = client.get(reverse("jobkit:detail", args=[JOB_ID])).content.decode()
    return html[html.index("jobkit-details") :]


def test_nobody_is_told_that_the_old_job_was_saved(staff, site):
    """It is what it was: a second mail that it has failed would be wrong."""
    told = []

    def listen(job_id, **kwargs):
        told.append(job_id)

    signals.status_saved.connect(listen)
    try:
        post(staff, seen(staff))
    finally:
        signals.status_saved.disconnect(listen)
    assert set(told) == {"again-1"}


def test_the_history_shows_the_record_as_it_is_now(staff, site):
    put(site, title="Old", state=State.SUCCEEDED)
    staff.get(reverse("jobkit:history"))  # caches the row
    then = site.store.clock() + timedelta(days=1)
    site.store.clock = lambda: then
    post(staff, seen(staff))
    html = staff.get(reverse("jobkit:history")).content.decode()
    row = html[html.index(f'value="{JOB_ID}"') :].split("</tr>")[0]
    assert f'datetime="{then:%Y-%m-%dT%H:%M}' in row


def test_the_notes_are_no_fields_of_the_site(staff, site, at_once):
    retries.claim(site.store, JOB_ID, None, site.recorder.now())
    details = client_text(staff).split("</dl>")[0]
    assert "retry_claim" not in details


def test_what_was_seen_comes_back_from_a_browser_whatever_the_record_holds(staff, site):
    put(site, state=State.FAILED, retried_as="two\nlines and a space")
    form = {key: value.replace("\n", "\r\n") for key, value in seen(staff).items()}
    assert post(staff, form)["Location"] == "/jobs/again-1/"
