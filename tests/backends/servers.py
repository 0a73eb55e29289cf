"""Real servers of `server_site`, each in a process group of its own."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from django_jobkit.backends.markers import Markers
from django_jobkit.jobs import JobStatus, StatusStore
from django_jobkit.storages.filesystem import FileSystemJobStorage
from tests.components import require
from tests.inprocess.helpers import eventually

REPOSITORY = Path(__file__).resolve().parents[2]
PATIENCE = 60.0


def until(true, patience=PATIENCE):
    """Fails unless it becomes true in time."""
    deadline = time.monotonic() + patience
    while not eventually(true):
        assert time.monotonic() < deadline


class Site:
    """What the servers of one test share: a directory, and what stands in it."""

    def __init__(self, data: Path) -> None:
        from django.core.files.storage import FileSystemStorage

        self.data = data
        (data / "media").mkdir()
        (data / "code").mkdir()
        self.storage = FileSystemJobStorage(FileSystemStorage(location=data / "media"))
        self.store: StatusStore[JobStatus] = StatusStore(self.storage)
        self.servers: list[Server] = []

    def release(self) -> None:
        """Let all jobs that wait come to their end."""
        (self.data / "release").touch()

    def log(self, what: str = "") -> list[dict[str, Any]]:
        try:
            lines = (self.data / "log").read_text().splitlines()
        except FileNotFoundError:
            return []
        found = [json.loads(line) for line in lines]
        return [line for line in found if not what or line["what"] == what]

    def markers(self) -> list[str]:
        """The IDs of jobs that were accepted and haven't ended."""
        kit = type("Kit", (), {"prefix": "jobs", "storage": self.storage})
        return sorted(key.job_id for key in Markers(kit))

    def states(self, job_ids: list[str]) -> set[str]:
        return {str(self.store.get(job_id).state) for job_id in job_ids}

    def environment(self, **options: Any) -> dict[str, str]:
        return {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.backends.server_site.settings",
            "JOBKIT_TEST_DATA": str(self.data),
            "JOBKIT_TEST_OPTIONS": json.dumps(options),
            "PYTHONPATH": str(REPOSITORY),
        }

    def gunicorn(self, *arguments: str, **options: Any) -> Server:
        """A running gunicorn; ``options`` are the backend's."""
        require("gunicorn", "pip install gunicorn")
        listener = socket.create_server(("127.0.0.1", 0))
        listener.set_inheritable(True)
        with listener:
            command = [
                *(sys.executable, "-m", "gunicorn", "tests.backends.server_site.wsgi"),
                *("--bind", f"fd://{listener.fileno()}", "--no-control-socket", "--worker-tmp-dir", str(self.data)),
                *("--threads", "4", *arguments),
            ]
            server = Server(
                command, listener.getsockname()[1], self.environment(**options), pass_fds=[listener.fileno()]
            )
        self.servers.append(server)
        until(lambda: server.get("/who/") is not None)
        return server

    def runserver(self, **options: Any) -> Server:
        """Django's development server, with its reloader."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        command = [sys.executable, "-m", "django", "runserver", f"127.0.0.1:{port}"]
        server = Server(command, port, {**self.environment(**options), "JOBKIT_TEST_DEBUG": "1"})
        self.servers.append(server)
        until(lambda: server.get("/who/") is not None)
        return server

    def close(self) -> None:
        for server in self.servers:
            server.kill()


class Server:
    def __init__(self, command: list[str], port: int, environment: dict[str, str], pass_fds=()) -> None:
        self.port = port
        self.output = ""
        self.process = subprocess.Popen(
            command,
            cwd=REPOSITORY,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            pass_fds=pass_fds,
        )

    def request(self, method: str, path: str, fields: dict[str, Any] | None = None) -> http.client.HTTPResponse:
        """The response, with its ``body`` read."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        with contextlib.closing(connection):
            headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
            connection.request(method, path, urlencode(fields or {}), headers)
            response = connection.getresponse()
            response.body = response.read()
            return response

    def get(self, path: str) -> Any:
        """The JSON there; None where nobody answers, or the server ends in the middle of its answer."""
        try:
            response = self.request("GET", path)
        except (OSError, http.client.HTTPException):
            return None
        if response.status != 200 or not response.body:
            return None  # without a length, an answer cut off after its headers is an empty one
        return json.loads(response.body)

    def submit(self, **fields: Any) -> str:
        """The ID of a job that was accepted."""
        response = self.request("POST", "/submit/", fields)
        assert response.status == 202, response.body
        return json.loads(response.body)["job_id"]

    def terminate(self) -> None:
        self.process.terminate()

    def wait(self) -> int:
        """Until it has ended; its exit code."""
        self.output, _ = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode

    def kill(self) -> None:
        """It and all its children, at once; nothing where it has ended."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.wait()
