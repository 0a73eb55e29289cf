"""An HTTP proxy, a process of its own, that counts requests and bytes and makes each request take a while longer.

    python counting_proxy.py PORT UPSTREAM       where UPSTREAM is a host:port on this machine

``GET /-/take`` answers with what has passed since the last such request, as JSON; ``GET /-/delay/20`` makes each
request from then on take 20 ms longer.
"""

from __future__ import annotations

import http.client
import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "expect"}


class Counts:
    def __init__(self) -> None:
        self.requests = self.sent = self.received = 0
        self.delay = 0.0
        self.lock = threading.Lock()

    def take(self) -> dict[str, int]:
        with self.lock:
            taken = {"requests": self.requests, "sent": self.sent, "received": self.received}
            self.requests = self.sent = self.received = 0
        return taken


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    counts = Counts()
    upstream = ""
    connection_above: http.client.HTTPConnection | None = None

    def serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path.startswith("/-/"):
            self.control()
            return
        time.sleep(self.counts.delay)
        if self.connection_above is None:  # as long as the client keeps its connection, we keep ours
            self.connection_above = http.client.HTTPConnection(self.upstream, timeout=60)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP_BY_HOP}
        self.connection_above.request(self.command, self.path, body, headers)
        answer = self.connection_above.getresponse()
        data = answer.read()
        kept = [(name, value) for name, value in answer.getheaders() if name.lower() not in HOP_BY_HOP]
        with self.counts.lock:
            self.counts.requests += 1
            self.counts.sent += len(self.requestline) + size(self.headers.items()) + len(body)
            self.counts.received += size(kept) + len(data)
        self.answer(answer.status, kept, data)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = do_PATCH = serve

    def control(self) -> None:
        if self.path == "/-/take":
            self.answer(200, [], json.dumps(self.counts.take()).encode())
        else:
            self.counts.delay = float(self.path.rpartition("/")[2]) / 1000
            self.answer(200, [], b"{}")

    def answer(self, status: int, headers: list[tuple[str, str]], data: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if status != 204 and self.command != "HEAD":
            self.wfile.write(data)

    def finish(self) -> None:
        super().finish()
        if self.connection_above is not None:
            self.connection_above.close()

    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def size(headers: object) -> int:
    return sum(len(name) + len(value) + 4 for name, value in headers)  # type: ignore[attr-defined]


if __name__ == "__main__":
    Handler.upstream = sys.argv[2]
    Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
