"""The command line as a whole: help, version, and errors in one sentence."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import holter
from holter import _cli
from holter._cli import COMMANDS, main
from holter.record.errors import HolterError


def raising(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def execute(args: object) -> int:
        raise error

    monkeypatch.setattr("holter._cli.rules.execute", execute)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"holter {holter.__version__}\n"


def test_no_command_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    shown = capsys.readouterr().err
    assert all(re.search(rf"\n    {name}\s", shown) for name in COMMANDS)


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "demo"])
def test_help_carries_a_newcomer(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    shown = capsys.readouterr().out
    assert "examples:" in shown
    assert f"holter {command}" in shown


def test_check_tells_its_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["check", "--help"])
    assert "exit codes:" in capsys.readouterr().out


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (HolterError("Do this."), 2, "holter: Do this.\n"),
        (PermissionError(13, "Permission denied", "x"), 2, "holter: Permission denied (x)\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_errors_are_one_sentence(
    error: BaseException,
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    raising(monkeypatch, error)
    assert main(["rules"]) == code
    assert capsys.readouterr().err == said


def test_an_internal_error_says_how_to_see_it(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    raising(monkeypatch, ZeroDivisionError("oh"))
    assert main(["rules"]) == 2
    said = capsys.readouterr().err
    assert "internal error" in said
    assert "ZeroDivisionError: oh" in said
    assert "HOLTER_DEBUG=1" in said
    assert "Traceback" not in said
    monkeypatch.setenv("HOLTER_DEBUG", "1")
    assert main(["rules"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_a_reader_that_leaves_is_no_error(tmp_path: Path) -> None:
    code = "import sys; from holter._cli import main; sys.exit(main(['rules', '--json']))"
    writer = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert writer.stdout is not None
    assert writer.stderr is not None
    with writer:
        writer.stdout.close()
        assert writer.stderr.read() == b""
    assert writer.returncode == 141


def test_python_dash_m() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "holter", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"holter {holter.__version__}\n"


def test_every_command_has_one_file() -> None:
    folder = Path(_cli.__file__).parent
    assert all((folder / f"{name}.py").is_file() for name in COMMANDS)


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("runn", "did you mean `holter run`?"),
        ("train.py", "`holter run train.py`"),
        ("zzz", "`holter --help` lists all commands"),
    ],
)
def test_a_word_that_is_no_command_gets_one_sentence(word, hint, capsys):
    assert main([word]) == 2
    error = capsys.readouterr().err
    assert hint in error
    assert len(error.splitlines()) == 1
