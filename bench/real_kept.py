"""Outcomes of single launches, kept in a folder with the commit that each was measured on."""

import pickle
import subprocess
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.real_runs import Launch, Outcome


@dataclass(frozen=True, slots=True)
class Kept:
    """An outcome, the commit of the code, and that of the code that preflight was asked of."""

    outcome: Outcome
    commit: str
    preflight_commit: str


def keep(folder: Path, outcome: Outcome, commit: str) -> None:
    """Write an outcome in the place of an earlier one of the same launch."""
    folder.mkdir(parents=True, exist_ok=True)
    _file(folder, outcome.launch).write_bytes(pickle.dumps(Kept(outcome, commit, commit)))


def kept(folder: Path, launches: Iterable[Launch]) -> list[Kept]:
    """Return what there is of some launches, in their order."""
    files = [_file(folder, launch) for launch in launches]
    return [pickle.loads(file.read_bytes()) for file in files if file.exists()]


def current_commit() -> str:
    """Return the commit of this checkout, marked if files differ from it."""
    here = Path(__file__).parent
    told = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    return subprocess.run(told, cwd=here, capture_output=True, text=True, check=True).stdout.strip()


def measured_on(entries: Sequence[Kept], everything: int) -> str:
    """Say on which commits the launches and the preflights were measured."""
    launches = Counter(entry.commit for entry in entries)
    asked = Counter(entry.preflight_commit for entry in entries if entry.outcome.preflight)
    return (
        f"{len(entries)} of {everything} launches: {_counted(launches)}. Preflights:"
        f" {_counted(asked)}."
    )


def _counted(commits: Counter[str]) -> str:
    return ", ".join(f"{count} on `{commit}`" for commit, count in commits.items()) or "none"


def _file(folder: Path, launch: Launch) -> Path:
    return folder / f"{launch.name.replace(' ', '.')}.pickle"
