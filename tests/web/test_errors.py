"""Each error has one answer, the same on every URL, which says nothing that the storage said."""

from __future__ import annotations

import base64
import logging
from html import unescape

import pytest
from django.test import override_settings
from django.urls import reverse

from django_jobkit.exceptions import (
    EmptyJobID,
    JobIDTooLong,
    ListTimeout,
    MalformedJobID,
    PageLoadTimeout,
    StatusCorrupt,
    StatusNotFound,
    StatusUnavailable,
    StorageMisconfigured,
    StorageUnavailable,
    VersionConflict,
)
from django_jobkit.jobs.history import JobHistory
from django_jobkit.web.responses import DAMAGES, answer_to
from tests.vectors import cases
from tests.web.conftest import JOB_ID, in_a_dict, put

SECRET = "https://key:s3cr3t@storage.example/bucket-of-ours/srv/private"

PAGES = ["detail", "delete"]
JSON = ["status", "api-job"]


def of_job(name: str, job_id: str = JOB_ID) -> str:
    return reverse(f"jobkit:{name}", args=[job_id])


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (EmptyJobID(SECRET), 400, "invalid_job_id"),
        (JobIDTooLong(SECRET), 400, "invalid_job_id"),
        (MalformedJobID(SECRET), 400, "invalid_job_id"),
        (StatusNotFound(SECRET), 404, "not_found"),
        (StatusUnavailable(SECRET), 503, "unavailable"),
        (StorageUnavailable(SECRET), 503, "unavailable"),
        (ListTimeout(SECRET), 503, "unavailable"),
        (PageLoadTimeout(SECRET), 503, "unavailable"),
        (StorageMisconfigured(SECRET), 503, "misconfigured"),
        (StatusCorrupt(SECRET, kind="bad_time"), 500, "corrupt"),
    ],
)
class TestEachError:
    @pytest.mark.parametrize("name", ["history", *PAGES, "api-list", *JSON])
    def test_has_its_answer_everywhere(self, staff, kit, monkeypatch, caplog, name, error, status, code):
        def fail(*args, **kwargs):
            raise error

        monkeypatch.setattr(kit.history, "page", fail)
        monkeypatch.setattr(kit.store, "read_file", fail)
        path = reverse(f"jobkit:{name}") if name in ("history", "api-list") else of_job(name)
        with caplog.at_level(logging.WARNING, "django_jobkit.views"):
            response = staff.get(path)
        assert response.status_code == status
        assert response["Cache-Control"].endswith("no-store")
        assert ("Retry-After" in response) == (status == 503)
        body = response.content.decode()
        assert not any(word in body for word in ("s3cr3t", "storage.example", "bucket-of-ours", "Traceback"))
        if name == "api-list" or name in JSON:
            assert response["Content-Type"] == "application/json"
            assert response.json()["error"]["code"] == code
            assert response.json()["error"]["message"] == str(answer_to(error).text)
        else:
            assert str(answer_to(error).text) in unescape(body)
        assert (SECRET in caplog.text) == (status >= 500)

    def test_has_a_text_of_its_own(self, error, status, code):
        assert SECRET not in str(answer_to(error).title) + str(answer_to(error).text)


def test_an_error_that_no_page_can_meet_is_not_hidden():
    with pytest.raises(VersionConflict):
        answer_to(VersionConflict("x"))


@pytest.mark.parametrize("name", PAGES + JSON)
def test_an_outage_is_503_with_a_time_to_come_back(staff, kit, job, name):
    kit.storage.read_fails = True
    response = staff.get(of_job(name))
    assert (response.status_code, response["Retry-After"]) == (503, "10")
    assert "no network" not in response.content.decode()


@pytest.mark.parametrize("name", ["history", "api-list"])
def test_a_listing_that_fails_is_503_and_never_an_empty_page(staff, kit, name):
    kit.storage.list_fails = True
    response = staff.get(reverse(f"jobkit:{name}"))
    assert (response.status_code, response["Retry-After"]) == (503, "10")
    assert "no jobs yet" not in response.content.decode()


def test_rows_that_do_not_come_in_time_are_503(staff, kit, monkeypatch):
    def fail(self, *args, **filters):
        raise PageLoadTimeout("20 of 20")

    monkeypatch.setattr(JobHistory, "page", fail)
    assert staff.get(reverse("jobkit:history")).status_code == 503


def test_an_outage_an_empty_history_and_a_damaged_record_are_three_pages(staff, kit):
    def text() -> str:
        return unescape(staff.get(reverse("jobkit:history")).content.decode())

    assert "There are no jobs yet" in text()
    put(kit, data=b"{")
    assert "Damaged record" in text()
    kit.storage.list_fails = True
    kit.ids_cache.invalidate(kit.prefix)
    assert "doesn’t answer as it should" in text()
    assert "Try again" in text()


DAMAGED = [
    (base64.b64decode(given["document_b64"]), expected["error"])
    for given, expected in (param.values for param in cases("status_decode.json"))
    if "error" in expected and len(given["document_b64"]) < 10_000
]


@pytest.mark.parametrize("name", [*PAGES, *JSON])
@override_settings(JOBKIT={"default": {"STATUS_CLASS": "tests.jobs.shapes.OutputDirStatus"}})
def test_a_damaged_record_is_500_and_says_what_is_wrong(staff, name):
    kit = in_a_dict()
    for data, kind in DAMAGED:
        put(kit, data=data)
        response = staff.get(of_job(name))
        assert response.status_code == 500, data
        if name in JSON:
            assert response.json()["error"]["code"] == "corrupt"
            assert response.json()["error"]["kind"] == kind, data
        else:
            assert f"<code>{kind}</code>" in response.content.decode(), data
            assert str(DAMAGES[kind]) in unescape(response.content.decode())
    assert {kind for _, kind in DAMAGED} >= DAMAGES.keys() - {"too_deep"}


def test_fifty_megabytes_of_brackets_are_damage_too(staff, kit):
    put(kit, data=b"[" * 50_000_000)
    assert staff.get(of_job("status")).json()["error"]["kind"] in ("too_deep", "wrong_type", "truncated")


class TestDeletingWhatIsDamaged:
    def test_a_damaged_record_can_be_deleted_from_the_page_that_says_so(self, staff, kit):
        put(kit, data=b"{")
        kit.storage.write(f"jobs/{JOB_ID}/summary.json", b"{}")
        assert f'href="{of_job("delete")}"' in staff.get(of_job("detail")).content.decode()
        page = staff.get(of_job("delete"))
        assert page.status_code == 500
        assert "Yes, delete" in page.content.decode()
        assert staff.post(of_job("delete")).status_code == 302
        assert not kit.storage.files

    def test_a_machine_can_delete_it_too(self, staff, kit):
        put(kit, data=b"{")
        assert staff.delete(of_job("api-job")).status_code == 204
        assert not kit.storage.files

    def test_a_job_without_a_status_can_be_deleted_from_the_history(self, staff, kit):
        kit.storage.write(f"jobs/{JOB_ID}/summary.json", b"{}")
        html = staff.get(reverse("jobkit:history")).content.decode()
        assert "No status recorded" in html
        assert f'href="{of_job("delete")}"' in html
        assert f'href="{of_job("detail")}"' not in html  # there is nothing to see
        assert staff.get(of_job("detail")).status_code == 404
        page = staff.get(of_job("delete"))
        assert page.status_code == 404
        assert "Yes, delete" in page.content.decode()
        assert staff.post(of_job("delete")).status_code == 302
        assert not kit.storage.files

    @pytest.mark.parametrize(("name", "method"), [("delete", "post"), ("api-job", "delete")])
    def test_what_cannot_be_read_just_now_is_not_deleted(self, staff, kit, job, name, method):
        kit.storage.read_fails = True
        assert getattr(staff, method)(of_job(name)).status_code == 503
        assert kit.storage.files

    @pytest.mark.parametrize(("name", "method"), [("delete", "post"), ("api-job", "delete")])
    def test_a_delete_that_fails_is_503(self, staff, kit, job, name, method):
        kit.storage.write_fails = True
        assert getattr(staff, method)(of_job(name)).status_code == 503

    @pytest.mark.parametrize(("name", "method"), [("delete", "get"), ("delete", "post"), ("api-job", "delete")])
    def test_a_job_that_is_not_there_is_404(self, staff, kit, name, method):
        response = getattr(staff, method)(of_job(name))
        assert response.status_code == 404
        assert "Yes, delete" not in response.content.decode()

    def test_a_listing_that_fails_leaves_a_job_without_a_status_not_found(self, staff, kit):
        kit.storage.list_fails = True
        assert staff.get(of_job("delete")).status_code == 404
        assert staff.post(of_job("delete")).status_code == 503  # it can't be told whether something is left


class TestBadParameters:
    @pytest.mark.parametrize("query", ["page=abc", "page=1e9", "per_page=abc", "page=%00", "page=１"])
    def test_machines_are_told(self, staff, kit, query):
        response = staff.get(reverse("jobkit:api-list") + "?" + query)
        assert response.status_code == 400
        assert response.json() == {
            "error": {
                "code": "invalid_parameter",
                "message": "“page” and “per_page” have to be whole numbers.",
                "parameter": query.partition("=")[0],
            }
        }
        assert not kit.storage.calls


@pytest.mark.parametrize("name", ["status", "api-list", "api-job"])
def test_another_method_is_405_as_json(staff, kit, name):
    path = reverse("jobkit:api-list") if name == "api-list" else of_job(name)
    response = staff.post(path)
    assert response.status_code == 405
    assert response.json()["error"]["code"] == "method_not_allowed"
    assert response["Allow"] == ("GET, DELETE, HEAD, OPTIONS" if name == "api-job" else "GET, HEAD, OPTIONS")


def test_the_page_of_an_error_leads_on(staff, viewer, stranger, kit):
    assert 'href="/jobs/"' in staff.get(of_job("detail")).content.decode()
    html = stranger.get(of_job("detail")).content.decode()
    assert 'href="/jobs/"' not in html
    kit.storage.read_fails = True
    assert f'href="{of_job("detail")}?x=1"' in staff.get(of_job("detail") + "?x=1").content.decode()


@override_settings(JOBKIT={"default": {}, "comics": {}})
def test_a_page_of_a_kit_that_is_not_configured_says_so_to_the_developer(staff, rf):
    from django.core.exceptions import ImproperlyConfigured

    from django_jobkit.views import JobHistoryView

    with pytest.raises(ImproperlyConfigured, match="no JOBKIT"):
        JobHistoryView.as_view()(rf.get("/"), kit="music")
