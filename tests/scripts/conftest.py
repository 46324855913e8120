"""Every ordinary script of tests/scripts, run once plainly and once under `holter run`."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from launched import SCRIPTS, Twins, once, run_both

Both = Callable[..., Twins]


@pytest.fixture(scope="session")
def both(tmp_path_factory: pytest.TempPathFactory) -> Both:
    """Run a script both ways; the second who asks for the same gets the same."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "launched"

    def run(script: str, *arguments: str, regime: str = "whole") -> Twins:
        name = "_".join((regime, script, *arguments)).replace("/", "_")
        path = SCRIPTS / f"{script}.py"
        return once(folder, name, lambda here: run_both(path, arguments, here, regime=regime))

    return run


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """An empty folder to call commands in."""
    folder = tmp_path / "here"
    folder.mkdir()
    return folder


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let all tests of one real script follow each other: two workers then run different ones."""
    places = [at for at, item in enumerate(items) if item.path.stem == "test_real_scripts"]
    ordered = sorted((items[at] for at in places), key=_launch_of)
    for at, item in zip(places, ordered, strict=True):
        items[at] = item


def _launch_of(item: pytest.Item) -> str:
    return item.name.partition("[")[2]
