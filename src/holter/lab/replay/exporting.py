"""Export a failing step as one script and its tensors, to attach to a bug report."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from holter.lab.randomness import StepRandom
from holter.lab.replay.window import FailureWindow
from holter.record.errors import HolterError
from holter.watching.blackbox.capture import Step

_SCRIPT = '''\
"""Step {step} of a training that failed: {says}

Every operation of the step, forward and backward, as it was carried out, on the weights and the
batch of that step. Needs torch and safetensors, and the file {tensors} beside it.
Made with torch {torch}.
"""

from math import inf, nan  # noqa: F401
from pathlib import Path
from types import SimpleNamespace

import torch
from safetensors.torch import load_file
from torch import device  # noqa: F401

NAMES = {names}

{code}

tensors = load_file(Path(__file__).with_name("{tensors}"))
torch.set_rng_state(tensors.pop("random"))
given = [tensors[name] for name in {given}]
own = SimpleNamespace(**{{name: tensors[name] for name in {own}}})
loss, *gradients = forward(own, *given)
print("loss", loss.item())
for name, gradient in zip(NAMES, gradients):
    if gradient is not None and not gradient.isfinite().all():
        print("gradient of", name, "is not finite")
'''


def export(window: FailureWindow, path: Path, *, synthetic: bool = False) -> str:
    """Write the failing step to `path` and its tensors beside it; return a sentence about it.

    With `synthetic` its values are replaced by random ones; nothing is written if these do not
    fail.
    """
    if path.suffix != ".py":
        raise HolterError(f"--export {path}: name a Python file, as in repro.py.")
    failing = window.at(window.failing)
    window.to_step(failing)
    batch = _at_its_random_state(window.batches(failing)[0])
    random = torch.get_rng_state()
    try:
        graph, given, names = _traced(window, failing, batch)
    except Exception as error:
        return (
            f"no script was written: the step could not be traced"
            f" ({type(error).__name__}: {error}); the capture {window.capture.path} has its tensors"
        )
    own = {name: each for name, each in vars(graph).items() if isinstance(each, Tensor)}
    own |= dict(graph.named_parameters(recurse=False)) | dict(graph.named_buffers(recurse=False))
    if synthetic:
        replaced = _replaced(graph, own, given, random)
        if replaced is None:
            return (
                "no script was written: with random weights and a random batch the step does not"
                " fail; leave --synthetic out to export those of the training"
            )
        own, given = replaced
    tensors = path.with_suffix(".safetensors")
    _save(tensors, {**own, **{f"given {n}": t for n, t in enumerate(given)}, "random": random})
    path.write_text(
        _SCRIPT.format(
            step=window.failing,
            says=window.capture.alarm.says,
            tensors=tensors.name,
            torch=torch.__version__,
            names=names,
            code=graph.code.strip(),
            given=[f"given {n}" for n in range(len(given))],
            own=list(own),
        )
    )
    return f"{path}: {_shown(path)}"


def _traced(
    window: FailureWindow, failing: Step, batch: Any
) -> tuple[Any, list[Tensor], list[str]]:
    """Return the operations of the step as a graph, its inputs, and the names of parameters."""
    from torch.fx.experimental.proxy_tensor import make_fx

    leaves, spec = pytree.tree_flatten(batch)
    places = [n for n, each in enumerate(leaves) if isinstance(each, Tensor)]
    named = {
        f"{label}.{name}".removeprefix("."): each
        for label, model in window.setup.models.items()
        for name, each in model.named_parameters()
        if each.requires_grad
    }

    def step(*given: Tensor) -> Sequence[Tensor | None]:
        filled = list(leaves)
        for place, each in zip(places, given, strict=True):
            filled[place] = each
        loss = window.phases(failing)[0].loss(pytree.tree_unflatten(filled, spec))
        if not loss.requires_grad:
            return [loss]
        return [loss, *torch.autograd.grad(loss.mean(), list(named.values()), allow_unused=True)]

    given = [leaves[place].clone() for place in places]
    return make_fx(step)(*given), given, list(named)


def _at_its_random_state(batch: Any) -> Any:
    """Restore the random state that a batch of a second run holds, and leave it out."""
    if not isinstance(batch, dict):
        return batch
    held = {key: value for key, value in batch.items() if isinstance(value, StepRandom)}
    for states in held.values():
        states.begin()
    return {key: value for key, value in batch.items() if key not in held}


def _replaced(
    graph: Any, own: dict[str, Tensor], given: list[Tensor], random: Tensor
) -> tuple[dict[str, Tensor], list[Tensor]] | None:
    """Return random weights and a random batch with which the step fails, if they do."""
    generator = torch.Generator().manual_seed(0)
    weights = {name: _like(value, generator) for name, value in own.items()}
    batch = [_like(value, generator) for value in given]
    before = torch.get_rng_state()
    kept = {name: getattr(graph, name) for name in own}
    try:
        for name, value in weights.items():
            setattr(graph, name, _as(kept[name], value))
        torch.set_rng_state(random)
        results = [value for value in graph(*batch) if value is not None]
    finally:
        for name, value in kept.items():
            setattr(graph, name, value)
        torch.set_rng_state(before)
    fails = not all(bool(value.isfinite().all()) for value in results)
    return (weights, batch) if fails else None


def _like(value: Tensor, generator: torch.Generator) -> Tensor:
    """Return a random tensor of the same shape, type, mean and spread.

    What failures hang on stays where it is: zeros, the largest value, and what is not finite.
    Whole numbers are drawn from those that occur.
    """
    if value.numel() == 0 or value.is_complex():
        return value.clone()
    flat = value.detach().flatten()
    if not value.is_floating_point():
        chosen = torch.randint(flat.numel(), flat.shape, generator=generator)
        return flat[chosen.to(flat.device)].reshape(value.shape)
    finite = flat[flat.isfinite()].float()
    if finite.numel() == 0:
        return value.clone()
    drawn = torch.randn(flat.shape, generator=generator).to(flat.device)
    made = drawn * finite.std(correction=0) + finite.mean()
    stays = ~flat.isfinite() | (flat == 0)
    stays[flat.float().nan_to_num().abs().argmax()] = True
    return torch.where(stays, flat, made.to(flat.dtype)).reshape(value.shape)


def _as(kept: Any, value: Tensor) -> Tensor:
    """Return a value as what it replaces is: a parameter, or a plain tensor."""
    if isinstance(kept, torch.nn.Parameter):
        return torch.nn.Parameter(value, requires_grad=kept.requires_grad)
    return value


def _save(path: Path, tensors: dict[str, Tensor]) -> None:
    from safetensors.torch import save_file

    save_file({n: t.detach().cpu().contiguous().clone() for n, t in tensors.items()}, path)
    path.chmod(0o644)


def _shown(path: Path) -> str:
    """Run the script, and return what it shows."""
    try:
        ran = subprocess.run(  # noqa: S603  (our own script)
            [sys.executable, path.name],
            cwd=path.resolve().parent,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"written, but it could not be run ({error})"
    if ran.returncode:
        last = ran.stderr.strip().splitlines()[-1:] or ["no message"]
        return f"written, but it fails: {last[0]}"
    return f"reproduces the failure: {ran.stdout.strip().splitlines()[0]}"
