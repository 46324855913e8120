"""A small run on disk, and a folder of one's own to call the commands in."""

import math
from pathlib import Path

import pytest
from recorded import write_run


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("NO_COLOR", "FORCE_COLOR", "HOLTER_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def sick(here: Path) -> Path:
    return write_run(here / "sick", [2.0, 1.9, 1.8, math.nan, math.nan])


@pytest.fixture
def healthy(here: Path) -> Path:
    return write_run(here / "healthy", [2.0 * 0.98**step for step in range(100)])
