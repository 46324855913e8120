"""The runs in the folders that were given, and their checkups, computed again as they grow."""

import hashlib
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from holter.dashboard.summary import Summary, summary_of
from holter.diagnosis.engine import Checkup, check
from holter.record import Run
from holter.record.errors import HolterError
from holter.record.findings import Confidence, Finding, Severity
from holter.record.reader import is_run, state

_DEPTH = 4  # folders below the one that was given in which runs are looked for
_REST = 5.0  # a growing run is checked again after so many times the time that a check takes
_LONGEST_REST = 60.0  # seconds
_MOST_ALERTS = 100


@dataclass(frozen=True, slots=True)
class Entry:
    """A run that may be shown: its identifier is all that an address says of it."""

    id: str
    name: str
    path: Path
    version: str  # another one whenever a file of the run was written to
    written: float  # when a file of it was last written to, seconds since 1970


@dataclass(frozen=True, slots=True)
class Checked:
    """What the rules say of a run as it was at one moment. It holds no open file of the run."""

    version: str
    checkup: Checkup
    summary: Summary


@dataclass(frozen=True, slots=True)
class Alert:
    """A finding that appeared while its run was shown."""

    number: int
    id: str
    name: str
    at: float
    finding: Finding


@dataclass(slots=True)
class _Kept:
    lock: threading.Lock = field(default_factory=threading.Lock)
    checked: Checked | None = None
    rested: float = 0.0  # the time of the clock from which it may be checked again
    rules: set[str] | None = None  # found so far
    waiting: bool = False  # for the thread that checks


class Library:
    """The runs below some folders. Nothing outside of them is ever read."""

    def __init__(self, folders: Sequence[Path]) -> None:
        for folder in folders:
            if not folder.is_dir():
                raise HolterError(
                    f"There is no folder {folder}; `holter run train.py` records one."
                )
        self.folders = tuple(dict.fromkeys(folder.resolve() for folder in folders))
        self._kept: dict[str, _Kept] = {}
        self._alerts: list[Alert] = []
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, "holter-checks")

    def entries(self) -> list[Entry]:
        """Return every run that is there now, the one written to last first."""
        found = {
            entry.id: entry for folder in self.folders for entry in self._below(folder, folder)
        }
        return sorted(found.values(), key=lambda entry: (-entry.written, entry.name))

    def entry(self, identifier: str) -> Entry | None:
        """Return the run with this identifier, or None."""
        return next((entry for entry in self.entries() if entry.id == identifier), None)

    def checked(self, entry: Entry) -> Checked:
        """Return the run with its checkup; a growing one may be some seconds old."""
        kept = self._keep(entry)
        with kept.lock:
            checked = kept.checked
            is_current = checked is not None and checked.version == entry.version
            if checked is not None and (is_current or time.monotonic() < kept.rested):
                return checked
            began = time.monotonic()
            kept.checked = checked = _check(entry)
            taken = time.monotonic() - began
            kept.rested = began + taken + min(max(1.0, _REST * taken), _LONGEST_REST)
            self._see(entry, kept, checked)
            return checked

    def known(self, entry: Entry) -> Checked | None:
        """Return the last checkup without waiting for one; the next is made in a thread."""
        kept = self._keep(entry)
        checked = kept.checked
        if (checked is None or checked.version != entry.version) and not kept.waiting:
            kept.waiting = True
            self._thread.submit(self._later, entry, kept)
        return checked

    def alerts(self) -> list[Alert]:
        """Return findings that appeared while their runs were shown, the newest first."""
        with self._lock:
            return self._alerts[::-1]

    def close(self) -> None:
        """Stop checking."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _later(self, entry: Entry, kept: _Kept) -> None:
        try:
            self.checked(entry)
        finally:
            kept.waiting = False

    def _keep(self, entry: Entry) -> _Kept:
        with self._lock:
            return self._kept.setdefault(entry.id, _Kept())

    def _see(self, entry: Entry, kept: _Kept, checked: Checked) -> None:
        """Note what was found since the last look; the first look finds nothing new."""
        findings = {finding.rule: finding for finding in checked.checkup.findings}
        if kept.rules is not None:
            with self._lock:
                for rule, finding in findings.items():
                    if rule not in kept.rules and _is_alarming(finding):
                        number = self._alerts[-1].number + 1 if self._alerts else 1
                        alert = Alert(number, entry.id, entry.name, time.time(), finding)
                        self._alerts.append(alert)
                del self._alerts[:-_MOST_ALERTS]
        elif not checked.summary.steps and not findings:
            return  # nothing was there to look at
        kept.rules = (kept.rules or set()) | set(findings)

    def _below(self, folder: Path, root: Path, depth: int = 0) -> Iterator[Entry]:
        if is_run(folder):
            if (entry := _entry(folder, root)) is not None:
                yield entry
            return
        if depth == _DEPTH:
            return
        try:
            below = [path for path in folder.iterdir() if not path.name.startswith(".")]
        except OSError:
            return
        for path in below:
            if path.is_dir() and not path.is_symlink():
                yield from self._below(path, root, depth + 1)


def _entry(folder: Path, root: Path) -> Entry | None:
    """Return the entry of a run, or None where a link leads out of the folder that was given."""
    files = state(folder)
    if any(_leads_out(file.path, root) for file in files):
        return None
    name = folder.name if folder == root else folder.relative_to(root).as_posix()
    identifier = hashlib.sha256(str(folder).encode(errors="surrogateescape")).hexdigest()[:16]
    version = hashlib.sha256(repr(files).encode(errors="surrogateescape")).hexdigest()[:16]
    written = max((file.written for file in files), default=0) / 1e9
    return Entry(identifier, name, folder, version, written)


def _leads_out(file: Path, root: Path) -> bool:
    is_linked = file.is_symlink() or file.parent.is_symlink()
    return is_linked and not file.resolve().is_relative_to(root)


def _is_alarming(finding: Finding) -> bool:
    """Return whether to interrupt somebody; a hint in the middle of a run may pass."""
    is_sure = finding.confidence >= Confidence.LIKELY and not finding.preview
    return is_sure and finding.severity >= Severity.WARNING


def _check(entry: Entry) -> Checked:
    try:
        run = Run.load(entry.path)
        checkup = check(run)
        return Checked(entry.version, checkup, summary_of(run, checkup))
    except (HolterError, OSError) as error:
        return Checked(entry.version, Checkup(), Summary(error=str(error)))
