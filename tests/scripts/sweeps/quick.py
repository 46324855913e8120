"""Jobs that record a run without a training: processes of a fraction of a second."""

import sys
from dataclasses import dataclass
from pathlib import Path

from holter.scripts.sweeps.plan import Job, Variant

_RECORD = """
import os, signal, sys, time
from pathlib import Path
import numpy as np
from holter.record import Writer
out, seed, place = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
with (place / "began.txt").open("a") as began:
    began.write(f"{seed}\\n")
writer = Writer(out, status="running")
for step in range(20):
    writer.write("steps", step, [("loss", ("",), np.array([seed + 1.0], np.float32))])
if (place / f"kill-{seed}").exists():
    (place / f"kill-{seed}").unlink()
    os.kill(os.getpid(), signal.SIGKILL)
if (place / f"fail-{seed}").exists():
    writer.update_meta(status="failed")
    sys.exit("RuntimeError: no data")
while (place / f"wait-{seed}").exists():
    time.sleep(0.05)
writer.update_meta(status="finished", steps=20)
writer.close()
"""


@dataclass(frozen=True)
class Quick(Job):
    """A job whose process writes 20 losses of `seed + 1`; files beside it tell it what to do."""

    def words(self, out: Path | str) -> list[str]:
        place = str(self.folder.parents[1])
        return [sys.executable, "-c", _RECORD, str(out), str(self.seed), place]


def quick_jobs(folder: Path, count: int) -> list[Job]:
    variant = Variant("A", ("python", "train.py"))
    folder.mkdir(exist_ok=True)
    return [Quick(variant, seed, folder / "A" / f"seed-{seed}") for seed in range(count)]


def began(folder: Path) -> list[int]:
    return [int(line) for line in (folder / "began.txt").read_text().split()]
