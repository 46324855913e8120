"""CheckpointListener: what a training continues from."""

import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from holter.record.events import StateLoaded
from holter.watching.collectors.moments import CheckpointRead, WeightsLoaded
from holter.watching.frames import Frames, place
from holter.watching.loop import Loop
from holter.watching.shield import shielded

_TOLD = 32  # loads that become events
_EVALUATIONS = 1000  # whose weights are remembered
_PARAMETERS, _ELEMENTS = 4, 16  # of a model, and of each of them, that are remembered
_NAMES = 4096  # of a state that are compared


class CheckpointListener:
    """Hears of checkpoints: their content until training begins, and which names fit at any time.

    A training may begin with that of a teacher, or of a model whose weights another one is given.
    """

    def __init__(self, loop: Loop) -> None:
        self.shield = loop.shield
        self._stepper = loop.stepper
        self._recorder = loop.recorder
        self._frames = Frames()
        self._numbers: weakref.WeakKeyDictionary[nn.Module, int] = weakref.WeakKeyDictionary()
        # The step before which the state of a module was last taken.
        self._taken: weakref.WeakKeyDictionary[nn.Module, int] = weakref.WeakKeyDictionary()
        self._told = 0
        self._evaluated: list[tuple[int, Tensor]] = []  # steps, and a part of the weights then
        loop.at_evaluation.append(self._evaluates)

    def _evaluates(self, module: nn.Module) -> None:
        """Remember a part of the weights that are evaluated."""
        if self._stepper.has_trained and len(self._evaluated) < _EVALUATIONS:
            part = _part(module)
            if part is not None:
                self._evaluated.append((self._recorder.step, part))

    def _step_of(self, module: nn.Module) -> int | None:
        """Return after which step these weights were evaluated, if that is known."""
        part = _part(module) if self._evaluated else None
        if part is None:
            return None
        steps = {
            step
            for step, known in self._evaluated
            if known.device == part.device and torch.equal(known, part)
        }
        return steps.pop() if len(steps) == 1 else None

    @shielded
    def checkpoint_read(self, content: object) -> None:
        """Publish the content of a checkpoint."""
        if not self._stepper.has_trained:
            self._stepper.publish(CheckpointRead(content))

    @shielded
    def state_taken(self, module: nn.Module) -> None:
        """Remember when the state of a module was taken."""
        self._taken[module] = self._stepper.coming_step

    @shielded
    def weights_loaded(
        self, module: nn.Module, state: Any, result: Any, *, assigned: bool = False
    ) -> None:
        """Publish what was loaded into a module, and tell which of its names were found."""
        if not self._stepper.has_trained:
            self._stepper.publish(WeightsLoaded(module, state))
        missing = getattr(result, "missing_keys", None)
        unexpected = getattr(result, "unexpected_keys", None)
        if missing is None or unexpected is None or not isinstance(state, Mapping):
            return  # a library's own way of loading
        number = self._numbers.setdefault(module, self._told)
        self._told += 1
        if self._told <= _TOLD:
            # With `assign=True` the state's tensors have just become the module's own. A state that
            # was taken since the last update may have been edited in place, and holds that.
            is_kept = self._taken.get(module, -1) < self._stepper.coming_step
            is_copied = self._stepper.has_trained and not assigned and is_kept
            where = next((place(frame) for frame in self._frames.all()), "")
            wrapped = _wrapped(module, state, missing, unexpected)
            self._recorder.event(
                StateLoaded(
                    f"{type(module).__name__} {number}",
                    found=len(state) - len(unexpected),
                    missing=len(missing),
                    unexpected=len(unexpected),
                    renamed=_renamed(missing, unexpected) + len(wrapped),
                    example=_example([*wrapped.values(), *missing], [*wrapped, *unexpected]),
                    where=where,
                    of_step=self._step_of(module),
                    own=_own(module, state) if is_copied else 0,
                )
            )


def _part(module: nn.Module) -> Tensor | None:
    """Copy a few elements of some parameters, the last among them; None if they are not plain."""
    held = [parameter for parameter in module.parameters() if parameter.numel()]
    chosen = held[:: -max(len(held) // _PARAMETERS, 1)][:_PARAMETERS]
    plain = [type(each) is nn.Parameter and each.layout is torch.strided for each in chosen]
    if not chosen or not all(plain) or len({each.device for each in chosen}) > 1:
        return None
    if chosen[0].is_meta:
        return None
    return torch.cat([each.detach().reshape(-1)[:_ELEMENTS].float() for each in chosen])


def _own(module: nn.Module, state: Mapping[str, Any]) -> int:
    """Count the names of a state that hold the module's own memory; no value is read."""
    # Tied weights have several names, in the state as well.
    held = (
        *module.named_parameters(remove_duplicate=False),
        *module.named_buffers(remove_duplicate=False),
    )
    return sum(_is_same_memory(state.get(name), tensor) for name, tensor in held)


def _is_same_memory(given: object, held: Tensor) -> bool:
    """Whether two plain tensors are the same view of the same memory."""
    plain = (Tensor, nn.Parameter)  # sharded tensors and other subclasses have no pointer
    if not isinstance(given, Tensor) or type(given) not in plain or type(held) not in plain:
        return False
    if any(each.layout is not torch.strided or each.is_meta for each in (given, held)):
        return False
    return (
        held.numel() > 0
        and (given.device, given.dtype) == (held.device, held.dtype)
        and (given.shape, given.stride()) == (held.shape, held.stride())
        and given.data_ptr() == held.data_ptr()
    )


def _renamed(missing: Sequence[str], unexpected: Sequence[str]) -> int:
    """How many of the missing names are in the state under a longer or a shorter name."""
    given = set(unexpected[:_NAMES])
    ends = {end for name in given for end in _ends(name)}
    return sum(
        name in ends or any(end in given for end in _ends(name)) for name in missing[:_NAMES]
    )


def _wrapped(
    module: nn.Module, state: Mapping[str, Any], missing: Sequence[str], unexpected: Sequence[str]
) -> dict[str, str]:
    """Return missing names by those of the state, which lack one part of them, such as `.base.`.

    Layers that were wrapped before their weights were loaded have it. The shapes are the same.
    """
    if not missing or not unexpected:
        return {}
    given = {name: getattr(state[name], "shape", None) for name in unexpected[:_NAMES]}
    held = {name: each.shape for name, each in module.named_parameters(remove_duplicate=False)}
    found: dict[str, str] = {}
    for name in missing[:_NAMES]:
        for shorter in _without_a_part(name):
            if name in held and given.get(shorter) == held[name]:
                found.setdefault(shorter, name)
    return found


def _without_a_part(name: str) -> list[str]:
    """The names that a name has without one of its parts between the first and the last."""
    parts = name.split(".")
    return [".".join([*parts[:n], *parts[n + 1 :]]) for n in range(1, len(parts) - 1)]


def _ends(name: str) -> list[str]:
    """The name without its first parts, one after the other; its last part says too little."""
    parts = name.split(".")
    return [".".join(parts[start:]) for start in range(1, len(parts) - 1)]


def _example(missing: Sequence[str], unexpected: Sequence[str]) -> tuple[str, ...]:
    """A name of the module and one of the state that were not found."""
    return (missing[0], unexpected[0]) if missing and unexpected else ()
