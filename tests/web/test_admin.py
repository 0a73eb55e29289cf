"""The pages in the admin: found on its index and in its sidebar, under its URLs, for who may."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from django.contrib import admin
from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.test import Client
from django.urls import include, path, reverse

from django_jobkit.admin import register
from django_jobkit.jobs import State
from tests.web.conftest import JOB_ID, client_of, in_a_dict, put, user

HISTORY = "/admin/django_jobkit/job/"


class own_admin:
    """URLs with an admin site of its own, made for the kits that are configured just then."""

    def __init__(self):
        site = admin.AdminSite(name="own")
        register(site)
        self.urlpatterns = [path("admin/", admin.site.urls), path("own/", site.urls)]


class only_admin:
    urlpatterns = [path("admin/", admin.site.urls)]


class mine_and_admin:
    from django_jobkit.views import JobHistoryView

    urlpatterns = [path("admin/", admin.site.urls), path("mine/", JobHistoryView.as_view())]


class both:
    urlpatterns = [path("admin/", admin.site.urls), path("jobs/", include("django_jobkit.urls"))]


@pytest.fixture(autouse=True)
def _only_the_admin(settings):
    settings.ROOT_URLCONF = only_admin


def html(client, url: str) -> str:
    response = client.get(url)
    assert response.status_code == 200
    return response.content.decode()


class TestTheIndex:
    def test_jobs_are_on_it(self, viewer, kit):
        assert f'<a href="{HISTORY}"' in html(viewer, "/admin/").partition('id="content"')[2]
        assert f'<a href="{HISTORY}"' in html(viewer, "/admin/django_jobkit/")

    def test_and_not_for_who_may_not_see_them(self, stranger, kit):
        assert HISTORY not in html(stranger, "/admin/")

    def test_the_access_object_decides(self, stranger, settings):
        settings.JOBKIT = {"default": {"ACCESS": "django_jobkit.access.OwnerAccess"}}
        assert HISTORY in html(stranger, "/admin/")

    def test_nothing_is_added_or_changed_there(self, db, kit):
        root = client_of(user("root", is_staff=True, is_superuser=True))
        page = html(root, "/admin/").partition("django_jobkit")[2].partition("</table>")[0]
        assert "add/" not in page
        assert "changelink" not in page


class TestThePages:
    @pytest.mark.parametrize("name", ["", f"{JOB_ID}/", f"{JOB_ID}/delete/"])
    def test_are_there_without_a_line_in_the_urls(self, staff, job, name):
        page = html(staff, HISTORY + name)
        assert 'id="nav-sidebar"' in page
        assert "current-model" in page
        assert '<a href="/admin/">Home</a>' in page
        assert "Draw the charts" in page
        assert (page.count("<h1"), page.count("<main")) == (1, 1)

    def test_link_to_each_other_within_the_admin(self, staff, job):
        assert f'href="{HISTORY}{JOB_ID}/"' in html(staff, HISTORY)
        page = html(staff, f"{HISTORY}{JOB_ID}/")
        assert f'href="{HISTORY}{JOB_ID}/delete/"' in page
        assert f'<a href="{HISTORY}">Jobs</a>' in page
        assert '"/jobs/' not in page

    def test_do_what_they_do_elsewhere(self, staff, kit, job):
        assert staff.get(f"{HISTORY}{JOB_ID}/status/").json()["title"] == "Draw the charts"
        assert staff.get(f"{HISTORY}-/api/?q=charts").json()["total"] == 1
        response = staff.post(f"{HISTORY}-/delete-selected/?q=x", {"job": [JOB_ID], "confirm": "yes"})
        assert response["Location"] == f"{HISTORY}?q=x"
        assert not kit.storage.files

    def test_do_not_change_those_under_the_sites_own_urls(self, staff, job, settings):
        settings.ROOT_URLCONF = both
        assert reverse("jobkit:history") == "/jobs/"
        page = html(staff, "/jobs/")
        assert f'href="/jobs/{JOB_ID}/"' in page
        assert 'id="nav-sidebar"' not in page

    def test_are_where_a_view_of_the_sites_leads(self, staff, job, settings):
        settings.ROOT_URLCONF = mine_and_admin
        assert f'href="{HISTORY}{JOB_ID}/"' in html(staff, "/mine/")

    def test_cost_no_query_of_their_own(self, db, job, django_assert_num_queries):
        root = client_of(user("root", is_staff=True, is_superuser=True))
        with django_assert_num_queries(2):  # session and user
            root.get(HISTORY)


class TestWhoGetsIn:
    def test_who_is_unknown_logs_in_at_the_admin(self, db, job, settings):
        settings.LOGIN_URL = "/elsewhere/"
        assert Client().get(HISTORY + "?q=a")["Location"] == f"/admin/login/?next={HISTORY}%3Fq%3Da"
        assert Client().get(f"{HISTORY}{JOB_ID}/status/").status_code == 401

    def test_nobody_who_may_not_into_the_admin(self, db, settings):
        settings.JOBKIT = {"default": {"ACCESS": "tests.web.everybody.Everybody"}}
        put(in_a_dict())
        ann = client_of(user("ann"))
        assert ann.get(HISTORY).status_code in (302, 403)
        assert ann.get(f"{HISTORY}{JOB_ID}/status/").status_code in (401, 403)
        assert ann.post(f"{HISTORY}{JOB_ID}/delete/").status_code in (302, 403)

    def test_of_the_staff_who_may_see_jobs(self, stranger, job):
        assert stranger.get(HISTORY).status_code == 403

    def test_a_forged_request_does_nothing(self, db, kit, job):
        client = Client(enforce_csrf_checks=True)
        client.force_login(user("root", is_superuser=True, is_staff=True))
        assert client.post(f"{HISTORY}{JOB_ID}/delete/").status_code == 403
        assert kit.storage.files


class TestTheLog:
    def test_a_deletion_is_in_it(self, staff, job):
        staff.post(f"{HISTORY}{JOB_ID}/delete/")
        entry = LogEntry.objects.get()
        assert (entry.user.username, entry.action_flag, str(entry.object_repr)) == (
            "staff",
            DELETION,
            "Draw the charts",
        )
        assert entry.object_id == f"default:{JOB_ID}"
        assert "Draw the charts" in html(staff, "/admin/")

    def test_a_retry_is_in_it_and_links_to_the_job(self, staff, settings):
        from tests.web import test_retry_view

        test_retry_view.RESULT[:] = ["again"]
        settings.JOBKIT = {"default": {"RETRY": "tests.web.test_retry_view.retry"}}
        put(in_a_dict(), state=State.FAILED, title="Draw")
        assert staff.post(f"{HISTORY}{JOB_ID}/retry/")["Location"] == f"{HISTORY}again/"
        entry = LogEntry.objects.get()
        assert (entry.action_flag, entry.change_message) == (CHANGE, "Retried as again")
        assert entry.get_admin_url() in html(staff, "/admin/")
        assert staff.get(entry.get_admin_url())["Location"] == f"{HISTORY}{JOB_ID}/"

    @pytest.mark.parametrize("object_id", ["no id", "a_3Ab_2Fc", "default_3A"])
    def test_a_link_to_no_job_is_404_or_said_by_its_page(self, staff, kit, object_id):
        response = staff.get(f"{HISTORY}{object_id}/change/", follow=True)
        assert response.status_code in (400, 404)

    def test_a_log_that_fails_stops_nothing(self, staff, kit, job, monkeypatch):
        from django.db import DatabaseError

        def fail(**kwargs):
            raise DatabaseError

        monkeypatch.setattr(LogEntry.objects, "create", fail)
        assert staff.post(f"{HISTORY}{JOB_ID}/delete/").status_code == 302
        assert not kit.storage.files


class TestSeveralKits:
    @pytest.fixture(autouse=True)
    def _three_kits(self, settings):
        settings.JOBKIT = {name: {"PREFIX": name} for name in ("default", "comics", "Été – 2")}
        settings.ROOT_URLCONF = own_admin()

    def test_each_has_an_entry(self, viewer):
        page = html(viewer, "/own/")
        assert page.count("/own/django_jobkit/job") >= 3
        assert "Jobs (comics)" in page
        assert "Jobs (Été – 2)" in page

    def test_each_has_its_own_pages(self, viewer):
        for alias in ("default", "comics", "Été – 2"):
            put(in_a_dict(alias), f"of-{len(alias)}")
        for url, job_id in [("job", "of-7"), ("job_comics", "of-6"), ("job_t_2", "of-7")]:
            page = html(viewer, f"/own/django_jobkit/{url}/")
            assert f'href="/own/django_jobkit/{url}/{job_id}/"' in page

    def test_the_log_leads_to_the_right_one(self, staff):
        put(in_a_dict("comics"), "abc")
        staff.post("/own/django_jobkit/job_comics/abc/delete/")
        entry = LogEntry.objects.get()
        assert entry.object_id == "comics:abc"
        url = reverse("admin:django_jobkit_job_change", args=["comics_3Aabc"], current_app="own")
        assert staff.get(url)["Location"] == "/own/django_jobkit/job_comics/abc/"

    def test_no_model_of_theirs_is_migrated(self, db):
        from django.apps import apps
        from django.core.management import call_command

        assert [model.__name__ for model in apps.get_app_config("django_jobkit").get_models()] == ["Job"]
        call_command("makemigrations", "django_jobkit", check=True, dry_run=True, verbosity=0)
        call_command("check")


def test_where_the_admin_is_not_installed_its_module_is_not_imported():
    code = "import sys, tests.web.bare_site as site; site.main(); assert 'django_jobkit.admin' not in sys.modules"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
