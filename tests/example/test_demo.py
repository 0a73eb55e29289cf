import http.client
import http.cookiejar
import http.cookies
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


def test_a_demo_that_is_interrupted_ends_its_jobs_first(tmp_path):
    process = start_demo(tmp_path, JOBKIT_EXAMPLE_RESAMPLES="3000")
    output_until(process, "1/12")
    process.send_signal(signal.SIGINT)
    end, errors = process.communicate(timeout=60)

    assert process.returncode == 130
    assert "Stopping before all jobs are done." in end
    assert errors == ""
    # Those that a slow machine can't end in time are run by the next process.
    left = [state for state in states(tmp_path) if state not in ("succeeded", "failed")]
    assert len(states(tmp_path)) == 12
    assert len(list(tmp_path.glob("media/jobs.queue/*"))) == len(left)


def test_a_server_of_the_site_ends_its_jobs_and_refuses_new_ones_meanwhile(tmp_path):
    """The stop order: no more connections, then the queue. On one that is open, a job is refused with 503."""
    make_user = "from filereport.management.commands import demo; print('password:', demo.make_demo_user())"
    for arguments in (["migrate", "-v0"], ["shell", "-c", make_user]):
        done = subprocess.run(
            [sys.executable, MANAGE, *arguments], env=environment(tmp_path), check=True, capture_output=True, text=True
        )
    password = done.stdout.partition("password: ")[2].strip()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-u", MANAGE, "runserver", "--noreload", f"127.0.0.1:{port}"],
        env=environment(tmp_path) | {"JOBKIT_EXAMPLE_RESAMPLES": "20000"},  # a report takes some seconds
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        output_until(process, "CONTROL-C")
        site = OpenConnection(port)
        site.log_in("demo", password)
        accepted = [site.submit() for _ in range(2)]
        process.send_signal(signal.SIGINT)
        refused = site.submit()
        while refused[0] == 202:  # until the signal has come through
            accepted.append(refused)
            refused = site.submit()
    finally:
        end, _ = process.communicate(timeout=90)
        site.connection.close()
    assert {status for status, _ in accepted} == {202}
    assert refused[0] == 503
    assert refused[1]["error"]["code"] == "queue_stopped"
    assert process.returncode == 0
    assert "Traceback" not in end
    waiting = [path.name.partition(".")[0] for path in tmp_path.glob("media/jobs.queue/*")]
    for _, answer in accepted:  # those that a slow machine can't end in time are run by the next process
        record = json.loads((tmp_path / "media/jobs" / answer["job_id"] / "status.json").read_bytes())
        assert record["state"] == "succeeded" or answer["job_id"] in waiting


class OpenConnection:
    """A browser's one connection, which stays open from one request to the next."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.cookies = http.cookies.SimpleCookie()

    def request(self, method, path, fields=None, **headers):
        cookies = "; ".join(f"{name}={morsel.value}" for name, morsel in self.cookies.items())
        headers = {"Cookie": cookies, "Content-Type": "application/x-www-form-urlencoded", **headers}
        self.connection.request(method, path, urllib.parse.urlencode(fields or {}), headers)
        response = self.connection.getresponse()
        for value in response.headers.get_all("Set-Cookie") or []:
            self.cookies.load(value)
        return response.status, response.read().decode()

    def token_on(self, path):
        return re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', self.request("GET", path)[1])[1]

    def log_in(self, username, password):
        fields = {"username": username, "password": password, "csrfmiddlewaretoken": self.token_on("/admin/login/")}
        assert self.request("POST", "/admin/login/?next=/", fields)[0] == 302
        self.token = self.token_on("/")

    def submit(self):
        """A status code, and the JSON that came with it."""
        fields = {"sample": "bakery-sales-2025.csv", "csrfmiddlewaretoken": self.token}
        status, body = self.request("POST", "/", fields, Accept="application/json")
        return status, json.loads(body)


def states(data_dir):
    return [json.loads(path.read_bytes())["state"] for path in data_dir.glob("media/jobs/*/status.json")]


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
