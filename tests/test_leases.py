"""One lease at a time for each job, whatever happens to the workers: with real processes, killed and paused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import FileSystemStorage

from django_jobkit.jobs import JobStatus, State, StatusStore
from django_jobkit.storages import adapt
from tests.leases.fleet import KILLS, LEASE
from tests.storages.providers import google
from tests.storages.servers import gcs_bucket, gcs_url  # noqa: F401

pytestmark = pytest.mark.slow

JOBS = 50
DELIVERIES = 1000


def run_fleet(log: Path, storage: dict[str, Any], **environment: str) -> dict[str, Any]:
    """Deliver everything until it is acknowledged; what the fleet reports."""
    options = {"seed": 4, "jobs": JOBS, "deliveries": DELIVERIES, "log": str(log), "storage": storage}
    done = subprocess.run(
        [sys.executable, "-m", "tests.leases.fleet", json.dumps(options)],
        cwd=Path(__file__).parent.parent,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=150,
    )
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def check(lines: list[dict[str, Any]], final: dict[str, JobStatus], report: dict[str, Any]) -> None:
    assert report["answers"]["done"] == DELIVERIES
    assert report["kills"] > KILLS / 2
    assert report["kills_in_body"] > 0
    assert report["answers"].get("cancelled", 0) > 0  # a worker was told in its body that it had lost its lease
    assert not [line for line in lines if line["what"] == "never told"]

    entered = [line for line in lines if line["what"] == "enter"]
    leases = [line["lease"] for line in entered]
    assert all(leases)
    assert len(set(leases)) == len(leases), "a body was entered twice under one lease"

    assert len(final) == JOBS
    for job_id, status in final.items():
        of_job = [line for line in lines if line["job"] == job_id]
        check_attempts(of_job, status, report["silent_deaths"].get(job_id, 0))
        check_leases(of_job)
        check_success(of_job, status)


def check_attempts(lines: list[dict[str, Any]], status: JobStatus, silent_deaths: int) -> None:
    """Each begin was counted, once. Those of workers that died before they could say so may be among them."""
    runs = {(line["attempts"], line["lease"]) for line in lines if line["what"] == "saved" and line["lease"]}
    runs |= {(line["attempt"], line["lease"]) for line in lines if line["what"] == "enter"}
    numbers = [attempt for attempt, _ in runs]
    assert len(set(numbers)) == len(numbers), f"two begins have counted as one: {sorted(runs)}"
    assert max(numbers) <= status.attempts
    assert len(numbers) <= status.attempts <= len(numbers) + silent_deaths


def check_leases(lines: list[dict[str, Any]]) -> None:
    """A run began only when no earlier one held a lease any more, and none of those has recorded after that."""
    records: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        if line["what"] == "saved":
            records[line["attempts"]].append(line)
    for attempt, saved in records.items():
        if saved[0]["expires"] is None:  # its begin was not logged: killed in between, and another took over
            continue
        begun = saved[0]["expires"] - LEASE
        for earlier in (number for number in records if number < attempt):
            ended = any(line["lease"] == "" for line in records[earlier])
            assert ended or max(line["expires"] for line in records[earlier]) <= begun, "two live leases"
            assert max(line["stamp"] for line in records[earlier]) <= saved[0]["stamp"], "recorded without a lease"


def check_success(lines: list[dict[str, Any]], status: JobStatus) -> None:
    """It succeeded, once, by a run that came to its end; and nothing was recorded over that."""
    assert status.state == State.SUCCEEDED
    assert status.result in [line["lease"] for line in lines if line["what"] == "exit"]
    assert (status.lease_id, status.lease_expires_at) == ("", None)
    succeeded = [line["result"] for line in lines if line["what"] == "saved" and line["state"] == "succeeded"]
    assert succeeded in ([status.result], []), "a success was rolled back"


def read_log(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def read_all(storage) -> dict[str, JobStatus]:
    store = StatusStore(storage)
    return {job_id: store.get(job_id) for job_id in storage.list_dirs("jobs")}


def test_on_local_files_each_job_has_one_worker_at_a_time_and_succeeds(tmp_path):
    location = str(tmp_path / "files")
    backend = {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": location}}
    report = run_fleet(tmp_path / "log", backend)
    check(read_log(tmp_path / "log"), read_all(adapt(FileSystemStorage(location))), report)


@pytest.mark.component
def test_on_google_cloud_storage_each_job_has_one_worker_at_a_time_and_succeeds(
    tmp_path,
    gcs_url,  # noqa: F811
    gcs_bucket,  # noqa: F811
    monkeypatch,
):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", gcs_url)
    backend = {"BACKEND": "storages.backends.gcloud.GoogleCloudStorage", "OPTIONS": {"bucket_name": gcs_bucket}}
    report = run_fleet(tmp_path / "log", backend, DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA="1")
    check(read_log(tmp_path / "log"), read_all(google(gcs_url, gcs_bucket)), report)
