"""`holter show` and `holter playground` as commands."""

import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from shown_runs import write_run

from holter._cli import main


def served(folder: Path, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "holter", *arguments, "--port", "0", "--no-browser"],
        cwd=folder,
        env=os.environ,
        stderr=subprocess.PIPE,
        text=True,
    )


def address_of(process: "subprocess.Popen[str]") -> str:
    assert process.stderr is not None
    found = re.search(r"serving (http://\S+)", process.stderr.readline())
    assert found is not None
    return found[1]


@pytest.mark.parametrize("arguments", [("show",), ("playground",)])
def test_it_serves_until_interrupted(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    write_run(tmp_path / "holter-runs" / "one", [1.0, 0.5])
    with served(tmp_path, *arguments) as process:
        try:
            with urllib.request.urlopen(address_of(process), timeout=30) as answer:
                assert b"holter" in answer.read()
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(timeout=20)
            finally:
                process.kill()  # leaving the block waits for it
        assert process.returncode == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_with_a_token_the_address_alone_lets_in(tmp_path: Path) -> None:
    write_run(tmp_path / "one", [1.0, 0.5])
    with served(tmp_path, "show", "one", "--token") as process:
        try:
            address = address_of(process)
            opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
            with opener.open(address, timeout=30) as answer:
                assert answer.status == 200
                assert "token" not in answer.url
            with pytest.raises(urllib.error.HTTPError, match="401"):
                urllib.request.urlopen(address.partition("?")[0], timeout=30)
        finally:
            process.send_signal(signal.SIGINT)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["show"], "There is no folder holter-runs"),
        (["show", "nowhere"], "There is no folder nowhere"),
        (["show", ".", "--host", "no such host", "--port", "0"], "Cannot listen on no such host:0"),
    ],
)
def test_bad_input_is_one_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1
