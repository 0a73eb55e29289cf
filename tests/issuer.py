"""Google, as far as identity tokens go: keys of the test's own, their certificates on a loopback server, and tokens."""

from __future__ import annotations

import base64
import functools
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.components import require

AUDIENCE = "https://jobs.example.com/"
ACCOUNT = "reporter@some-project.iam.gserviceaccount.com"


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def segment(document: Any) -> str:
    return base64url(json.dumps(document).encode())


@functools.cache
def key_pair(number: int, kind: str = "rsa"):
    """The private key of this number, made once, and its certificate as PEM text."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from cryptography.x509.oid import NameOID

    key = rsa.generate_private_key(65537, 2048) if kind == "rsa" else ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"test key {number}")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(number)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    return key, certificate.public_bytes(serialization.Encoding.PEM).decode()


def claims(**changes: Any) -> dict[str, Any]:
    """What a token of the account says; a claim that is changed to None is left out."""
    now = int(time.time())
    all_claims = {
        "iss": "https://accounts.google.com",
        "aud": AUDIENCE,
        "sub": "113774264463038321964",
        "email": ACCOUNT,
        "email_verified": True,
        "iat": now,
        "exp": now + 3600,
        **changes,
    }
    return {name: value for name, value in all_claims.items() if value is not None}


def signed(header: Any, payload: Any, key: Any) -> str:
    """A token signed with RS256, whatever its header says."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding

    body = f"{segment(header)}.{segment(payload)}"
    return f"{body}.{base64url(key.sign(body.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


def with_hs256(header: Any, payload: Any, secret: bytes) -> str:
    body = f"{segment(header)}.{segment(payload)}"
    return f"{body}.{base64url(hmac.new(secret, body.encode(), hashlib.sha256).digest())}"


class Issuer:
    """Serves the certificates of its keys, as ``answer`` and ``headers`` say, and counts who asks in ``asked``."""

    def __init__(self) -> None:
        self.keys = {"key-1": 1}
        self.headers = {"Cache-Control": "public, max-age=20000, must-revalidate"}
        self.status = 200
        self.answer: bytes | None = None
        self.asked = 0
        self.gate = threading.Event()
        self.gate.set()
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.asked += 1
                issuer.gate.wait(30)
                answer = issuer.answer if issuer.answer is not None else json.dumps(issuer.certificates()).encode()
                self.send_response(issuer.status)
                for name, value in issuer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()
        self.is_up = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/certs"

    def certificates(self) -> dict[str, str]:
        return {key_id: key_pair(number)[1] for key_id, number in self.keys.items()}

    def token(self, key_id: str = "key-1", **changes: Any) -> str:
        header = {"alg": "RS256", "kid": key_id, "typ": "JWT"}
        return signed(header, claims(**changes), key_pair(self.keys[key_id])[0])

    def go_down(self) -> None:
        """From now on, connections to it are refused."""
        if self.is_up:
            self.is_up = False
            self.gate.set()
            self.server.shutdown()
            self.thread.join()
            self.server.server_close()


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    install = "pip install 'django-jobkit[oidc]'"
    for module in ("google.auth.transport.requests", "cryptography"):
        require(module, install)
    made = Issuer()
    yield made
    made.go_down()
