"""A training saved to a file and loaded again as a new process would, whole or in part."""

from collections.abc import Collection, Iterator
from typing import IO, Any

import torch
from torch import Tensor, nn
from torch.amp import GradScaler
from torch.optim.lr_scheduler import LRScheduler
from torch.optim.swa_utils import AveragedModel

from holter.lab.experiments._repeating.saving import AVERAGE
from holter.lab.inapplicable import InapplicableError
from holter.lab.randomness import RandomState, generators_of
from holter.lab.setup import Setup
from holter.lab.state import State

RANDOM = "random numbers"
_PLAIN = (bool, int, float, complex, str, type(None))


class Checkpoint:
    """The `state_dict()` of every part of a training, in a file."""

    def __init__(self, setup: Setup, start: State, file: IO[bytes]) -> None:
        self._setup, self._start, self._file = setup, start, file
        self._parts = list(_parts(setup))
        self._random = RandomState.now(generators_of(setup))
        self._attributes = dict(_attributes(setup))
        try:
            torch.save([part.state_dict() for _, part in self._parts], self._file)
        except Exception as error:  # what a script keeps in its states is its own affair
            raise InapplicableError(
                f"the states of the training cannot be saved ({type(error).__name__}: {error})"
            ) from error

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of parts that it holds, beside the model."""
        kinds = dict.fromkeys(kind for kind, _ in self._parts)
        return (*(kind for kind in kinds if kind != "model"), RANDOM)

    def load(self, *, without: Collection[str] = ()) -> None:
        """Restart the training and load it, but for some kinds of parts: these start again."""
        self._start.restore()
        for kind, part in self._parts:
            _begin(kind, part)
        self._file.seek(0)
        states = torch.load(self._file, weights_only=False)  # what was written above
        for (kind, part), state in zip(self._parts, states, strict=True):
            if kind not in without:
                part.load_state_dict(state)
        if RANDOM not in without:
            self._random.restore(generators_of(self._setup))
        else:
            torch.rand(1, device=self._setup.device)
            torch.rand(1)

    def unsaved(self) -> list[str]:
        """Return the attributes of modules that are not as they were when it was saved."""
        now = dict(_attributes(self._setup))
        return [name for name, was in self._attributes.items() if not _same(was, now.get(name))]


def _parts(setup: Setup) -> Iterator[tuple[str, Any]]:
    """Yield what a complete checkpoint holds, each with its kind."""
    yield from (("model", model) for model in setup.models.values())
    yield from (("optimizer", optimizer) for optimizer in setup.optimizers)
    yield from (("scheduler", scheduler) for scheduler in setup.schedulers)
    scalers = {id(phase.scaler): phase.scaler for phase in setup.phases if phase.scaler is not None}
    yield from (("scaler", scaler) for scaler in scalers.values())
    for other in setup.others:
        if hasattr(other, "state_dict") and hasattr(other, "load_state_dict"):
            yield AVERAGE if isinstance(other, AveragedModel) else "other parts", other


def _begin(kind: str, part: Any) -> None:
    """Set an optimizer, a scheduler or a scaler to where a new one begins."""
    if kind == "optimizer":
        part.state.clear()
        for group in part.param_groups:
            group["lr"] = group.get("initial_lr", group["lr"])
    elif isinstance(part, LRScheduler) and "_schedulers" not in vars(part):
        part.last_epoch = -1
        part._initial_step()  # noqa: SLF001  (what its constructor calls)
    elif isinstance(part, GradScaler):
        vars(part).update(_scale=None, _growth_tracker=None)


def _attributes(setup: Setup) -> Iterator[tuple[str, Any]]:
    """Yield what modules keep beside their state: plain attributes, buffers that are not saved."""
    for label, model in setup.models.items():
        for path, module in model.named_modules():
            prefix = ".".join(part for part in (label, path) if part)
            skipped = vars(module).get("_non_persistent_buffers_set", set())
            kept = {n: b for n, b in vars(module)["_buffers"].items() if n in skipped}
            own = {n: v for n, v in vars(module).items() if not n.startswith("_")}
            for name, value in {**own, **kept}.items():
                if isinstance(value, (*_PLAIN, Tensor)) and not isinstance(value, nn.Parameter):
                    copied = value.detach().clone() if isinstance(value, Tensor) else value
                    yield f"{prefix}.{name}".removeprefix("."), copied


def _same(was: Any, now: Any) -> bool:
    if isinstance(was, Tensor) and isinstance(now, Tensor):
        return was.shape == now.shape and bool(torch.equal(was, now))
    return type(was) is type(now) and bool(was == now)
