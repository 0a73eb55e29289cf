from __future__ import annotations

import threading
from dataclasses import dataclass

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.files.base import ContentFile
from django.test import override_settings

import django_jobkit
from django_jobkit.exceptions import InvalidJobID
from django_jobkit.jobs import JobStatus, State, json_field
from django_jobkit.kit import jobkits
from django_jobkit.signals import status_deleted, status_saved


@dataclass(kw_only=True)
class ComicStatus(JobStatus):
    pages: int = json_field(0)


def row(job_id: str) -> str:
    return f"row of {job_id}"


@pytest.fixture(autouse=True)
def _fresh_site(request):
    memory = {"BACKEND": "django.core.files.storage.InMemoryStorage"}
    locmem = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": request.node.nodeid}
    with override_settings(STORAGES={"default": memory, "media": memory}, CACHES={"default": locmem}):
        yield


@pytest.fixture
def kit():
    return jobkits["default"]


def test_a_kit_is_made_once_for_its_alias(kit):
    assert jobkits["default"] is kit
    assert kit.store is kit.store
    assert django_jobkit.jobkits is jobkits


@override_settings(JOBKIT={"default": {}, "comics": {"PREFIX": "comics"}})
def test_the_kits_are_those_of_the_settings():
    assert list(jobkits) == ["default", "comics"]
    assert "comics" in jobkits
    assert "music" not in jobkits
    with pytest.raises(ImproperlyConfigured, match="no JOBKIT"):
        jobkits["music"]


def test_a_recorded_job_is_in_the_history_at_once(kit):
    assert kit.history.page(1, 20).items == []
    kit.recorder.record("a", JobStatus(state=State.QUEUED, title="t"))
    assert [item.status.title for item in kit.history.page(1, 20).items] == ["t"]


def test_a_new_job_costs_the_history_no_new_listing(kit):
    kit.recorder.record("a", JobStatus(state=State.QUEUED))
    kit.history.page(1, 20)
    kit.recorder.record("b", JobStatus(state=State.QUEUED))
    kit.history.ids_cache.load("jobs", lambda: pytest.fail("no listing is needed"))


def test_a_change_of_a_job_is_in_the_history_at_once(kit):
    kit.recorder.record("a", JobStatus(state=State.QUEUED))
    kit.history.page(1, 20)
    kit.recorder.record("a", JobStatus(state=State.SUCCEEDED))
    assert [item.status.state for item in kit.history.page(1, 20).items] == ["succeeded"]


def test_a_deleted_job_is_gone_with_its_outputs_at_once(kit):
    kit.recorder.record("a", JobStatus(state=State.QUEUED))
    kit.django_storage.save(kit.output_name("a", "chart.svg"), ContentFile(b"<svg/>"))
    kit.history.page(1, 20)
    assert kit.history.delete("a") == 2
    assert kit.history.page(1, 20).items == []
    assert not kit.django_storage.exists("jobs/a/chart.svg")


@override_settings(JOBKIT={"default": {}, "comics": {"STORAGE": "media", "PREFIX": "/a/comics/", "CACHE": None}})
def test_each_alias_is_a_history_of_its_own():
    comics = jobkits["comics"]
    comics.recorder.record("c", JobStatus(state=State.QUEUED))
    assert comics.django_storage.exists("a/comics/c/status.json")
    assert jobkits["default"].history.page(1, 20).items == []
    assert [item.job_id for item in comics.history.page(1, 20).items] == ["c"]


def test_two_kits_share_one_cache_server_without_mixing():
    with override_settings(JOBKIT={"default": {}, "comics": {"PREFIX": "comics"}}):
        jobkits["default"].recorder.record("a", JobStatus(state=State.QUEUED, title="job"))
        jobkits["comics"].recorder.record("a", JobStatus(state=State.FAILED, title="comic"))
        for _ in range(2):
            assert [item.status.title for item in jobkits["default"].history.page(1, 9).items] == ["job"]
            assert [item.status.title for item in jobkits["comics"].history.page(1, 9).items] == ["comic"]


@override_settings(JOBKIT={"default": {"STATUS_CLASS": "tests.test_kit.ComicStatus", "LOAD": "tests.test_kit.row"}})
def test_classes_and_functions_are_set_by_their_paths(kit):
    kit = jobkits["default"]
    kit.store.save("a", ComicStatus(pages=7))
    assert kit.store.get("a").pages == 7
    assert kit.history.page(1, 20).items == ["row of a"]


@pytest.mark.parametrize(
    ("setting", "path", "part", "message"),
    [
        ("STATUS_CLASS", "tests.nowhere.Status", "store", "can't be imported"),
        ("STATUS_CLASS", "tests.test_kit.row", "store", "no subclass of Status"),
        ("LOAD", "tests.test_kit.nothing", "history", "can't be imported"),
        ("ACCESS", "nodots", "access", "can't be imported"),
    ],
)
def test_a_path_that_leads_nowhere_is_named(setting, path, part, message):
    with (
        override_settings(JOBKIT={"default": {setting: path}}),
        pytest.raises(ImproperlyConfigured, match=rf"JOBKIT\['default'\]\['{setting}'\].*{message}"),
    ):
        getattr(jobkits["default"], part)


def test_other_apps_are_told_what_was_saved_and_deleted(kit):
    told = []

    def on_saved(sender, kit, job_id, status, **kwargs):
        told.append(("saved", sender, kit, job_id, status.state))

    def on_deleted(sender, kit, job_id, **kwargs):
        told.append(("deleted", kit, job_id))

    status_saved.connect(on_saved)
    status_deleted.connect(on_deleted)
    try:
        kit.recorder.record("x/a", JobStatus(state=State.QUEUED))
        kit.history.delete("a")
    finally:
        status_saved.disconnect(on_saved)
        status_deleted.disconnect(on_deleted)
    assert told == [("saved", JobStatus, "default", "a", "queued"), ("deleted", "default", "a")]


def test_a_listener_that_fails_fails_no_job(kit, caplog):
    def broken(**kwargs):
        raise RuntimeError("in a receiver")

    status_saved.connect(broken)
    try:
        kit.store.save("a", JobStatus())
    finally:
        status_saved.disconnect(broken)
    assert kit.store.get("a")
    assert "in a receiver" in caplog.text


@pytest.mark.parametrize("name", ["chart.svg", "pages/1.png", "with space.txt", "海.txt"])
def test_an_output_is_in_the_jobs_directory(kit, name):
    assert kit.output_name("a", name) == f"jobs/a/{name}"


@pytest.mark.parametrize(
    "name", ["", "..", "../b/status.json", "a/../../b", "/etc/passwd", "a//b", "a\\b", "a\0", "./a"]
)
def test_a_name_that_leads_out_of_the_jobs_directory_is_refused(kit, name):
    with pytest.raises(ValueError, match="no name of a file"):
        kit.output_name("a", name)


def test_the_job_directory_of_an_invalid_id_is_refused(kit):
    with pytest.raises(InvalidJobID):
        kit.job_dir("..")


def test_threads_get_one_and_the_same_kit():
    jobkits.forget()
    found = []
    threads = [threading.Thread(target=lambda: found.append(jobkits["default"])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 1
