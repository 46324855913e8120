"""From the readings of a step to the records of a run: one buffer, one transfer, one write."""

import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from holter.collectors import Reading
from holter.notices import tell
from holter.run import Run, Writer
from holter.run.format import ABSENT, FORMAT, Floats
from holter.run.writer import Row
from holter.stats import pack


class Recorder:
    """Writes steps to a run. It starts counting where an earlier part of the run left off."""

    def __init__(
        self, path: Path, *, rank: int, meta: Mapping[str, Any], resume: bool = False
    ) -> None:
        self.step = _steps_in(path, rank) if resume else 0
        self._first = self.step
        self._began = time.time()
        self._writer = _open(path, rank=rank, meta=meta, resume=resume)
        self.path = self._writer.path

    @property
    def steps(self) -> int:
        """Number of steps written by this recorder."""
        return self.step - self._first

    def write_step(self, readings: Sequence[Reading]) -> None:
        """Write all readings of a step and go on to the next."""
        streams: dict[str, list[Row]] = {}
        for reading, values in zip(readings, _on_host(readings), strict=True):
            row = (reading.signal.name, reading.owners, values)
            streams.setdefault(reading.signal.stream, []).append(row)
        for stream, rows in streams.items():
            self._writer.write(stream, self.step, rows)
        self.step += 1

    def event(self, kind: str, **data: object) -> None:
        """Write an event under the step that is open."""
        self._writer.event(kind, self.step, **data)

    def update_meta(self, **fields: object) -> None:
        """Set fields of the run's meta file."""
        self._writer.update_meta(**fields)

    def close(self, status: str) -> None:
        """Say how the training ended, and close the files."""
        self._writer.update_meta(status=status, steps=self.step, duration=time.time() - self._began)
        self._writer.close()


def _on_host(readings: Sequence[Reading]) -> list[Floats]:
    """The values of each reading, on the host and as long as its owners."""
    tensors = [each.values for each in readings if isinstance(each.values, Tensor)]
    arrived = iter(pack(tensors).unpack())
    values = []
    for reading in readings:
        if isinstance(reading.values, Tensor):
            read = next(arrived)
        else:
            read = np.asarray(reading.values, np.float32)
        if reading.at is not None:
            full = np.full(len(reading.owners), ABSENT)
            full[reading.at] = read
            read = full
        values.append(read)
    return values


def _steps_in(path: Path, rank: int) -> int:
    return Run.load(path, rank=rank).steps if (path / f"rank-{rank}").exists() else 0


def _open(path: Path, *, rank: int, meta: Mapping[str, Any], resume: bool) -> Writer:
    """A writer to `path`, or to a temporary folder if that cannot be written: training goes on."""
    fields = {"format": FORMAT, "status": "running", **meta}
    try:
        return Writer(path, rank=rank, meta=fields, resume=resume)
    except OSError as error:
        elsewhere = Path(tempfile.mkdtemp(prefix="holter-")) / path.name
        tell(f"cannot write to {path} ({error.strerror or error}); recording to {elsewhere}.")
        return Writer(elsewhere, rank=rank, meta=fields)
