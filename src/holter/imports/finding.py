"""Which log a path is: by the content of a file, by the files in a folder."""

import os
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path
from types import ModuleType

from holter.imports.readers import csv, json, mlflow, tensorboard, text, wandb
from holter.record.errors import HolterError

# In the order in which a file is tried: what has a signature first, text last.
READERS: tuple[ModuleType, ...] = (tensorboard, wandb, mlflow, json, csv, text)

_HEAD = 1 << 18  # bytes: the names of a wide table are long
_DEPTH = 4  # of folders
_MOST_ENTRIES = 20_000


def reader_of(path: Path) -> ModuleType | None:
    """Return the reader of a file, or of the folder of an MLflow run, or None."""
    if not path.is_file():
        return mlflow if mlflow.is_run_folder(path) else None
    with path.open("rb") as file:
        head = file.read(_HEAD)
    return next((reader for reader in READERS if reader.recognises(head)), None)


def any_log(folder: Path) -> bool:
    """Return whether a folder holds a log."""
    return mlflow.is_run_folder(folder) or bool(_logs(folder))


def files_of(path: Path) -> list[Path]:
    """Return the files that make up the only log in a folder, or the file itself.

    TensorBoard writes a file for each start of a run; Trainer a state in each checkpoint, of which
    the last counts.
    """
    if not path.is_dir() or mlflow.is_run_folder(path):
        return [path]
    logs = _logs(path)
    if not logs:
        raise HolterError(
            f"{path} is neither a run of holter nor a folder with a log that can be imported."
        )
    if len(logs) > 1:
        examples = ", ".join(str(folder) for folder in sorted(logs)[:3])
        raise HolterError(f"{path} holds {len(logs)} logs; name one of them: {examples}.")
    (files,) = logs.values()
    return files


def _logs(folder: Path) -> Mapping[Path, list[Path]]:
    """Return the logs in a folder, each with its files."""
    entries = list(islice(_walk(folder, _DEPTH), _MOST_ENTRIES))
    runs = [entry for entry in entries if mlflow.is_run_folder(entry)]
    if runs:
        return {run: [run] for run in runs}
    files = [entry for entry in entries if entry.is_file()]
    states = [file for file in files if file.name == "trainer_state.json"]
    if states:
        return {folder: [max(states, key=lambda file: (file.stat().st_mtime, file))]}
    for reader in READERS:
        matching = [file for file in files if _is_of(file, reader)]
        if matching:
            return _grouped(matching, by_folder=reader is tensorboard)
    return {}


def _grouped(files: list[Path], *, by_folder: bool) -> dict[Path, list[Path]]:
    logs: dict[Path, list[Path]] = {}
    for file in sorted(files):
        logs.setdefault(file.parent if by_folder else file, []).append(file)
    return logs


def _is_of(file: Path, reader: ModuleType) -> bool:
    return any(fnmatch(file.name, pattern) for pattern in reader.FILES) and (
        reader_of(file) is reader
    )


def _walk(folder: Path, depth: int) -> Iterator[Path]:
    """Yield files and folders below a folder, without following links."""
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda each: each.name):
            if entry.is_symlink():
                continue
            yield Path(entry.path)
            if entry.is_dir() and depth > 0:
                yield from _walk(Path(entry.path), depth - 1)
