"""`holter schedule`: a schedule drawn before it is used."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from holter._cli import main

COSINE = ["schedule", "warmup-cosine", "--peak", "3e-4", "--warmup", "500", "--steps", "10000"]
CYCLE = ["schedule", "one-cycle", "--peak", "0.1", "--steps", "300"]


@pytest.fixture(autouse=True)
def plain(here: object) -> None:
    """No colour, and a folder of its own."""


@pytest.mark.parametrize(
    ("command", "steps", "used"),
    [
        (COSINE, {"499": "0.0003", "0": "6e-07"}, "holter.warmup_cosine(optimizer, warmup=500"),
        ([*COSINE, "--floor", "0.1"], {"9,999": "3e-05"}, "steps=10000, floor=0.1)"),
        (CYCLE, {"89": "0.1", "0": "0.004"}, "holter.one_cycle(optimizer, peak=0.1, steps=300)"),
        ([*CYCLE, "--warmup", "30"], {"29": "0.1"}, "steps=300, warmup=30)"),
    ],
)
def test_is_drawn_with_its_key_steps(
    command: list[str], steps: dict[str, str], used: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command) == 0
    shown = capsys.readouterr().out
    assert used in shown
    assert max(map(len, shown.splitlines())) <= 96
    for step, rate in steps.items():
        assert any(
            line.split()[:3] == ["step", step, rate] for line in shown.splitlines() if line.split()
        )


def test_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COSINE, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["rates"]["9999"] < 1e-9
    assert max(told["rates"].values()) == pytest.approx(3e-4, rel=1e-3)
    assert len(told["rates"]) <= 402


def test_the_shortest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schedule", "warmup-cosine", "--peak", "1", "--warmup", "0", "--steps", "1"]) == 0
    assert "last step" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ([*COSINE[:4], "--steps", "100"], "--warmup"),
        ([*COSINE[:6], "--steps", "100"], "less than steps"),
        ([*COSINE, "--floor", "2"], "share of the peak"),
        ([*CYCLE, "--floor", "0.1"], "warmup-cosine"),
        (["schedule", "one-cycle", "--peak", "-1", "--steps", "100"], "above 0"),
    ],
)
def test_what_is_no_schedule(
    command: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1


def test_a_picture(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    assert main([*CYCLE, "--plot", "lr.png"]) == 0
    assert Path("lr.png").read_bytes().startswith(b"\x89PNG")
    assert main([*CYCLE, "--plot", "missing/lr.png"]) == 2
    assert "missing/lr.png" in capsys.readouterr().err


def test_needs_no_torch() -> None:
    code = (
        "import sys; from holter._cli import main; code = main(sys.argv[1:])\n"
        "assert 'torch' not in sys.modules; sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code, *CYCLE], check=False, capture_output=True)
    assert done.returncode == 0, done.stderr
