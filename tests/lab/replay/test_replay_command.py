"""`holter try replay`, as a user calls it on a run of an unmodified script."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

CASES = Path(__file__).parents[3] / "cases"
pytestmark = pytest.mark.slow


def holter(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "holter", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("failed")
    script = folder / "train.py"
    script.write_text((CASES / "nonfinite-birth" / "sick.py").read_text())
    ran = holter(folder, "run", "--no-check", "--out", "run", "train.py")
    assert "holter try replay run" in ran.stderr
    return folder


def test_it_names_line_sample_and_cure_and_exports(failed: Path) -> None:
    ran = holter(failed, "try", "replay", "--json", "--export", "repro.py", "run")
    assert ran.returncode == 1, ran.stderr
    leading = json.loads(ran.stdout)["diagnosis"]["leading"]
    assert leading["rule"] == "nonfinite-birth"
    line = next(
        number
        for number, text in enumerate((failed / "train.py").read_text().splitlines(), 1)
        if "probability.log()" in text
    )
    assert f"train.py:{line}" in leading["summary"]
    assert "bit for bit" in ran.stderr
    assert "step skipped: cures" in ran.stderr
    shown = subprocess.run(
        [sys.executable, "repro.py"], cwd=failed, capture_output=True, text=True, check=True
    )
    assert "loss nan" in shown.stdout or "loss inf" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["run", "--capture"], "expected one argument"),
        (["--capture", "7", "run"], "has no capture 7"),
        (["nowhere"], "no folder nowhere"),
        pytest.param(
            ["--setup", "mine:setup", "run"], "no module mine", marks=pytest.mark.exhaustive
        ),
    ],
)
def test_wrong_use_is_one_sentence(failed: Path, arguments: list[str], told: str) -> None:
    ran = holter(failed, "try", "replay", *arguments)
    assert ran.returncode == 2
    assert told in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_run_without_a_capture_says_so(failed: Path) -> None:
    (failed / "quiet.py").write_text("import torch\nprint(torch.ones(1))\n")
    holter(failed, "run", "--no-check", "--out", "quiet", "quiet.py")
    ran = holter(failed, "try", "replay", "quiet")
    assert ran.returncode == 2
    assert "has no capture" in ran.stderr


@pytest.mark.exhaustive
def test_without_a_capture_the_reason_is_told(tmp_path: Path) -> None:
    """Of a run that was killed, and of one whose capture found no room on the disk."""
    source = (CASES / "nonfinite-birth" / "sick.py").read_text()
    (tmp_path / "killed.py").write_text(
        source.replace("loss.backward()", "loss.backward() or __import__('os')._exit(9)", 1)
    )
    holter(tmp_path, "run", "--no-check", "--out", "killed", "killed.py")
    killed = holter(tmp_path, "try", "replay", "killed")
    assert "was killed before a capture was written" in killed.stderr
    limited = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (6_000, 6_000))"
    (tmp_path / "full.py").write_text(f"{limited}\n{source}")
    holter(tmp_path, "run", "--no-check", "--out", "full", "full.py")
    full = holter(tmp_path, "try", "replay", "full")
    assert full.returncode == 2
    assert "could not be written" in full.stderr


@pytest.mark.exhaustive
def test_a_module_is_run_again_as_a_module(tmp_path: Path) -> None:
    package = tmp_path / "mine"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "data.py").write_text("RATE = 1e-2\n")
    source = (CASES / "nonfinite-birth" / "sick.py").read_text()
    (package / "train.py").write_text(
        source.replace("import torch\n", "import torch\nfrom .data import RATE\n", 1)
    )
    holter(tmp_path, "run", "--no-check", "--out", "run", "-m", "mine.train")
    ran = holter(tmp_path, "try", "replay", "--no-ladder", "--json", "run")
    assert json.loads(ran.stdout)["diagnosis"]["leading"]["rule"] == "nonfinite-birth", ran.stderr


def test_only_an_unchanged_script_of_this_project_is_executed(failed: Path, tmp_path: Path) -> None:
    (failed / ".git").mkdir(exist_ok=True)
    project = tmp_path / "other"
    project.mkdir()
    (project / ".git").mkdir()
    outside = holter(project, "try", "replay", "--no-ladder", str(failed / "run"))
    assert outside.returncode == 2
    assert "outside the current project" in outside.stderr
    assert "python train.py" in outside.stderr
    script = failed / "train.py"
    source = script.read_text()
    try:
        script.write_text(f"open('executed', 'w')\n{source}")
        changed = holter(failed, "try", "replay", "--no-ladder", "run")
        assert changed.returncode == 2
        assert "has changed" in changed.stderr
        assert not (failed / "executed").exists()
        script.write_text(source + "\n# reviewed\n")
        trusted = holter(failed, "try", "replay", "--no-ladder", "--trust", "run")
        assert "bit for bit" in trusted.stderr
    finally:
        script.write_text(source)


def test_an_export_with_random_values_fails_as_well(failed: Path) -> None:
    holter(failed, "try", "replay", "--no-ladder", "--synthetic", "--export", "made.py", "run")
    shown = subprocess.run(
        [sys.executable, "made.py"], cwd=failed, capture_output=True, text=True, check=True
    )
    assert "nan" in shown.stdout or "inf" in shown.stdout or "not finite" in shown.stdout


def test_ctrl_c_while_the_script_runs_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import os, signal, torch\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "os.kill(os.getpid(), signal.SIGINT)\n"
        "torch.ones(1)\n"
    )
    ran = holter(tmp_path, "try", "preflight", "train.py")
    assert ran.returncode == 130
    assert "interrupted while train.py was running" in ran.stderr
    assert "Traceback" not in ran.stderr
