"""Sets up a virtual environment and runs holter from this checkout: `python3 dev.py demo`.

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
# A CPU build where one is at hand; a plain `torch` would pull gigabytes of CUDA packages.
TORCH = os.environ.get("HOLTER_TORCH", "torch==2.13.0")

COMMANDS = {
    "setup": "make .venv with holter and all that its tests need",
    "demo": "train something small and broken, and diagnose it",
    "test": "run the tests; further arguments go to pytest",
    "lint": "check format, lint, types and layers",
    "run": "run holter itself: python3 dev.py run check holter-runs/...",
}


def main(arguments: Sequence[str]) -> int:
    """Run one command; its exit code."""
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
        return call("pytest", *(rest or ["-n", "2", "--dist", "worksteal"]))
    if command == "lint":
        return lint()
    return call("holter", *(rest if command == "run" else ["demo", *rest]))


def set_up() -> None:
    """Make the virtual environment, unless the one that is there was made for this very setup."""
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
    say("making .venv")
    venv.create(VENV, with_pip=True, clear=VENV.exists())
    say(f"installing {TORCH} (some minutes if it has to be downloaded)")
    pip("install", TORCH, "-c", HERE / "constraints.txt")
    say("installing holter and what its tests need")
    pip("install", "-e", f"{HERE}[test]", "-c", HERE / "constraints.txt")
    STAMP.write_text(wanted)
    say("ready")


def lint() -> int:
    """Everything that reads the code without running it."""
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
    """Run a program of the virtual environment from here."""
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
    """Tell what is being done."""
    print(f"dev.py: {sentence}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
