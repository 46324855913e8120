"""Set up a virtual environment and run holter from this checkout: `python3 dev.py demo`.

Needs Python 3.11 or newer with pip, and nothing else.
"""

import hashlib
import os
import platform
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
VENV = HERE / ".venv"
STAMP = VENV / "holter-setup.txt"
# Set HOLTER_TORCH to a CPU build where one is available: plain `torch` pulls in CUDA packages.
TORCH = os.environ.get("HOLTER_TORCH", "torch==2.13.0")

COMMANDS = {
    "setup": "create .venv with holter and everything its tests need",
    "demo": "record and diagnose a small broken training",
    "test": "run the tests; --quick leaves out the slow ones, --all adds exhaustive ones;"
    " other arguments go to pytest",
    "lint": "check format, lint, types and layers",
    "docs": "build the documentation site to ./site",
    "run": "run holter from this checkout: python3 dev.py run check holter-runs/...",
}


def main(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    command, rest = (arguments[0], list(arguments[1:])) if arguments else ("", [])
    if command not in COMMANDS:
        print("usage: python3 dev.py COMMAND\n")
        for name, does in COMMANDS.items():
            print(f"  {name:6} {does}")
        return 0 if command in ("-h", "--help", "help") else 2
    if sys.version_info < (3, 11):  # noqa: UP036  (this runs before anything has checked it)
        print(f"holter needs Python 3.11 or newer; this is {platform.python_version()}.")
        return 2
    try:
        set_up()
    except subprocess.CalledProcessError as error:
        print(f"dev.py: setting up failed: {' '.join(map(str, error.cmd))}", file=sys.stderr)
        return 2
    if command == "setup":
        return 0
    if command == "test":
        return test(rest)
    if command == "lint":
        return lint()
    if command == "docs":
        os.environ["NO_MKDOCS_2_WARNING"] = "1"  # which is of no use to who builds this
        return call("mkdocs", "build", "--strict", *rest)
    return call("holter", *(rest if command == "run" else ["demo", *rest]))


def set_up() -> None:
    """Create the virtual environment, unless the existing one has this setup."""
    wanted = hashlib.sha256(
        b"\0".join(
            [
                (HERE / "pyproject.toml").read_bytes(),
                (HERE / "constraints.txt").read_bytes(),
                TORCH.encode(),
                sys.version.encode(),
                str(HERE).encode(),
            ]
        )
    ).hexdigest()
    if STAMP.exists() and STAMP.read_text() == wanted:
        return
    say("creating .venv")
    venv.create(VENV, with_pip=True, clear=VENV.exists())
    say(f"installing {TORCH} (a few minutes if it must be downloaded)")
    pip("install", TORCH, "-c", HERE / "constraints.txt")
    say("installing holter and its test dependencies")
    pip("install", "-e", f"{HERE}[test]", "-c", HERE / "constraints.txt")
    STAMP.write_text(wanted)
    say("ready")


def test(arguments: Sequence[str]) -> int:
    """Run the tests in two processes; with arguments, run pytest with these."""
    rest = [argument for argument in arguments if argument not in ("--quick", "--all")]
    chosen = "not slow and not exhaustive" if "--quick" in arguments else "not exhaustive"
    marks = [] if rest or "--all" in arguments else ["-m", chosen]
    return call("pytest", *marks, *(rest or ["-n", "2", "--dist", "worksteal"]))


def lint() -> int:
    """Run every check that reads the code without running it."""
    checks = (
        ("ruff", "format", "--check", "."),
        ("ruff", "check", "."),
        ("mypy",),
        ("lint-imports", "--no-cache"),
    )
    for check in checks:
        say(" ".join(check))
        if code := call(*check):
            return code
    return 0


def call(program: str, *arguments: str) -> int:
    """Run a program of the virtual environment in the repository root."""
    bin_folder = VENV / ("Scripts" if os.name == "nt" else "bin")
    environment = {**os.environ, "PATH": f"{bin_folder}{os.pathsep}{os.environ.get('PATH', '')}"}
    try:
        return subprocess.run(
            [bin_folder / program, *arguments], cwd=HERE, env=environment, check=False
        ).returncode
    except KeyboardInterrupt:
        return 130


def pip(*arguments: str | Path) -> None:
    """Run pip in the virtual environment, quietly."""
    python = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    quiet = ["-qq", "--disable-pip-version-check", "--no-input"]
    subprocess.run([python, "-m", "pip", *arguments, *quiet], check=True)


def say(sentence: str) -> None:
    """Print what is being done."""
    print(f"dev.py: {sentence}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
