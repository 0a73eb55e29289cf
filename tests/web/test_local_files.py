"""The pages over real files, and what people do to directories."""

from __future__ import annotations

import pytest
from django.core.files.base import ContentFile

from django_jobkit.jobs import JobStatus, State
from django_jobkit.kit import jobkits
from tests.web.conftest import JOB_ID


@pytest.fixture
def media(settings, tmp_path):
    local = {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {"location": str(tmp_path), "base_url": "/media/"},
    }
    settings.STORAGES = {**settings.STORAGES, "default": local}
    return tmp_path


@pytest.fixture
def site(media):
    return jobkits["default"]


def test_a_job_is_seen_from_submit_to_deletion(staff, site, media):
    assert "no jobs yet" in staff.get("/jobs/").content.decode()
    site.recorder.record(JOB_ID, JobStatus(state=State.QUEUED, title="Count the words"))
    assert "Count the words" in staff.get("/jobs/").content.decode()
    status = JobStatus(state=State.RUNNING, progress_current=1, progress_total=2)
    assert not site.recorder.begin(JOB_ID, status)
    assert staff.get(f"/jobs/{JOB_ID}/status/").json()["state"] == "running"
    site.django_storage.save(site.output_name(JOB_ID, "summary.json"), ContentFile(b"{}"))
    site.recorder.record(JOB_ID, JobStatus(state=State.SUCCEEDED, outputs=["summary.json"]))
    html = staff.get(f"/jobs/{JOB_ID}/").content.decode()
    assert "Succeeded" in html
    assert f'href="/jobs/{JOB_ID}/outputs/summary.json"' in html
    assert staff.get(f"/jobs/{JOB_ID}/outputs/summary.json").getvalue() == b"{}"
    assert staff.post(f"/jobs/{JOB_ID}/delete/").status_code == 302
    assert not (media / "jobs" / JOB_ID).exists()
    assert "no jobs yet" in staff.get("/jobs/").content.decode()


def test_a_directory_where_the_record_should_be_is_an_outage_of_that_job(staff, site, media):
    (media / "jobs" / JOB_ID / "status.json").mkdir(parents=True)
    assert "Can’t be read just now" in staff.get("/jobs/").content.decode()
    for path in (f"/jobs/{JOB_ID}/", f"/jobs/{JOB_ID}/status/"):
        response = staff.get(path)
        assert response.status_code == 503
        assert str(media) not in response.content.decode()


@pytest.mark.parametrize("path", ["/jobs/", "/jobs/-/api/"])
def test_a_file_where_the_jobs_should_be_is_an_outage(staff, site, media, path):
    (media / "jobs").write_text("I am a file")
    response = staff.get(path)
    assert response.status_code == 503
    assert str(media) not in response.content.decode()


def test_what_is_left_as_an_empty_directory_can_be_deleted(staff, site, media):
    (media / "jobs" / JOB_ID).mkdir(parents=True)
    assert "No status recorded" in staff.get("/jobs/").content.decode()
    assert staff.post(f"/jobs/{JOB_ID}/delete/").status_code == 302
    assert not (media / "jobs" / JOB_ID).exists()
