"""What a checkpoint holds, read from the statement of the script that saves it."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from holter.lab.experiments import experiment
from holter.lab.inapplicable import InapplicableError
from holter.lab.setup import Setup
from holter.lab.writing import Lab
from holter.record.signals import CHECKPOINT_SAVED

_KINDS = {"optimizer": ("optim",), "scheduler": ("sched",), "scaler": ("scaler",)}


@experiment(emits=(CHECKPOINT_SAVED,), preflight=True)
def checkpoint(setup: Setup, lab: Lab) -> None:
    """Does the checkpoint hold everything that resuming needs?

    Looks for `torch.save({...})` in the script. A dictionary with the optimizer's state is meant
    for resuming; it also needs the states of the scheduler and of the loss scaler, if there are
    any.
    """
    saved = [names for path in _sources(setup) for names in _saved(path)]
    if not saved:
        raise InapplicableError("the script has no `torch.save` of a dictionary")
    resumable = [names for names in saved if any("optim" in name for name in names)]
    if not resumable:
        raise InapplicableError("the script saves weights only, not for resuming")
    present = {
        "optimizer": bool(setup.optimizers),
        "scheduler": bool(setup.schedulers),
        "scaler": any(phase.scaler is not None for phase in setup.phases),
    }
    for kind, marks in _KINDS.items():
        if present[kind]:
            held = all(any(mark in n for n in names for mark in marks) for names in resumable)
            lab.write(CHECKPOINT_SAVED, [float(held)], trial=kind)


def _sources(setup: Setup) -> set[Path]:
    files = {setup.source.rpartition(":")[0]}
    files.add(vars(sys.modules["__main__"]).get("__file__") or "")
    return {Path(file) for file in files if file.endswith(".py") and Path(file).is_file()}


def _saved(path: Path) -> Iterator[list[str]]:
    """Of each dictionary given to `torch.save`: its keys and values as written, in lower case."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assigned = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and node.args and _is_save(node.func)):
            continue
        given = node.args[0]
        if isinstance(given, ast.Name):
            given = assigned.get(given.id, given)
        if isinstance(given, ast.Dict):
            parts = [*(key for key in given.keys if key is not None), *given.values]
            yield [ast.unparse(part).lower() for part in parts]
        elif isinstance(given, ast.Call) and ast.unparse(given.func) == "dict":
            yield [
                f"{keyword.arg}={ast.unparse(keyword.value)}".lower() for keyword in given.keywords
            ]


def _is_save(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and ast.unparse(function) == "torch.save"
