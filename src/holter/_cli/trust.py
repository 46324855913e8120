"""Whether the script that a run names may be executed: a run may come from somebody else."""

import hashlib
import shlex
from pathlib import Path

from holter.record import Run
from holter.record.errors import HolterError

_ROOTS = (".git", "pyproject.toml", "setup.py", "setup.cfg", "requirements.txt")


def trusted_command(run: Run, folder: Path, *, trust: bool) -> list[str]:
    """Return the command that recorded a run, if its script may be executed.

    It may if it is in the current project and unchanged since, or if the user says so.
    """
    environment = run.meta.environment
    command, place = list(environment.command), recorded_in(run)
    script = place / command[0] if command else None
    if script is None or not script.is_file():
        raise HolterError(
            f"The script that recorded {folder} is unknown or missing; pass a function that returns"
            " a setup with `--setup module:function`."
        )
    reason = "" if trust else _reason_against(script, place, environment.script_digest)
    if reason:
        words = shlex.join(["python", *command])
        raise HolterError(
            f"{script} {reason}. A replay would execute `{words}` in {place}; if you trust it,"
            " repeat the command with --trust."
        )
    return command


def recorded_in(run: Run) -> Path:
    """Return the folder in which the script ran; the current one if this machine lacks it."""
    place = Path(run.meta.environment.folder or ".")
    return place if place.is_dir() else Path.cwd()


def _reason_against(script: Path, place: Path, digest: str | None) -> str:
    root = _project()
    if not (script.resolve().is_relative_to(root) and place.resolve().is_relative_to(root)):
        return f"was run outside the current project ({root})"
    if digest is None:
        return "may be a different script: the run has no digest of it"
    if hashlib.sha256(script.read_bytes()).hexdigest() != digest:
        return "has changed since the run was recorded"
    return ""


def _project() -> Path:
    """The folder of the project that the user is in: without a sign of one, the current folder."""
    here = Path.cwd().resolve()
    for folder in (here, *here.parents):
        if any((folder / name).exists() for name in _ROOTS):
            return folder
    return here
