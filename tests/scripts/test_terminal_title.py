"""The title of the terminal while a script runs: the screen stays the script's own."""

import math
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from holter.record import Run
from holter.record.findings import Confidence
from holter.record.signals import LOSS
from holter.scripts.terminal_title import alert_of, follow, is_wanted, title_of
from synthetic import run_of

SCRIPT = """
import time, torch
from torch import nn
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(60):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).square().mean().backward()
    optimizer.step()
    print(f"\\rstep {step}", end="", flush=True)
    time.sleep(0.08)
print()
"""


def screen_of(command: list[str], folder: Path) -> str:
    """Run a command in a terminal; return everything that was written to it."""
    terminal, inside = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color"}
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdin=inside, stdout=inside, stderr=inside
    ) as process:
        os.close(inside)
        written = b""
        while True:
            try:
                part = os.read(terminal, 65536)
            except OSError:  # the other side has been closed
                break
            if not part:
                break
            written += part
        process.wait(timeout=60)
    os.close(terminal)
    return written.decode()


def test_the_output_of_the_script_is_untouched(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "holter", "run", "--no-check", "train.py"]
    written = screen_of(command, tmp_path)
    titles = re.findall("\033\\]2;(.*?)\007", written)
    assert any(re.fullmatch(r"holter: step \d+ · loss [\d.e-]+", title) for title in titles)
    screen = re.sub("\033\\]2;.*?\007|\033\\[2[23];2t", "", written)
    printed = "".join(f"\rstep {step}" for step in range(60)) + "\r\n"
    assert screen.endswith(printed)
    assert screen.startswith("holter: recording to ")


def test_a_title_has_steps_and_the_last_loss() -> None:
    assert title_of(run_of({LOSS: {"": [2.0, 1.5]}}), None) == "holter: step 2 · loss 1.5"
    assert title_of(Run({}), None) == "holter: step 0"


def test_an_alert_is_certain_and_in_front() -> None:
    broken = run_of({LOSS: {"": [2.0, 1.5, math.nan, math.nan]}})
    alert = alert_of(broken)
    assert alert is not None
    assert alert.confidence is Confidence.CERTAIN
    assert title_of(broken, alert) == "holter: nonfinite-loss since step 2 · step 4 · loss nan"
    assert alert_of(run_of({LOSS: {"": [2.3] * 300}})) is None  # flat, but it may fall yet


def test_it_ends_with_the_script(tmp_path: Path) -> None:
    written: list[str] = []
    follow(tmp_path / "nothing", lambda: False, written.append)
    assert written == ["\033[22;2t", "\033[23;2t"]


@pytest.mark.parametrize("kind", ["dumb", "linux"])
def test_some_terminals_have_no_title(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", kind)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert not is_wanted()
