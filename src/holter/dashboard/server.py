"""From a request to an answer: pages, their assets and JSON, to whom they are meant for."""

import json
import sys
import threading
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol
from urllib.parse import parse_qs, unquote, urlsplit

from holter._version import __version__
from holter.dashboard.access import Access, RefusedError, token_of
from holter.record.errors import HolterError

_LONGEST = 4096  # characters of an address


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked for: the parts of the path, and the query."""

    parts: tuple[str, ...]
    query: Mapping[str, str]
    unless: str = ""  # the version that the browser has already


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent back."""

    body: bytes
    kind: str = "application/json"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, document: Any, *, version: str = "") -> "Answer":
        """Return a JSON document; with its version a browser can ask for what is newer."""
        body = json.dumps(document, allow_nan=False, separators=(",", ":")).encode()
        return cls(body, headers={"ETag": f'"{version}"'} if version else {})

    @classmethod
    def unchanged(cls) -> "Answer":
        """Return that the browser has the newest version."""
        return cls(b"", status=HTTPStatus.NOT_MODIFIED)

    @classmethod
    def failure(cls, sentence: str, status: int) -> "Answer":
        """Return an error in one sentence."""
        return cls(json.dumps({"error": sentence}).encode(), status=status)


class Site(Protocol):
    """What is served."""

    def __call__(self, request: Request) -> Answer | None:
        """Answer a request, or return None where there is nothing at the address."""

    def close(self) -> None:
        """End what runs in the background."""


class Server(ThreadingHTTPServer):
    """Serves a site to those who have access to it."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, site: Site, access: Access, port: int = 0) -> None:
        self.site, self.access = site, access
        if ":" in access.host:
            import socket

            self.address_family = socket.AF_INET6
        super().__init__((access.host, port), _Handler)

    @property
    def port(self) -> int:
        """The port that the server listens on."""
        return int(self.server_address[1])

    def address(self, path: str = "/") -> str:
        """Return the address of a page, with the token where one is needed."""
        host = self.access.host
        host = f"[{host}]" if ":" in host else host
        token = "" if self.access.token is None else f"?token={self.access.token}"
        return f"http://{host}:{self.port}{path}{token}"

    def start(self) -> None:
        """Serve in a thread that ends with the process."""
        threading.Thread(target=self.serve_forever, name="holter-server", daemon=True).start()

    def stop(self) -> None:
        """Stop serving, and end what the site runs in the background."""
        self.shutdown()
        self.server_close()
        self.site.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay silent where a browser has gone away."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version = f"holter/{__version__}"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = 60.0

    def do_GET(self) -> None:
        self._send(self._answer())

    def do_HEAD(self) -> None:
        self._send(self._answer())

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (of the base class)
        pass

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer a malformed or unsupported request in one sentence, without echoing it."""
        del message, explain
        self.close_connection = True
        self._send(Answer.failure(f"{self.responses[code][0]}.", code))

    def _answer(self) -> Answer:
        access = self.server.access
        given = {name.lower(): value for name, value in self.headers.items()}
        try:
            access.require(given)
        except RefusedError as refusal:
            return Answer.failure(str(refusal), HTTPStatus.FORBIDDEN)
        if len(self.path) > _LONGEST:
            return Answer.failure("The address is too long.", HTTPStatus.REQUEST_URI_TOO_LONG)
        address = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(address.query).items()}
        if access.token is not None and access.knows(query.get("token")):
            # From here on the cookie has it: an address may be copied or logged.
            headers = {"Location": address.path, "Set-Cookie": access.cookie()}
            return Answer(b"", "text/plain", HTTPStatus.SEE_OTHER, headers)
        if not access.knows(token_of(given)):
            sentence = "Open the address that `holter show` printed: it carries the token."
            return Answer.failure(sentence, HTTPStatus.UNAUTHORIZED)
        parts = tuple(unquote(part) for part in address.path.split("/") if part)
        unless = given.get("if-none-match", "").strip('"')
        return self._from_site(Request(parts, query, unless))

    def _from_site(self, request: Request) -> Answer:
        try:
            answer = self.server.site(request)
        except HolterError as error:
            return Answer.failure(str(error), HTTPStatus.BAD_REQUEST)
        except Exception as error:
            traceback.print_exc()
            sentence = f"internal error, please report it: {type(error).__name__}: {error}"
            return Answer.failure(sentence, HTTPStatus.INTERNAL_SERVER_ERROR)
        if answer is None:
            return Answer.failure("There is no such page.", HTTPStatus.NOT_FOUND)
        return answer

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in {**self.server.access.headers, **answer.headers}.items():
            self.send_header(name, value)
        if answer.status != HTTPStatus.NOT_MODIFIED:
            self.send_header("Content-Type", f"{answer.kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)
