"""A running dashboard, asked as a browser would ask, or as an attacker would."""

import http.client
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from holter.dashboard.server import Server


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Served:
    """A running dashboard, asked as a browser would ask, or as an attacker would."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def get(self, path: str, *, method: str = "GET", **headers: str) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, headers=named)
            answer = connection.getresponse()
            return Reply(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()

    def address(self, path: str = "/") -> str:
        return self.server.address(path)

    def id_of(self, name: str) -> str:
        rows = self.get("/api/runs").json["runs"]
        return next(row["id"] for row in rows if row["name"] == name)


Serve = Callable[..., Served]
