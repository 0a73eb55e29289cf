import http.cookiejar
import json
import re
import signal
import socket
import subprocess
import sys
import urllib.parse
import urllib.request

import pytest
from filereport import samples

from .test_site import REPOSITORY, environment

pytestmark = pytest.mark.slow

REASON = "Line 37, column “level_cm”: “sensor cleaned” is not a number, unlike 119 other values of the column."
MANAGE = REPOSITORY / "example_project" / "manage.py"


def demo(data_dir, *arguments):
    return subprocess.run(
        [sys.executable, "-W", "error", MANAGE, "demo", *arguments],
        cwd=data_dir,
        env=environment(data_dir),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def rows_of(output):
    """The cells of the history's table, without its head."""
    lines = output.partition("newest first\n\n")[2].partition("\n\n")[0].splitlines()
    assert lines[0].split() == ["State", "Title", "Attempts", "Seconds", "Job"]
    return [line.split() for line in lines[1:]]


def test_the_demo_runs_a_dozen_jobs_of_which_one_fails_for_its_reason_and_can_be_run_again(tmp_path):
    first = demo(tmp_path, "--no-serve")

    assert (first.returncode, first.stderr) == (0, "")
    rows = rows_of(first.stdout)
    assert len(rows) == 12
    assert {row[1] for row in rows} == set(samples.SAMPLES)
    assert [row[1] for row in rows if row[0] == "failed"] == [samples.BROKEN]
    assert all(row[0] == "succeeded" for row in rows if row[1] != samples.BROKEN)
    assert REASON in first.stdout
    assert "Jobs 1 to 12 of 12, newest first" in first.stdout
    assert re.findall(r"^ *(\d+)/12 ", first.stdout, re.M) == [str(n) for n in range(1, 13)]
    assert "\r" not in first.stdout
    assert "http://127.0.0.1:8000/jobs/" in first.stdout

    second = demo(tmp_path, "--no-serve")

    assert (second.returncode, second.stderr) == (0, "")
    assert "Jobs 1 to 20 of 24, newest first" in second.stdout
    assert len(rows_of(second.stdout)) == 20


def test_the_demo_serves_the_site_on_a_free_port_and_ends_cleanly_on_ctrl_c(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        process = start_demo(tmp_path, "--port", str(port))
        try:
            output = output_until(process, "Ctrl-C")
            assert f"Port {port} is taken, so here is a free one." in output, output + process.stderr.read()
            history = re.search(r"^Jobs +(http://127\.0\.0\.1:\d+/jobs/)$", output, re.M)[1]
            password = re.search(r"^Log in as demo with the password (\S+) ", output, re.M)[1]
            page = logged_in(history, password)
        finally:
            process.send_signal(signal.SIGINT)
            end, errors = process.communicate(timeout=60)
    assert samples.BROKEN in page
    assert process.returncode == 0
    assert "Stopping." in end
    assert "Traceback" not in errors


def test_a_demo_that_is_interrupted_ends_its_jobs_and_says_of_the_others_that_they_never_began(tmp_path):
    process = start_demo(tmp_path, JOBKIT_EXAMPLE_RESAMPLES="3000")
    output_until(process, "1/12")
    process.send_signal(signal.SIGINT)
    end, errors = process.communicate(timeout=60)

    assert process.returncode == 130
    assert "Stopping before the jobs are done" in end
    assert errors == ""
    records = [json.loads(path.read_bytes()) for path in tmp_path.glob("media/jobs/*/status.json")]
    states = {record["state"] for record in records}
    assert len(records) == 12
    assert states == {"succeeded", "failed"}
    assert any("stopped before the report was begun" in record.get("error", "") for record in records)


def start_demo(data_dir, *arguments, **more):
    return subprocess.Popen(
        [sys.executable, "-u", MANAGE, "demo", *arguments],
        cwd=data_dir,
        env=environment(data_dir) | more,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A test run in the background ignores Ctrl-C, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def output_until(process, words):
    shown = []
    for line in process.stdout:
        shown.append(line)
        if words in line:
            break
    return "".join(shown)


def logged_in(url, password):
    """The page at this URL, by way of the login that stands before it."""
    jar = http.cookiejar.CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    with browser.open(url, timeout=30) as login:
        form = login.read().decode()
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', form)[1]
        fields = {"username": "demo", "password": password, "csrfmiddlewaretoken": token}
        request = urllib.request.Request(login.url, urllib.parse.urlencode(fields).encode())
    with browser.open(request, timeout=30) as page:
        assert page.url == url
        return page.read().decode()


def test_a_demo_that_cannot_keep_its_files_says_so_and_fails(tmp_path):
    (tmp_path / "media").mkdir()
    (tmp_path / "media" / "jobs").write_text("a file where the directory should be")

    run = demo(tmp_path, "--no-serve")

    assert run.returncode == 1
    assert run.stderr.startswith("CommandError: ")
    assert "Traceback" not in run.stderr
