"""Tasks that record a run without a training: processes of a fraction of a second."""

from pathlib import Path

from holter.scripts.sweeps.tasks import OUT, Task

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


def quick_tasks(folder: Path, count: int) -> list[Task]:
    """Tasks that write 20 losses of `seed + 1`; files beside them tell them what to do."""
    folder.mkdir(exist_ok=True)
    return [
        Task(
            str(seed),
            ("-c", _RECORD, OUT, str(seed), str(folder)),
            folder / "A" / f"seed-{seed}",
        )
        for seed in range(count)
    ]


def began(folder: Path) -> list[int]:
    file = folder / "began.txt"
    return [int(line) for line in file.read_text().split()] if file.exists() else []
