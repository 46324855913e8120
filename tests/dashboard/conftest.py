"""A dashboard over a folder of runs."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from served import Serve, Served

from holter.dashboard.access import Access
from holter.dashboard.library import Library
from holter.dashboard.server import Server
from holter.dashboard.site import Dashboard


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Return a function that serves folders until the test ends."""
    running: list[Server] = []

    def start(*folders: Path, token: bool = False) -> Served:
        server = Server(Dashboard(Library(folders)), Access.for_host("127.0.0.1", token=token))
        server.start()
        running.append(server)
        return Served(server)

    yield start
    for server in running:
        server.stop()
