"""Dumps of PyTorch's flight recorder: the collectives that a process has entered.

A dump is a pickle of plain lists, dictionaries, numbers and strings, or the same as JSON. Nothing
in it is executed: a pickle that names a class or a function is refused.
"""

import io
import json
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = "flight-recorder"  # in the folder of a run
VARIABLES = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")  # with a prefix of paths
_MOST = 64 << 20  # bytes


@dataclass(frozen=True, slots=True)
class Collective:
    """The last collective of the default process group that a process entered."""

    number: int
    name: str  # "nccl:all_reduce"
    is_completed: bool
    where: str = ""  # file and line of the script


def last_collective(run: Path, rank: int, variables: Mapping[str, str]) -> Collective | None:
    """Return the last collective that a rank entered, if there is a dump that says so."""
    prefixes = [variables[name] for name in VARIABLES if name in variables]
    files = [*sorted((run / FOLDER).glob(f"*_{rank}")), *sorted((run / FOLDER).glob(f"*_{rank}.*"))]
    for file in (*files, *(Path(f"{prefix}{rank}") for prefix in prefixes)):
        found = read_dump(file)
        if found is not None:
            return found
    return None


def read_dump(file: Path) -> Collective | None:
    """Read one dump; None if it cannot be read, or holds no collective."""
    try:
        if file.stat().st_size > _MOST:
            return None
        content = file.read_bytes()
        dump = json.loads(content) if content[:1] == b"{" else _Plain(io.BytesIO(content)).load()
        collectives = [_collective(entry) for entry in dump["entries"] if _is_default(entry)]
    except (OSError, ValueError, LookupError, TypeError, EOFError, pickle.UnpicklingError):
        return None
    return max(collectives, key=lambda each: each.number, default=None)


class _Plain(pickle.Unpickler):
    """Reads plain values alone."""

    def find_class(self, module: str, name: str) -> Any:
        """Refuse everything that is not a plain value."""
        raise pickle.UnpicklingError(f"{module}.{name} is not a plain value")


def _is_default(entry: Mapping[str, Any]) -> bool:
    """Whether an entry is a collective of the first process group, which all ranks belong to."""
    return not entry.get("is_p2p", False) and str(entry["process_group"][0]) == "0"


def _collective(entry: Mapping[str, Any]) -> Collective:
    frames = [frame for frame in entry.get("frames", ()) if "/torch/" not in frame["filename"]]
    where = f"{Path(frames[0]['filename']).name}:{frames[0]['line']}" if frames else ""
    done = entry["state"] == "completed" or bool(entry.get("retired", False))
    return Collective(int(entry["collective_seq_id"]), str(entry["profiling_name"]), done, where)
