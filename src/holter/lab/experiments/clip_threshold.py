"""Which norm to clip gradients to, from the norms before clipping."""

import functools
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from torch import Tensor, nn
from torch.optim import LBFGS

from holter.lab.batches import as_real
from holter.lab.changes.clipping import clip_to
from holter.lab.experiments import experiment
from holter.lab.inapplicable import InapplicableError
from holter.lab.setup import LossPhase, Setup
from holter.lab.state import State
from holter.lab.writing import Lab
from holter.record.signals import CLIP_THRESHOLD_LIMIT, CLIP_THRESHOLD_LOSS, CLIP_THRESHOLD_NORM
from holter.watching.taps import Tap

_FEWEST = 20  # steps, however slow
_CUT = 0.05  # of the median norm: a lower limit may slow the training, which a trial shows


@experiment(emits=(CLIP_THRESHOLD_NORM, CLIP_THRESHOLD_LIMIT, CLIP_THRESHOLD_LOSS), preflight=True)
def clip_threshold(setup: Setup, lab: Lab, *, steps: int = 200, seconds: float = 10.0) -> None:
    """Which gradient norms are ordinary, and is the clipping limit among them?

    Trains with the training's own clipping and measures the global gradient norm before clipping. A
    limit at the 95th percentile clips one step in twenty. If the present limit is far below all
    norms, the same steps are repeated with the advised limit. Learning rates stay constant:
    schedulers are not stepped.

    - `steps`: maximum number of training steps.
    - `seconds`: time limit.
    """
    if any(isinstance(optimizer, LBFGS) for optimizer in setup.optimizers):
        raise InapplicableError("LBFGS computes its gradients several times per step")
    start = State(setup)
    norms, losses = _train(setup, lab, steps, seconds)
    if not any(norms):
        raise InapplicableError("no gradient reached the optimizer")
    several = len(setup.phases) > 1
    for number, (phase, measured) in enumerate(zip(setup.phases, norms, strict=True)):
        if measured:
            trial = f"loss {number}" if several else ""
            lab.write(CLIP_THRESHOLD_NORM, measured, trial=trial)
            if phase.max_norm is not None:
                lab.write(CLIP_THRESHOLD_LIMIT, [phase.max_norm], trial=trial)
    lab.write(CLIP_THRESHOLD_LOSS, losses, trial="as set")
    finite = [each for each in norms[0] if math.isfinite(each)]
    limit = setup.phases[0].max_norm
    if not several and finite and limit is not None and limit < _CUT * float(np.median(finite)):
        start.restore()
        with clip_to(float(np.percentile(finite, 95))).applied(setup) as changed:
            _, losses = _train(changed, lab, len(losses), math.inf)
        lab.write(CLIP_THRESHOLD_LOSS, losses, trial="advised")


def _train(
    setup: Setup, lab: Lab, steps: int, seconds: float
) -> tuple[list[list[float]], list[float]]:
    """The norms of each phase and the losses of some training steps."""
    losses: list[float] = []
    began = time.monotonic()
    with _norms(setup) as norms:
        train = setup.endless()
        for _ in lab.progress(range(steps), "training"):
            losses.append(setup.step(*(next(train) for _ in range(setup.accumulation))))
            late = time.monotonic() - began > seconds
            if not math.isfinite(losses[-1]) or (late and len(losses) >= _FEWEST):
                break
    lab.clear()
    return norms, losses


@contextmanager
def _norms(setup: Setup) -> Iterator[list[list[float]]]:
    """Inside, each step of a phase adds its gradient norm to a list: from before any clipping."""
    found: list[list[float]] = [[] for _ in setup.phases]

    def tapped(original: Callable[..., Tensor]) -> Callable[..., Tensor]:
        @functools.wraps(original)
        def clip(parameters: Any, *args: Any, **kwargs: Any) -> Tensor:
            held = list(parameters)
            norm = original(held, *args, **kwargs)
            for phase, norms in zip(setup.phases, found, strict=True):
                if phase.max_norm is not None and held and _holds(phase, held[0]):
                    norms.append(float(norm))
            return norm

        return clip

    tap = Tap(nn.utils, "clip_grad_norm_", tapped)
    handles = [
        phase.optimizers[0].register_step_pre_hook(functools.partial(_read, phase, norms))
        for phase, norms in zip(setup.phases, found, strict=True)
        if phase.max_norm is None and phase.optimizers
    ]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()
        tap.remove()


def _holds(phase: LossPhase, parameter: Tensor) -> bool:
    return any(each is parameter for each in phase.parameters)


def _read(phase: LossPhase, norms: list[float], *_: object) -> None:
    held = (parameter.grad for parameter in phase.parameters)
    gradients = [as_real(gradient) for gradient in held if gradient is not None]
    if gradients:
        norms.append(float(nn.utils.get_total_norm(gradients)))
