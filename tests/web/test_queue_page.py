"""What the in-process queues do, as a page and as JSON."""

from __future__ import annotations

import os

import pytest

from django_jobkit.backends import processwide
from tests.backends.conftest import BACKEND
from tests.backends.site_tasks import PATIENCE, hold, note, released, started
from tests.inprocess.helpers import eventually

COUNTS = {"backend", "kit", "state", "workers", "capacity", "depth", "delayed", "running", "recovering", "done"} | {
    *("failed", "refused", "oldest_wait"),
}


@pytest.fixture
def tasks(settings, kit):
    """A site with two backends, one of which records in another kit."""
    settings.JOBKIT = {"default": {}, "comics": {"PREFIX": "comics"}}
    started.clear()
    released.clear()
    settings.TASKS = {
        "default": {"BACKEND": BACKEND, "OPTIONS": {"WORKERS": 1, "BUFFER": 2, "DURABLE": False}},
        "comics": {"BACKEND": BACKEND, "OPTIONS": {"KIT": "comics", "DURABLE": False}},
    }
    yield
    released.set()
    processwide.forget_queues()


@pytest.fixture
def busy(tasks):
    hold.enqueue()
    assert started.wait(PATIENCE)
    note.enqueue(1)


def test_the_counts_of_this_process_are_there_for_programs(staff, busy):
    found = staff.get("/jobs/-/api/-/queue/").json()
    assert found["process"]["pid"] == os.getpid()
    (queue,) = found["queues"]
    assert set(queue) == COUNTS
    assert (queue["backend"], queue["state"], queue["workers"], queue["capacity"]) == ("default", "running", 1, 2)
    assert (queue["running"], queue["depth"], queue["done"], queue["failed"], queue["refused"]) == (1, 1, 0, 0, 0)
    assert queue["oldest_wait"] >= 0
    released.set()
    assert eventually(lambda: staff.get("/jobs/-/api/-/queue/").json()["queues"][0]["done"] == 2)


def test_and_for_people_with_the_process_they_are_of(staff, busy):
    html = staff.get("/jobs/-/queue/").content.decode()
    assert "1 of at most 2" in html
    assert "1 on 1 workers" in html
    assert f"These are the counts of process {os.getpid()} on " in html
    assert "comics" not in html


def test_a_queue_that_has_not_been_used_is_new(staff, tasks):
    assert "Not used yet" in staff.get("/jobs/-/queue/").content.decode()
    assert staff.get("/jobs/-/api/-/queue/").json()["queues"][0]["state"] == "new"
    assert processwide.queue_stats() == []


@pytest.mark.parametrize("tasks_setting", [None, {"default": {"BACKEND": "nowhere.Backend"}}])
def test_a_site_without_such_a_backend_has_none(staff, kit, settings, tasks_setting):
    if tasks_setting:
        settings.TASKS = tasks_setting
    assert staff.get("/jobs/-/api/-/queue/").json()["queues"] == []
    assert "No backend of this site runs tasks in this process." in staff.get("/jobs/-/queue/").content.decode()


def test_the_history_leads_there_where_there_is_a_queue(staff, tasks, settings):
    assert 'href="/jobs/-/queue/"' in staff.get("/jobs/").content.decode()
    settings.TASKS = {"default": {"BACKEND": BACKEND, "OPTIONS": {"KIT": "comics"}}}
    assert "/-/queue/" not in staff.get("/jobs/").content.decode()
