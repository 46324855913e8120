"""Capture: the window of a failure on disk, as safetensors and JSON; loading executes nothing."""

import contextlib
import json
import os
import shutil
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from holter.record.errors import HolterError
from holter.record.journal import decode, encode
from holter.watching.blackbox.alarms import Alarm
from holter.watching.blackbox.ring import Entry, Settings, tensors_of
from holter.watching.blackbox.shadow import Snapshot

FORMAT = 2
_STATE, _STEPS, _ABOUT = "state.safetensors", "steps.safetensors", "capture.json"
_SUMS = "checksums.json"  # of the three
_PIECE = 1 << 20  # bytes
_PLAIN = (bool, int, float, str, type(None))


@dataclass(frozen=True, slots=True)
class Fetched:
    """A batch of a captured step; `whole` if it is as the loader delivered it."""

    loader: str
    batch: Any
    whole: bool
    random: Tensor
    random_cuda: Tensor | None


@dataclass(frozen=True, slots=True)
class Step:
    """A captured step."""

    step: int
    fetches: tuple[Fetched, ...]
    random: Tensor
    random_cuda: Tensor | None
    rates: tuple[tuple[float, ...], ...]
    settings: Settings = ()
    stepped: tuple[str, ...] = ()  # labels of the optimizers that made it
    # Parameters that were written to before the step; None where only that is known.
    edits: Mapping[str, Tensor | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Capture:
    """A failure's window: the state before the first of `steps`, and what those were given."""

    path: Path
    alarm: Alarm
    state: Mapping[str, Tensor]
    plain: Mapping[str, Any]
    steps: tuple[Step, ...]
    about: Mapping[str, Any]  # versions, command, rank


def write_capture(
    folder: Path,
    alarm: Alarm,
    snapshot: Snapshot,
    entries: Sequence[Entry],
    about: Mapping[str, Any],
) -> None:
    """Write a window to `folder`: it is there whole, or not at all."""
    from safetensors.torch import save_file

    fresh = folder.with_name(f".{folder.name}.{os.getpid()}")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    tensors: dict[str, Tensor] = {}
    steps = [_step(entry, tensors) for entry in entries]
    try:
        save_file(_savable(snapshot.tensors), fresh / _STATE)
        save_file(_savable(tensors), fresh / _STEPS)
        document = {
            "format": FORMAT,
            "alarm": {"kind": alarm.kind, "step": alarm.step, "says": alarm.says},
            "state_step": snapshot.step,
            "plain": snapshot.plain,
            "steps": steps,
            "about": about,
        }
        (fresh / _ABOUT).write_bytes(encode(document, indent=1))
        (fresh / _SUMS).write_bytes(encode(_checksums(fresh)))
        for file in fresh.iterdir():
            file.chmod(0o644)  # safetensors leaves files that nobody else may read
            _to_disk(file)
        fresh.rename(folder)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise


def captures_in(run: Path) -> tuple[Path, ...]:
    """The captures of a run, the earliest first."""
    return tuple(sorted(folder for folder in (run / "captures").glob("step-*") if folder.is_dir()))


def load_capture(folder: Path) -> Capture:
    """Read a capture; nothing in it is ever executed."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        document = decode((folder / _ABOUT).read_bytes())
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise HolterError(
                f"{folder} is no capture of format {FORMAT}, the one that this version of holter"
                " reads; record the failure again."
            )
        if decode((folder / _SUMS).read_bytes()) != _checksums(folder):
            raise ValueError("its checksums differ")
        state, tensors = load_file(folder / _STATE), load_file(folder / _STEPS)
        alarm = Alarm(**{key: document["alarm"][key] for key in ("kind", "step", "says")})
        steps = tuple(_read_step(fields, tensors) for fields in document["steps"])
        return Capture(folder, alarm, state, document["plain"], steps, document["about"])
    except FileNotFoundError as error:
        files = (_ABOUT, _STATE, _STEPS, _SUMS)
        missing = next(name for name in files if not (folder / name).exists())
        raise HolterError(f"{folder} is not a capture: {missing} is missing.") from error
    except (SafetensorError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise HolterError(
            f"{folder} is not a whole capture ({error}); nothing of it was used."
        ) from error


def _checksums(folder: Path) -> dict[str, int]:
    """The checksum of each file of a capture."""
    return {name: _checksum(folder / name) for name in (_ABOUT, _STATE, _STEPS)}


def _checksum(path: Path) -> int:
    value = 0
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            value = zlib.crc32(piece, value)
    return value


def _step(entry: Entry, tensors: dict[str, Tensor]) -> dict[str, Any]:
    name = str(entry.step)
    fetches = []
    for number, fetch in enumerate(entry.fetches):
        now = tuple(tensor._version for tensor in tensors_of(fetch.batch))  # noqa: SLF001
        place = f"{name}/{number}"
        tensors[f"{place}/random"] = fetch.random.get_state()
        if fetch.random_cuda is not None:
            tensors[f"{place}/random_cuda"] = fetch.random_cuda.get_state()
        tree = _tree(fetch.batch, f"{place}/batch", tensors)
        fetches.append({"loader": fetch.loader, "whole": now == fetch.versions, "tree": tree})
    tensors[f"{name}/random"] = entry.random.get_state()
    if entry.random_cuda is not None:
        tensors[f"{name}/random_cuda"] = entry.random_cuda.get_state()
    for edited, copy in entry.edits.items():
        if copy is not None:
            tensors[f"{name}/edit/{edited}"] = copy
    return {
        "step": entry.step,
        "fetches": fetches,
        "rates": entry.rates,
        "settings": entry.settings,
        "stepped": entry.stepped,
        "edits": list(entry.edits),
    }


def _tree(value: Any, place: str, tensors: dict[str, Tensor]) -> dict[str, Any]:
    """A structure as JSON, with its tensors put aside by name."""
    if isinstance(value, Tensor):
        tensors[place] = value.detach()
        return {"tensor": place}
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [_tree(item, f"{place}/{n}", tensors) for n, item in enumerate(value)]}
    if isinstance(value, Mapping):
        items = enumerate(value.items())
        return {"dict": [[str(k), _tree(v, f"{place}/{n}", tensors)] for n, (k, v) in items]}
    if isinstance(value, _PLAIN):
        return {"plain": value}
    return {"lost": type(value).__name__}


def _read_step(fields: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Step:
    name = str(fields["step"])
    fetches = tuple(
        Fetched(
            fetch["loader"],
            _grown(fetch["tree"], tensors),
            bool(fetch["whole"]) and "lost" not in json.dumps(fetch["tree"]),
            tensors[f"{name}/{number}/random"],
            tensors.get(f"{name}/{number}/random_cuda"),
        )
        for number, fetch in enumerate(fields["fetches"])
    )
    return Step(
        int(fields["step"]),
        fetches,
        tensors[f"{name}/random"],
        tensors.get(f"{name}/random_cuda"),
        tuple(tuple(map(float, group)) for group in fields["rates"]),
        tuple(tuple(dict(group) for group in groups) for groups in fields["settings"]),
        tuple(map(str, fields["stepped"])),
        {str(each): tensors.get(f"{name}/edit/{each}") for each in fields["edits"]},
    )


def _grown(tree: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Any:
    ((kind, value),) = tree.items()
    if kind == "tensor":
        return tensors[value]
    if kind in ("list", "tuple"):
        grown = [_grown(item, tensors) for item in value]
        return grown if kind == "list" else tuple(grown)
    if kind == "dict":
        return {key: _grown(item, tensors) for key, item in value}
    return value if kind == "plain" else None


def _savable(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors that share no memory, on the host: the format takes no others."""
    return {
        name: tensor.detach().to("cpu", copy=True, memory_format=torch.contiguous_format)
        for name, tensor in tensors.items()
    }


def _to_disk(path: Path) -> None:
    with contextlib.suppress(OSError), path.open("rb") as file:
        os.fsync(file.fileno())
