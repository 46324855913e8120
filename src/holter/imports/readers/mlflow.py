"""MLflow stores: folders of metric files, and SQLite databases, which are only read."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from urllib.parse import quote

from holter.imports.log import Log, number_of
from holter.record.errors import HolterError

KIND = "MLflow store"
FILES = ("mlflow.db", "mlruns.db")

_HEADER = b"SQLite format 3\0"
_LONGEST_LINE = 1 << 16  # bytes
_MOST_FILES = 10_000
_MOST_STEPS = 2_000_000_000  # instructions of the database for one question
_METRICS = "SELECT key, step, CASE WHEN is_nan THEN 'nan' ELSE value END FROM metrics"


def recognises(head: bytes) -> bool:
    """Return whether a file is a database."""
    return head.startswith(_HEADER)


def is_run_folder(path: Path) -> bool:
    """Return whether a folder is that of a run."""
    return (path / "metrics").is_dir() and (path / "meta.yaml").is_file()


def read(path: Path, log: Log) -> None:
    """Read the metrics of a run."""
    if path.is_file():
        _read_database(path, log)
        return
    for file in islice(_files(path / "metrics"), _MOST_FILES):
        name = file.relative_to(path / "metrics").as_posix()
        with file.open("rb") as lines:
            while line := lines.readline(_LONGEST_LINE):
                _add(name, line.decode("utf-8", "replace").split(), log)


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


def _add(name: str, words: list[str], log: Log) -> None:
    """Add the reading of a line: time, value and step."""
    value = number_of(words[1]) if len(words) >= 3 else None
    if value is None or not words[2].isdecimal() or len(words[2]) > 15:
        log.damaged += 1
    else:
        log.add(name, int(words[2]), value)


def _read_database(path: Path, log: Log) -> None:
    """Read the only run of a database, or the one that was written to last."""
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as store:
            store.execute("PRAGMA trusted_schema = OFF")
            store.text_factory = lambda data: data.decode("utf-8", "replace")
            store.set_progress_handler(lambda: 1, _MOST_STEPS)
            _require_table(path, store)
            last = store.execute("SELECT run_uuid FROM metrics ORDER BY timestamp DESC LIMIT 1")
            run = last.fetchone()
            rows = store.execute(f"{_METRICS} WHERE run_uuid = ?", run or ("",))
            for name, step, value in rows:
                reading = number_of(value)
                if isinstance(name, str) and isinstance(step, int) and reading is not None:
                    log.add(name, step, reading)
                else:
                    log.damaged += 1
    except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:  # of its own messages too
        raise HolterError(f"{path} is damaged, or not an MLflow database.") from error


def _require_table(path: Path, store: sqlite3.Connection) -> None:
    kinds = store.execute("SELECT type FROM sqlite_master WHERE name = 'metrics'").fetchall()
    if kinds != [("table",)]:
        raise HolterError(f"{path} is a database without the MLflow table `metrics`.")
