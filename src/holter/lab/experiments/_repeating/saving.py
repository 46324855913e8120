"""What a checkpoint holds, read from the statement of the script that saves it."""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from torch.optim.swa_utils import AveragedModel

from holter.lab.setup import Setup

AVERAGE, POSITION = "averaged weights", "position in the data"
_MARKS = {
    "optimizer": ("optim",),
    "scheduler": ("sched",),
    "scaler": ("scaler",),
    AVERAGE: ("ema", "averag", "swa", "shadow"),
    POSITION: ("sampler", "loader", "step", "iter", "batch"),
}


@dataclass(frozen=True, slots=True)
class _Saved:
    """A dictionary given to `torch.save`."""

    names: tuple[str, ...]  # its keys and values as written, in lower case
    within_epoch: bool  # it is saved in the loop over batches

    def holds(self, kind: str) -> bool:
        return any(mark in name for name in self.names for mark in _MARKS[kind])


def checkpoint_parts(setup: Setup) -> dict[str, bool] | str:
    """Return whether the script's checkpoint holds each part of the training; or why not known.

    A dictionary with the optimizer's state is meant for resuming.
    """
    saved = [found for path in _sources(setup) for found in _saved(path)]
    if not saved:
        return "the script has no `torch.save` of a dictionary"
    resumable = [found for found in saved if found.holds("optimizer")]
    if not resumable:
        return "the script saves weights only, not for resuming"
    present = {
        "optimizer": bool(setup.optimizers),
        "scheduler": bool(setup.schedulers),
        "scaler": any(phase.scaler is not None for phase in setup.phases),
        AVERAGE: any(isinstance(other, AveragedModel) for other in setup.others),
        POSITION: any(found.within_epoch for found in resumable),
    }
    return {
        kind: all(found.holds(kind) for found in resumable)
        for kind, is_used in present.items()
        if is_used
    }


def _sources(setup: Setup) -> set[Path]:
    files = {setup.source.rpartition(":")[0]}
    files.add(vars(sys.modules["__main__"]).get("__file__") or "")
    return {Path(file) for file in files if file.endswith(".py") and Path(file).is_file()}


def _saved(path: Path) -> Iterator[_Saved]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assigned = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    in_batch_loop = {id(node) for loop in _batch_loops(tree) for node in ast.walk(loop)}
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and node.args and _is_save(node.func)):
            continue
        given = node.args[0]
        if isinstance(given, ast.Name):
            given = assigned.get(given.id, given)
        names = _names(given)
        if names is not None:
            yield _Saved(tuple(name.lower() for name in names), id(node) in in_batch_loop)


def _names(given: ast.expr) -> list[str] | None:
    """Return the keys and values of a dictionary as written; None if it is none."""
    if isinstance(given, ast.Dict):
        return [ast.unparse(part) for part in (*given.keys, *given.values) if part is not None]
    if isinstance(given, ast.Call) and ast.unparse(given.func) == "dict":
        return [f"{keyword.arg}={ast.unparse(keyword.value)}" for keyword in given.keywords]
    return None


def _batch_loops(tree: ast.Module) -> Iterator[ast.For]:
    """Yield the loops inside another loop that call backward: those over batches of an epoch."""
    for outer in ast.walk(tree):
        if not isinstance(outer, ast.For | ast.While):
            continue
        for inner in ast.walk(outer):
            if inner is not outer and isinstance(inner, ast.For) and _trains(inner):
                yield inner


def _trains(loop: ast.For) -> bool:
    return any(
        isinstance(node, ast.Attribute) and node.attr == "backward" for node in ast.walk(loop)
    )


def _is_save(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and ast.unparse(function) == "torch.save"
