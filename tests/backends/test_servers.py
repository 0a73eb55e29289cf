"""Jobs in real server processes that stop, are killed, and start again."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections import defaultdict

import pytest

from .servers import Site, until

pytestmark = [pytest.mark.component, pytest.mark.slow]

LEASE = 1.5
each_way = pytest.mark.parametrize("preload", [[], ["--preload"]], ids=["plain", "preload"])


@pytest.fixture
def site(tmp_path):
    site = Site(tmp_path)
    yield site
    site.close()


def begun(site):
    return [line["job"] for line in site.log("begin")]


@each_way
def test_a_server_that_is_told_to_stop_runs_what_it_has_accepted(site, preload):
    server = site.gunicorn(*preload, WORKERS=1)
    # The last uses a pool of threads, which a process that ends takes away early.
    jobs = [server.submit(wait=True), server.submit(), server.submit(pool=True)]
    until(lambda: begun(site) == jobs[:1])
    server.terminate()
    until(lambda: server.get("/who/") is None)
    site.release()
    assert server.wait() == 0
    assert site.states(jobs) == {"succeeded"}, server.output
    assert begun(site) == jobs
    assert site.markers() == []
    assert "Traceback" not in server.output


@each_way
def test_a_job_submitted_meanwhile_is_refused_with_503_and_no_crash(site, preload):
    # The worker gives up waiting for its requests after a second, and ends, while the client still waits for one.
    server = site.gunicorn(*preload, "--graceful-timeout", "1", WORKERS=1)
    job_id = server.submit(wait=True)
    until(lambda: begun(site) == [job_id])
    answers = []
    late = threading.Thread(target=lambda: answers.append(server.request("POST", "/late/")))
    late.start()
    until(lambda: site.log("request"))
    os.kill(site.log("request")[0]["pid"], signal.SIGTERM)
    late.join()
    (answer,) = answers
    assert (answer.status, answer.headers["Retry-After"]) == (503, "10")
    assert json.loads(answer.body)["error"]["code"] == "queue_stopped"
    assert site.states([job_id]) == {"running"}
    site.release()
    until(lambda: site.states([job_id]) == {"succeeded"})
    server.terminate()
    assert server.wait() == 0
    assert list(site.storage.list_dirs("jobs")) == [job_id]


@each_way
def test_jobs_that_do_not_end_in_time_are_put_back_and_run_after_the_next_start(site, preload):
    server = site.gunicorn(*preload, WORKERS=1, STOP_TIMEOUT=0.2)
    jobs = [server.submit(wait=True), server.submit()]
    until(lambda: begun(site) == jobs[:1])
    server.terminate()
    assert server.wait() == 0
    assert site.states(jobs) == {"queued"}
    assert site.markers() == sorted(jobs)
    assert "stops with 1 jobs not begun and 1 told to end" in server.output

    site.release()
    site.gunicorn(*preload, WORKERS=1)  # its first request is made on the way
    until(lambda: site.states(jobs) == {"succeeded"})
    until(lambda: site.markers() == [])
    assert [site.store.get(job_id).attempts for job_id in jobs] == [2, 1]


@pytest.mark.parametrize("workers", [1, 3])
@each_way
def test_after_a_kill_every_accepted_job_is_run_and_none_twice_while_its_lease_lives(site, preload, workers):
    server = site.gunicorn(*preload, "--workers", str(workers), WORKERS=2, LEASE=LEASE)
    jobs = [server.submit(**({"wait": True} if number % 2 else {})) for number in range(12 * workers)]
    until(lambda: site.log("end"))
    server.kill()

    site.release()
    again = site.gunicorn(*preload, "--workers", "3", WORKERS=2, LEASE=LEASE)
    pids = set()
    until(lambda: pids.add(again.get("/who/")["pid"]) or len(pids) == 3)
    until(lambda: site.states(jobs) == {"succeeded"})
    until(lambda: site.markers() == [])

    runs = defaultdict(list)
    for line in site.log("begin"):
        runs[line["job"]].append(line)
    assert set(runs) == set(jobs)
    for job_id in jobs:
        for earlier, later in zip(runs[job_id], runs[job_id][1:], strict=False):
            assert later["at"] >= earlier["lease_ends"]
        # One may have been killed between its record and its first line.
        assert len(runs[job_id]) <= site.store.get(job_id).attempts <= 2
    assert any(len(found) == 2 for found in runs.values())
    again.terminate()
    assert again.wait() == 0


def test_what_one_server_leaves_another_takes_over_that_has_been_running(site):
    """No process starts after the first has been killed: requests make the others look now and then."""
    options = {"WORKERS": 1, "RECOVER_EVERY": 0.5, "LEASE": LEASE}
    other = site.gunicorn(**options)
    server = site.gunicorn(**options)
    jobs = [server.submit(wait=True), server.submit()]
    until(lambda: begun(site) == jobs[:1])
    server.kill()
    site.release()
    until(lambda: other.get("/who/") and site.states(jobs) == {"succeeded"})
    until(lambda: site.markers() == [])


def test_the_development_server_may_reload_in_the_middle_of_a_job(site):
    module = site.data / "code" / "changing.py"
    module.write_text("")
    server = site.runserver(STOP_TIMEOUT=0.2, WORKERS=1)
    jobs = [server.submit(wait=True), server.submit()]
    until(lambda: begun(site) == jobs[:1])
    first = server.get("/who/")["pid"]

    def has_ended():
        module.write_text(module.read_text() + "#")  # the reloader only notices changes between two of its looks
        return (server.get("/who/") or {"pid": None})["pid"] != first

    until(has_ended)
    site.release()
    until(lambda: server.get("/who/") and site.states(jobs) == {"succeeded"})
    assert site.store.get(jobs[0]).attempts > 1
    assert site.log("begin")[0]["pid"] == first
    assert first not in {line["pid"] for line in site.log("end")}
