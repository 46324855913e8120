"""Recognises scripts in this process: afterwards they are unwound, and all is as before."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forms import HEAD

from holter.scripts.recognition import Recognised, recognise
from holter.scripts.recognition.leaving import unwind

Recognise = Callable[..., Any]


@pytest.fixture
def recognised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recognise:
    """Run a script (behind the usual beginning) and return what is recognised in it.

    With `look`, what that makes of it while the script is paused.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])

    def run(
        source: str,
        *,
        steps: int | None = 6,
        seconds: float = 60.0,
        head: str = HEAD,
        look: Callable[[Recognised], Any] | None = None,
    ) -> Any:
        script = tmp_path / "train.py"
        script.write_text(head + source)
        found: list[Any] = []

        def then(one: Recognised) -> int:
            found.append(one if look is None else look(one))
            return 0

        recognise("train.py", steps=steps, seconds=seconds, then=then, leave=unwind)
        return found[0]

    return run
