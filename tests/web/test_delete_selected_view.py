"""Deleting several jobs at once."""

from __future__ import annotations

import logging

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import translation

from django_jobkit.exceptions import StatusUnavailable
from tests.web.conftest import client_of, in_a_dict, put, user


@pytest.fixture
def jobs(kit):
    for n in range(1, 6):
        put(kit, f"job-{n}", title=f"Title {n}", state="running" if n == 1 else "succeeded")
    return kit


def post(client, *job_ids: str, confirm: bool = False, query: str = "", **kwargs):
    data = {"job": job_ids, **({"confirm": "yes"} if confirm else {})}
    return client.post(reverse("jobkit:delete-selected") + query, data, **kwargs)


def left(kit) -> set[str]:
    return {name.split("/")[1] for name in kit.storage.files}


def shown(response) -> list[str]:
    return [str(message) for message in response.context["messages"]]


class TestAsking:
    def test_it_names_how_many_and_which_and_deletes_nothing(self, staff, jobs):
        response = post(staff, "job-1", "job-3", "job-1")
        page = response.content.decode()
        assert response.status_code == 200
        assert "these 2 jobs" in page
        assert "Yes, delete 2 jobs" in page
        assert all(text in page for text in ("Title 1", "Title 3", ">job-1<", ">job-3<"))
        assert "Title 2" not in page
        assert "1 of them isn’t finished." in page
        assert left(jobs) == {f"job-{n}" for n in range(1, 6)}

    def test_one_is_one(self, staff, jobs):
        page = post(staff, "job-3").content.decode()
        assert "This job’s record" in page
        assert "Yes, delete 1 job<" in page

    def test_what_will_stay_is_named_as_well(self, staff, jobs):
        page = post(staff, "job-1", "gone").content.decode()
        assert "1 job that you selected will stay:" in page
        assert "There is no job with this ID." in page
        assert 'value="gone"' not in page

    def test_damaged_jobs_and_remains_can_be_deleted(self, staff, kit):
        put(kit, "broken", data=b"{")
        kit.storage.write("jobs/remains/x", b"")
        kit.ids_cache.invalidate("jobs")
        page = post(staff, "broken", "remains").content.decode()
        assert "Damaged record" in page
        assert "No status recorded" in page
        post(staff, "broken", "remains", confirm=True)
        assert not kit.storage.files

    def test_the_way_back_has_the_filters(self, staff, jobs):
        assert (
            'href="/jobs/?state=running&amp;page=2"'
            in post(staff, "job-1", query="?state=running&page=2").content.decode()
        )

    def test_a_hostile_title_is_a_text(self, staff, kit):
        put(kit, "job-1", title="<script>alert(1)</script>")
        assert "<script>alert" not in post(staff, "job-1").content.decode()


class TestDeleting:
    def test_it_deletes_them_says_so_and_returns_to_the_filtered_list(self, staff, jobs):
        response = post(staff, "job-1", "job-3", confirm=True, query="?q=title&page=9", follow=True)
        assert response.redirect_chain == [("/jobs/?q=title&page=9", 302)]
        assert shown(response) == ["2 jobs have been deleted."]
        assert left(jobs) == {"job-2", "job-4", "job-5"}

    def test_after_the_last_row_of_the_last_page_one_lands_on_a_real_page(self, staff, jobs):
        response = post(staff, "job-1", confirm=True, query="?per_page=4&page=2", follow=True)
        page = response.content.decode()
        assert shown(response) == ["Job job-1 has been deleted."]
        assert page.count('name="job"') == 4

    def test_what_fails_is_said_and_the_rest_is_done(self, staff, jobs, monkeypatch):
        from django_jobkit.exceptions import StorageUnavailable

        delete = jobs.history.delete

        def fail_once(job_id):
            if job_id == "job-2":
                raise StorageUnavailable("secret bucket")
            return delete(job_id)

        monkeypatch.setattr(jobs.history, "delete", fail_once)
        response = post(staff, "job-1", "job-2", "gone", confirm=True, follow=True)
        texts = shown(response)
        assert "Job gone has not been deleted. There is no job with this ID." in texts
        assert any(text.startswith("Job job-2 has not been deleted. The storage") for text in texts)
        assert "Job job-1 has been deleted." in texts
        assert "secret" not in response.content.decode()
        assert left(jobs) == {"job-2", "job-3", "job-4", "job-5"}

    def test_an_unreadable_job_stays(self, staff, jobs):
        jobs.storage.read_fails = True
        response = post(staff, "job-1", confirm=True)
        assert response.status_code == 302
        assert "job-1" in left(jobs)

    def test_no_more_than_fit_on_the_largest_page(self, staff, settings):
        settings.JOBKIT = {"default": {"PER_PAGE": 2, "MAX_PER_PAGE": 2}}
        kit = in_a_dict()
        for n in range(3):
            put(kit, f"job-{n}")
        post(staff, "job-0", "job-1", "job-2", confirm=True)
        assert left(kit) == {"job-2"}

    def test_nothing_selected_is_a_hint(self, staff, jobs):
        response = post(staff, query="?page=2", follow=True)
        assert response.redirect_chain == [("/jobs/?page=2", 302)]
        assert shown(response) == ["No job was selected."]

    def test_what_is_no_id_is_400(self, staff, jobs):
        assert post(staff, "job-1", "../etc", confirm=True).status_code == 400
        assert "job-1" in left(jobs)

    def test_a_forged_request_deletes_nothing(self, db, jobs):
        client = Client(enforce_csrf_checks=True)
        client.force_login(user("root", is_superuser=True, is_staff=True))
        assert post(client, "job-1", confirm=True).status_code == 403
        assert "job-1" in left(jobs)

    def test_no_url_leads_elsewhere(self, staff, jobs):
        response = post(staff, "job-1", confirm=True, query="?next=//evil.example/&/evil")
        assert response["Location"].startswith("/jobs/?")

    def test_each_is_in_the_log_with_who(self, staff, jobs, caplog):
        with caplog.at_level(logging.INFO, "django_jobkit.audit"):
            post(staff, "job-1", "job-3", confirm=True)
        assert [(record.user, record.action, record.job_id, record.kit) for record in caplog.records] == [
            ("staff", "delete", "job-1", "default"),
            ("staff", "delete", "job-3", "default"),
        ]


def test_others_jobs_are_none(db, settings):
    settings.JOBKIT = {"default": {"ACCESS": "django_jobkit.access.OwnerAccess"}}
    kit = in_a_dict()
    put(kit, "mine", owner="ann")
    put(kit, "yours", owner="bob")
    client = client_of(user("ann"))
    page = post(client, "mine", "yours").content.decode()
    assert "There is no job with this ID." in page
    post(client, "mine", "yours", confirm=True)
    assert left(kit) == {"yours"}


def test_seeing_is_not_deleting(viewer, jobs):
    assert post(viewer, "job-1", confirm=True).status_code == 403
    assert "job-1" in left(jobs)


def test_why_a_job_cannot_be_deleted_is_said_in_the_readers_language(staff, kit, monkeypatch):
    put(kit, "good")

    def get(job_id):
        if job_id == "bad":
            raise StatusUnavailable("no network")
        return kit.store.read(job_id)[0]

    monkeypatch.setattr(kit.store, "get", get)
    url = reverse("jobkit:delete-selected")
    with translation.override("ja"):
        html = staff.post(url, {"job": ["good", "bad"]}).content.decode()
    assert "ジョブ" in html
    assert "The storage that holds the jobs" not in html
