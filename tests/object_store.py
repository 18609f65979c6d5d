"""A store of objects on this machine: moto's server, behind a door that can be told to fail."""

from __future__ import annotations

import logging
import re
import threading
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from html import unescape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from moto.server import ThreadedMotoServer

if TYPE_CHECKING:
    from collections.abc import Callable

SECRET = "canary+secret/of=the&store"  # noqa: S105 - of readers, to be looked for in what they write
SIGNED = "AWS4-HMAC-SHA256 Credential=KEY/20261122/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=00"
ENABLED = b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"


@dataclass(frozen=True)
class Fault:
    """What the door answers in the place of the store.

    Attributes:
        status: Status of HTTP.
        body: Content.
        cut: Whether to break off halfway through what the store answers instead.
        late: Whether the store does what it is asked to do before.
        spoilt: Whether a byte of what is written changes on the way, which is all that happens.
    """

    status: int = 503
    body: str = "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
    cut: bool = False
    late: bool = False
    spoilt: bool = False


@dataclass
class ObjectStore:
    """A store.

    Attributes:
        address: Of the store itself.
        door: Address of the door, which is what readers are given.
        requests: Method and path of everything that came through the door.
        fault: Says what to answer to a method and a path; None: what the store says.
        has_conditions: Whether the store honours If-Match and If-None-Match.
        received: Bytes of all answers to requests for objects that came through the door.
    """

    address: str
    door: str = ""
    requests: list[tuple[str, str]] = field(default_factory=list)
    fault: Callable[[str, str], Fault | None] = lambda _method, _path: None
    has_conditions: bool = True
    received: int = 0

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, dict[str, str], bytes]:
        """Ask the store itself; nothing is signed, and it does not mind."""
        headers = {"Content-Type": "application/octet-stream", "Authorization": SIGNED}
        request = urllib.request.Request(f"{self.address}{path}", body, headers, method=method)  # noqa: S310 - of this machine
        try:
            with urllib.request.urlopen(request) as answer:  # noqa: S310
                return answer.status, dict(answer.headers), answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, dict(error.headers), error.read()

    def put(self, key: str, body: bytes) -> None:
        """Put an object, `bucket/key`."""
        assert self.ask("PUT", f"/{quote(key)}", body)[0] == 200

    def get(self, key: str) -> bytes:
        """The content of an object, `bucket/key`."""
        status, _, body = self.ask("GET", f"/{quote(key)}")
        assert status == 200, key
        return body

    def delete(self, key: str) -> None:
        """Remove an object."""
        assert self.ask("DELETE", f"/{quote(key)}")[0] == 204

    def keys(self, bucket: str, prefix: str) -> list[str]:
        """The keys below a prefix, without it."""
        _, _, body = self.ask("GET", f"/{bucket}?list-type=2&prefix={quote(prefix)}")
        return [unescape(key).removeprefix(prefix) for key in re.findall("<Key>(.*?)</Key>", body.decode())]

    def bucket(self, name: str, *, versioned: bool = False) -> str:
        """Make a bucket."""
        self.ask("PUT", f"/{name}")
        if versioned:
            self.ask("PUT", f"/{name}?versioning", ENABLED)
        return name

    def count(self, method: str, text: str) -> int:
        """Requests so far by method and a text in their path."""
        return sum(asked == method and text in unquote(path) for asked, path in self.requests)


class _Door(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store: ObjectStore

    def _answer(self) -> None:
        self.store.requests.append((self.command, self.path))
        fault = self.store.fault(self.command, self.path)
        content = self.rfile.read(int(self.headers.get("Content-Length", 0))) or None
        if fault is not None and fault.spoilt and content is not None:
            fault, content = None, content[:-1] + b"?"
        if fault is not None and not fault.cut and not fault.late:
            return self._send(fault.status, {}, fault.body.encode(), len(fault.body.encode()))
        request = urllib.request.Request(f"{self.store.address}{self.path}", content, method=self.command)  # noqa: S310
        for name, value in self.headers.items():
            is_dropped = name.lower().startswith("if-") and not self.store.has_conditions
            if name.lower() not in {"host", "connection", "authorization"} and not is_dropped:
                request.add_header(name, value)
        request.add_header("Authorization", SIGNED)
        if content is not None and not request.has_header("Content-type"):
            request.add_header("Content-Type", "application/octet-stream")  # urllib would call it a form
        try:
            with urllib.request.urlopen(request) as answer:  # noqa: S310
                status, headers, body = answer.status, dict(answer.headers), answer.read()
        except urllib.error.HTTPError as error:
            with error:
                status, headers, body = error.code, dict(error.headers), error.read()
        if fault is not None and fault.late:
            return self._send(fault.status, {}, fault.body.encode(), len(fault.body.encode()))
        length = int(headers.get("Content-Length", len(body))) if self.command == "HEAD" else len(body)
        self.store.received += len(body) if self.command == "GET" and "list-type" not in self.path else 0
        if fault is not None:
            body, self.close_connection = body[: len(body) // 2], True
        return self._send(status, headers, body, length)

    def _send(self, status: int, headers: dict[str, str], body: bytes, length: int) -> None:
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in {"content-length", "connection", "transfer-encoding", "server", "date"}:
                self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _answer  # noqa: N815 - names of the library

    def log_message(self, *_args: object) -> None:
        """Say nothing."""


class Running:
    """A store that runs until it is left."""

    def __enter__(self) -> ObjectStore:
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self._server.start()
        host, port = self._server.get_host_and_port()
        store = ObjectStore(f"http://{host}:{port}")
        self._door = ThreadingHTTPServer(("127.0.0.1", 0), type("Door", (_Door,), {"store": store}))
        self._door.daemon_threads = True
        threading.Thread(target=self._door.serve_forever, daemon=True).start()
        store.door = f"http://127.0.0.1:{self._door.server_port}"
        return store

    def __exit__(self, *_error: object) -> None:
        self._door.shutdown()
        self._door.server_close()
        self._server.stop()
