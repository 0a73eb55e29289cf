"""An HTTP proxy between a client and an emulator: counts what passes, and breaks it on demand."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit


@dataclass
class Request:
    """One request as it came in. ``kind`` is read, write, list, delete, batch or other."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    kind: str = field(init=False)
    query: dict[str, str] = field(init=False)
    path: str = field(init=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.target)
        self.path = unquote(parts.path)
        self.query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        self.kind = gcs_kind(self) if re.match(r"/(upload|download|storage|batch)\b", self.path) else s3_kind(self)


def gcs_kind(request: Request) -> str:
    if request.path.startswith("/batch/"):
        return "batch"
    if request.path.startswith("/upload/"):
        return "write"
    if request.path.startswith("/download/") or request.query.get("alt") == "media":
        return "read"
    if request.method == "DELETE":
        return "delete"
    return "list" if request.path.endswith("/o") else "other"


def s3_kind(request: Request) -> str:
    if request.method == "POST" and "delete" in request.query:
        return "batch"
    if "list-type" in request.query:
        return "list"
    return {"GET": "read", "PUT": "write", "DELETE": "delete"}.get(request.method, "other")


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


Forward = Callable[[Request], Answer]
Fault = Callable[["Handler", Request, Forward], None]


class Proxy:
    """Listens on loopback and passes everything on to ``upstream`` (``http://host:port``).

    ``break_next(fault, kinds, times)`` makes the next so many requests of those kinds fail; ``times=None``: all of
    them until `mend`. ``requests`` is what came in, in order.
    """

    def __init__(self, upstream: str) -> None:
        self.upstream = urlsplit(upstream)
        self.requests: list[Request] = []
        self.closing = threading.Event()
        self.listening = False
        self.emulates_batch = False
        self._faults: list[tuple[Fault, frozenset[str], int | None]] = []
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        self._server: ThreadingHTTPServer | None = None
        self._port = 0
        self.listen()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def listen(self) -> None:
        handler = type("BoundHandler", (Handler,), {"proxy": self})
        self._server = Server(("127.0.0.1", self._port), handler)
        self._port = self._server.server_address[1]
        self.listening = True
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def refuse_connections(self) -> None:
        """Until `listen` is called again, as if no server were running."""
        assert self._server is not None
        self.listening = False
        self._server.shutdown()
        self._server.server_close()
        for connection in list(self._connections):
            abort(connection)

    def close(self) -> None:
        self.closing.set()
        self.refuse_connections()

    def break_next(self, fault: Fault, kinds: str, times: int | None = 1) -> None:
        with self._lock:
            self._faults.append((fault, frozenset(kinds.split()), times))

    def mend(self) -> None:
        with self._lock:
            self._faults.clear()

    def kinds(self) -> list[str]:
        return [request.kind for request in self.requests]

    def take_fault(self, request: Request) -> Fault | None:
        with self._lock:
            self.requests.append(request)
            for index, (fault, kinds, times) in enumerate(self._faults):
                if request.kind in kinds:
                    if times is not None:
                        if times == 1:
                            del self._faults[index]
                        else:
                            self._faults[index] = (fault, kinds, times - 1)
                    return fault
        return None

    def forward(self, request: Request) -> Answer:
        if request.kind == "batch" and self.emulates_batch:
            return emulate_batch(self, request)
        connection = http.client.HTTPConnection(self.upstream.hostname or "", self.upstream.port, timeout=30)
        try:
            connection.request(request.method, request.target, request.body, request.headers)
            response = connection.getresponse()
            body = response.read()
            headers = {
                name: value
                for name, value in response.getheaders()
                if name.lower() not in ("connection", "transfer-encoding", "content-length", "keep-alive")
            }
            return Answer(response.status, headers, body)
        finally:
            connection.close()


class Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Connections break here all the time: that is what this server is for."""


class Handler(BaseHTTPRequestHandler):
    proxy: Proxy
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        self.proxy._connections.add(self.connection)

    def finish(self) -> None:
        self.proxy._connections.discard(self.connection)
        with contextlib.suppress(OSError):
            super().finish()

    def serve(self) -> None:
        if not self.proxy.listening:
            self.abort()  # what came in while the connections were being closed
            return
        length = int(self.headers.get("Content-Length") or 0)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in ("connection", "expect")}
        request = Request(self.command, self.path, headers, self.rfile.read(length))
        fault = self.proxy.take_fault(request)
        if fault is None:
            self.answer(self.proxy.forward(request))
        else:
            fault(self, request, self.proxy.forward)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = serve

    def answer(self, answer: Answer, *, send: int | None = None, promise: int | None = None) -> None:
        """Send it whole, or only ``send`` bytes of a body that is said to have ``promise`` bytes."""
        self.send_response_only(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        bodiless = answer.status == 204 and promise is None
        if not bodiless:
            self.send_header("Content-Length", str(len(answer.body) if promise is None else promise))
        self.end_headers()
        if not bodiless and self.command != "HEAD":
            self.wfile.write(answer.body if send is None else answer.body[:send])

    def abort(self) -> None:
        self.close_connection = True
        abort(self.connection)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def abort(connection: socket.socket) -> None:
    """Close a connection so that the other side sees a reset."""
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RD)
    # `close` alone waits for the files that the handler made of the socket.
    with contextlib.suppress(OSError):
        connection._real_close()


# Faults


def status(code: int, body: Callable[[], tuple[str, str]] | tuple[str, str] = ("text/plain", "")) -> Fault:
    """Answer with this status, and don't pass the request on."""

    def fault(handler: Handler, request: Request, forward: Forward) -> None:
        kind, text = body() if callable(body) else body
        handler.answer(Answer(code, {"Content-Type": kind}, text.encode()))

    return fault


def canned(make: Callable[[Request], tuple[str, str]]) -> Fault:
    """Answer 200 with what ``make`` says: content type and text."""

    def fault(handler: Handler, request: Request, forward: Forward) -> None:
        kind, text = make(request)
        handler.answer(Answer(200, {"Content-Type": kind}, text.encode()))

    return fault


def reset(handler: Handler, request: Request, forward: Forward) -> None:
    """Break the connection without passing the request on."""
    handler.abort()


def hang(handler: Handler, request: Request, forward: Forward) -> None:
    """Never answer."""
    handler.proxy.closing.wait(60)
    handler.abort()


def hang_in_body(handler: Handler, request: Request, forward: Forward) -> None:
    """Answer with the head and half of the body, and then with nothing."""
    answer = forward(request)
    handler.answer(answer, send=len(answer.body) // 2, promise=len(answer.body) + 10)
    hang(handler, request, forward)


def lost(after: Callable[[], object] = lambda: None) -> Fault:
    """Pass the request on, then ``after()``, and break the connection instead of answering."""

    def fault(handler: Handler, request: Request, forward: Forward) -> None:
        forward(request)
        after()
        handler.abort()

    return fault


def truncated(handler: Handler, request: Request, forward: Forward) -> None:
    """Pass the request on, and break the connection in the middle of the answer."""
    answer = forward(request)
    promise = len(answer.body) or 10
    code = 200 if answer.status == 204 else answer.status  # a 204 has no body to cut
    handler.answer(Answer(code, answer.headers, answer.body), send=len(answer.body) // 2, promise=promise)
    handler.abort()


# What fake-gcs-server doesn't do


def emulate_batch(proxy: Proxy, request: Request) -> Answer:
    """Do what Google's service does with a batch: each part by itself, deletion conditions included."""
    content_type = {name.lower(): value for name, value in request.headers.items()}["content-type"]
    message = BytesParser().parsebytes(b"Content-Type: " + content_type.encode() + b"\r\n\r\n" + request.body)
    parts = []
    for number, part in enumerate(message.get_payload()):
        inner = part.get_payload(decode=True) if not part.is_multipart() else part.get_payload()[0].as_bytes()
        method, target, _ = inner.split(b"\r\n", 1)[0].split(b"\n", 1)[0].decode().split(" ", 2)
        code = conditional_delete(proxy, method, urlsplit(target)._replace(scheme="", netloc="").geturl())
        parts.append(
            "--answers\r\nContent-Type: application/http\r\n"
            f"Content-ID: <response-{number}>\r\n\r\nHTTP/1.1 {code} Some\r\nContent-Length: 0\r\n\r\n\r\n"
        )
    body = "".join([*parts, "--answers--\r\n"]).encode()
    return Answer(200, {"Content-Type": "multipart/mixed; boundary=answers"}, body)


def conditional_delete(proxy: Proxy, method: str, target: str) -> int:
    assert method == "DELETE"
    request = Request("DELETE", target, {}, b"")
    wanted = request.query.get("ifGenerationMatch")
    if wanted is not None:
        found = proxy.forward(Request("GET", urlsplit(target).path, {}, b""))
        if found.status == 200 and json.loads(found.body)["generation"] != wanted:
            return 412
    return proxy.forward(request).status
