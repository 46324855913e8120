"""Where runs are kept when nobody says where."""

import os
from datetime import datetime
from pathlib import Path

from holter.record.errors import HolterError

RUNS = Path("holter-runs")


def new_folder(name: str) -> Path:
    """A folder for a new run under `holter-runs`; one and the same for all ranks of a launch."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        # Ranks never talk to each other to record: they agree by what their launcher gave them.
        job = os.environ.get("TORCHELASTIC_RUN_ID", "none")
        if job == "none":
            job = f"{os.environ.get('MASTER_PORT', '0')}-{os.getppid()}"
        return RUNS / f"{name}-{job}-{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}"
    stamp = datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    folder = RUNS / f"{name}-{stamp}"
    number = 2
    while folder.exists():
        folder = RUNS / f"{name}-{stamp}-{number}"
        number += 1
    return folder


def newest_run(folder: Path = RUNS) -> Path:
    """The run in `folder` that was written to last."""
    runs = {path.parent: path.stat().st_mtime for path in folder.glob("*/meta.json")}
    if not runs:
        raise HolterError(
            f"There is no run in ./{folder}; name the folder of one,"
            " or record one with `holter run train.py`."
        )
    return max(runs, key=lambda path: (runs[path], path.name))


def require_free(folder: Path, rank: int) -> None:
    """Refuse to mix two runs in one folder."""
    if any((folder / f"rank-{rank}").glob("*.seg")):
        raise HolterError(
            f"{folder} already holds a run; use another folder, or resume to continue that run."
        )
