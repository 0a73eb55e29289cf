"""What a page is given at first to show a live job, and whom it is given to."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import AnonymousUser
from django.http import HttpResponse
from django.template import Context, RequestContext, Template
from django.test import RequestFactory
from django.utils import timezone, translation

from django_jobkit.jobs import State
from django_jobkit.web.live import script_texts
from tests.web.conftest import JOB_ID, in_a_dict, put, user

TAG = "{% load jobkit %}{% job_live job_id %}"


def render(person, source: str = TAG, **context) -> str:
    request = RequestFactory().get("/order/")
    request.user = person
    return Template(source).render(RequestContext(request, {"job_id": JOB_ID, **context})).strip()


@pytest.fixture
def ann(db):
    return user("ann", "view_job", is_staff=True)


class TestTag:
    def test_an_unfinished_job_names_where_to_ask_and_what_is_known(self, ann, kit):
        put(kit, state=State.RUNNING, title="Draw <charts>", progress_current=1, progress_total=4)
        html = render(ann)
        assert f'data-jobkit-live="/jobs/{JOB_ID}/status/"' in html
        assert 'data-jobkit-state="running"' in html
        assert f'<a href="/jobs/{JOB_ID}/"><bdi data-jobkit="title">Draw &lt;charts&gt;</bdi></a>' in html
        assert '<progress data-jobkit="bar" max="100" value="25"' in html
        assert len(re.findall('role="status"', html)) == 2

    def test_a_finished_job_is_not_asked_for(self, ann, kit):
        put(kit, state=State.SUCCEEDED, title="Draw")
        html = render(ann)
        assert "Succeeded" in html
        assert "data-jobkit-live" not in html

    def test_a_failed_one_is_since_it_may_be_retried(self, ann, kit):
        put(kit, state=State.FAILED, error="OSError: <disk>\nmore")
        html = render(ann)
        assert "data-jobkit-live" in html
        assert 'data-jobkit="error-gist">OSError: &lt;disk&gt;</p>' in html

    def test_one_in_a_state_that_the_kit_does_not_know_is_since_it_may_go_on(self, ann, kit):
        put(kit, state="paused")
        assert 'data-jobkit-state="paused"' in render(ann)

    def test_it_costs_one_read(self, ann, kit):
        put(kit, state=State.RUNNING)
        kit.storage.calls.clear()
        render(ann)
        assert dict(kit.storage.calls) == {"read": 1}

    def test_those_who_may_not_see_the_job_see_nothing_and_nothing_is_read(self, db, kit):
        put(kit, state=State.RUNNING)
        kit.storage.calls.clear()
        assert render(user("bob", is_staff=True)) == ""
        assert render(AnonymousUser()) == ""
        assert not kit.storage.calls

    def test_a_job_of_somebody_else_is_nothing(self, db, settings):
        settings.JOBKIT = {"default": {"ACCESS": "django_jobkit.access.OwnerAccess"}}
        kit = in_a_dict()
        put(kit, state=State.RUNNING, owner="bob")
        ann = user("ann")
        assert render(ann) == ""
        assert "data-jobkit-live" in render(user("bob"))
        assert render(ann, job_id="no-such-job") == ""
        assert render(ann, job_id="no id") == ""
        put(kit, "broken", data=b"{")
        assert render(ann, job_id="broken") == ""

    def test_without_a_request_there_is_nothing(self, kit):
        put(kit, state=State.RUNNING)
        assert Template(TAG).render(Context({"job_id": JOB_ID})).strip() == ""

    @pytest.mark.parametrize(
        ("job_id", "text"),
        [("no-such-job", "No such job"), ("no id", "Not a job ID"), ("broken", "This job’s record is damaged")],
    )
    def test_what_can_not_be_shown_is_said(self, ann, kit, job_id, text):
        put(kit, "broken", data=b"{")
        assert render(ann, job_id=job_id) == f'<p class="jobkit jobkit-doubt">{text}</p>'

    @pytest.mark.parametrize("text", ["charts/{}", " {}\n", "{}/", "../{}"])
    def test_an_id_that_has_to_be_cleaned_is_that_of_the_job_everywhere(self, ann, kit, text):
        put(kit, state=State.RUNNING)
        html = render(ann, job_id=text.format(JOB_ID))
        assert html == render(ann)
        assert f'<a href="/jobs/{JOB_ID}/"><bdi data-jobkit="title">{JOB_ID}</bdi></a>' in html

    @pytest.mark.parametrize("text", ["charts/{}", "{}/"])
    def test_access_is_asked_about_the_cleaned_id(self, db, kit, settings, text):
        settings.JOBKIT = {"default": {"ACCESS": "django_jobkit.access.OwnerAccess"}}
        kit = in_a_dict()
        put(kit, state=State.RUNNING, owner="bob")
        assert "data-jobkit-live" in render(user("bob"), job_id=text.format(JOB_ID))
        assert render(user("ann"), job_id=text.format(JOB_ID)) == ""

    def test_a_job_that_can_not_be_read_just_now_is_watched(self, ann, kit, monkeypatch):
        from django_jobkit.exceptions import StatusUnavailable

        def fail(job_id):
            raise StatusUnavailable(job_id)

        monkeypatch.setattr(kit.store, "read_file", fail)
        html = render(ann)
        assert "Jobs can’t be read just now" in html
        assert "data-jobkit-live" in html

    def test_another_kit_has_its_own_urls(self, ann, settings):
        settings.ROOT_URLCONF = "tests.web.urls_many"
        settings.JOBKIT = {"default": {}, "music": {"PREFIX": "music"}}
        put(in_a_dict("music"), state=State.RUNNING)
        source = '{% load jobkit %}{% job_live job_id kit="music" %}'
        assert f'data-jobkit-live="/music/{JOB_ID}/status/"' in render(ann, source)
        put(in_a_dict(), state=State.RUNNING)
        source = '{% load jobkit %}{% job_live job_id namespace="japan" %}'
        assert f'data-jobkit-live="/%E6%97%A5%E6%9C%AC/jobs/{JOB_ID}/status/"' in render(ann, source)

    def test_numbers_for_the_script_are_written_for_machines(self, ann, settings):
        settings.USE_THOUSAND_SEPARATOR = True
        settings.JOBKIT = {"default": {"QUEUED_WARNING": 3600.5}}
        put(in_a_dict(), state=State.QUEUED)
        with translation.override("de"):
            assert 'data-jobkit-queued-after="3600.5"' in render(ann)


class TestScriptTag:
    def test_it_is_the_style_sheet_and_the_script_in_files(self):
        html = Template("{% load jobkit %}{% jobkit_script %}").render(Context())
        assert '<link rel="stylesheet" href="/static/django_jobkit/jobkit.css">' in html
        assert '<script defer src="/static/django_jobkit/jobkit.js" data-jobkit-texts="{' in html
        assert html.rstrip().endswith('"></script>')

    def test_the_style_sheet_can_be_left_out(self):
        html = Template("{% load jobkit %}{% jobkit_script style=False %}").render(Context())
        assert "stylesheet" not in html
        assert "jobkit.js" in html

    def test_both_carry_the_nonce_of_the_sites_policy(self):
        html = Template("{% load jobkit %}{% jobkit_script %}").render(Context({"csp_nonce": "abc"}))
        assert html.count(' nonce="abc">') == 2


class TestTexts:
    def test_they_are_in_the_readers_language_and_zone(self):
        with translation.override("de"), timezone.override("Europe/Berlin"):
            texts = json.loads(script_texts())
        assert texts["zone"] == "Europe/Berlin"
        today = timezone.localtime(datetime.now(UTC), timezone=None).date().isoformat()
        assert len(texts["dates"]) == 3
        assert today in texts["dates"]
        assert set(texts["states"]) == {"queued", "running", "succeeded", "failed"}

    def test_places_for_numbers_are_kept(self):
        texts = json.loads(script_texts())
        assert texts["of"] == "{current} of {total}"
        assert texts["group"] == ""
        assert texts["after"] == "after {duration}"
        assert texts["runningFor"] == "for {duration}"
        assert texts["stale"].endswith("{time}.")
        assert [text for _, text in texts["units"]] == ["{count} d", "{count} h", "{count} min", "{count} s"]

    @pytest.mark.parametrize(("language", "expected"), [("en", ","), ("de", "."), ("fr", "\xa0"), ("hi", "")])
    def test_numbers_are_grouped_where_the_templates_group_them(self, settings, language, expected):
        with translation.override(language):
            assert json.loads(script_texts())["group"] == ""
            settings.USE_THOUSAND_SEPARATOR = True
            assert json.loads(script_texts())["group"] == expected

    def test_a_zone_without_a_name_is_an_offset_that_browsers_know(self):
        with timezone.override(timezone.get_fixed_timezone(90)):
            assert json.loads(script_texts())["zone"] == "+01:30"


def test_neither_the_pages_nor_the_json_are_kept_by_caches(staff, kit):
    put(kit, state=State.RUNNING)
    for path in (f"/jobs/{JOB_ID}/", f"/jobs/{JOB_ID}/status/", f"/jobs/{JOB_ID}/delete/", "/jobs/"):
        response: HttpResponse = staff.get(path)
        assert "no-store" in response["Cache-Control"]
