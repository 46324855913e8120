"""Build a Setup by calling a user's function: `module:function` or `file.py:function`."""

import importlib
import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from holter.lab.setup import Setup
from holter.record.errors import HolterError

EXAMPLE = """\
def setup():
    model, optimizer, train_loader = ...          # as in your script
    return holter.Setup.of(model, optimizer, torch.nn.CrossEntropyLoss(), train_loader)"""


def setup_from(target: str) -> Setup:
    """Call the function that `target` names and return its setup."""
    place, _, name = target.rpartition(":")
    module = _module(place)
    function = vars(module).get(name)
    if not callable(function):
        raise HolterError(f"{place} has no function {name}; write one:\n{EXAMPLE}")
    made = function()
    if isinstance(made, Setup):
        return made
    if isinstance(made, Mapping):
        return _of(target, (), made)
    if isinstance(made, tuple):
        return _of(target, made, {})
    raise HolterError(f"{target} returned a {type(made).__name__}, not a holter.Setup:\n{EXAMPLE}")


def _of(target: str, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Setup:
    try:
        return Setup.of(*arguments, **named)
    except TypeError as error:
        raise HolterError(
            f"{target} has to return the arguments of holter.Setup.of: model, optimizer, loss,"
            f" train and optionally valid ({error})."
        ) from error


def _module(place: str) -> ModuleType:
    sys.path.insert(0, str(Path.cwd()))
    try:
        if not place.endswith(".py"):
            return importlib.import_module(place)
        spec = importlib.util.spec_from_file_location(Path(place).stem, place)
        if spec is None or spec.loader is None or not Path(place).is_file():
            raise HolterError(f"There is no file {place}.")
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        sys.path.insert(0, str(Path(place).resolve().parent))
        try:
            spec.loader.exec_module(module)
        finally:
            del sys.path[0]
    except ModuleNotFoundError as error:
        if error.name is not None and f"{place}.".startswith(f"{error.name}."):
            raise HolterError(f"There is no module {place} to import in {Path.cwd()}.") from error
        raise
    else:
        return module
    finally:
        sys.path.remove(str(Path.cwd()))
