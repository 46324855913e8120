"""How sharp the loss is around the weights, and whether the learning rate suits its curvature."""

import math

import torch
from torch import Tensor, nn
from torch.optim import LBFGS

from holter.lab.changes.learning_rate import learning_rate_times
from holter.lab.experiments import experiment
from holter.lab.experiments._geometry.curvature import (
    Eigenvalue,
    Objective,
    Stability,
    largest_eigenvalue,
    stability,
    twice_differentiable,
)
from holter.lab.experiments._geometry.landscape import Landscape
from holter.lab.inapplicable import InapplicableError
from holter.lab.setup import Batch, Setup
from holter.lab.state import State
from holter.lab.writing import Lab
from holter.record.signals import (
    SHARPNESS_BOUND,
    SHARPNESS_DESCENT,
    SHARPNESS_DISTANCE,
    SHARPNESS_EIGENVALUE,
    SHARPNESS_LOSS,
    SHARPNESS_PLANE,
    SHARPNESS_RATE,
    SHARPNESS_RESIDUAL,
    SHARPNESS_START,
)

_SAFE = 0.5  # share of what the bound allows, for the trial with a reduced learning rate
_WORSE = 0.2  # share by which a loss may rise in the first steps and still be taken as it is
_DESCENT = 20  # steps on the same batches


@experiment(
    emits=(
        SHARPNESS_EIGENVALUE,
        SHARPNESS_RESIDUAL,
        SHARPNESS_BOUND,
        SHARPNESS_RATE,
        SHARPNESS_DESCENT,
        SHARPNESS_START,
        SHARPNESS_DISTANCE,
        SHARPNESS_LOSS,
        SHARPNESS_PLANE,
    )
)
def sharpness(
    setup: Setup,
    lab: Lab,
    *,
    steps: int = 100,
    batches: int = 4,
    directions: int = 5,
    points: int = 21,
    reach: float = 1.0,
    plane: bool = False,
    side: int = 15,
    iterations: int = 60,
    tolerance: float = 1e-3,
    seed: int = 0,
) -> None:
    """How sharp is the loss around the weights, and does the learning rate suit it?

    Trains for some steps first, unless that raises the loss, and keeps some batches. It compares
    the largest eigenvalue of the Hessian on them (Lanczos iteration, in the training's own modes,
    with the same dropout each time) with the stability bound of the optimizer at its learning rate,
    and runs some steps on the same batches. Then it moves the weights along random directions with
    filter normalisation (each filter of a direction has the norm of that filter of the weights;
    biases and norm layers stay), in eval mode. Only the first of several losses is used.

    - `steps`: training steps before measuring; 0 measures the present weights.
    - `batches`: number of batches to measure the loss on.
    - `directions`: number of random directions, with `points` on each, `reach` to either side.
    - `plane`: also measure a square of two directions, `side` points each way.
    - `iterations`, `tolerance`: maximum number of iterations and precision of the eigenvalue.
    - `seed`: seed of the directions and of the iteration's start.
    """
    fixed = _fixed(setup, batches)
    _to_the_weights(setup, lab, steps)
    objective = Objective(setup, fixed)
    random = torch.Generator().manual_seed(seed)
    start = State(setup)
    refused: InapplicableError | None = None
    try:
        _curvature(setup, lab, objective, random, iterations=iterations, tolerance=tolerance)
    except InapplicableError as error:  # the rest needs no second derivative
        refused = error
    start.restore()
    landscape = Landscape(setup, fixed, objective.parameters)
    distances = torch.linspace(-reach, reach, points).tolist()
    lab.write(SHARPNESS_DISTANCE, distances, trial="line")
    for number in lab.progress(range(directions), "directions"):
        losses = landscape.line(landscape.direction(random), distances)
        lab.write(SHARPNESS_LOSS, losses, trial=f"direction {number}")
    if plane:
        distances = torch.linspace(-reach, reach, side).tolist()
        lab.write(SHARPNESS_DISTANCE, distances, trial="plane")
        right, upward = landscape.direction(random), landscape.direction(random)
        rows = lab.progress(distances, "plane")
        square = [landscape.row(right, distances, up, upward) for up in rows]
        lab.write(SHARPNESS_PLANE, [loss for row in square for loss in row])
    if refused is not None:
        raise refused


def _to_the_weights(setup: Setup, lab: Lab, steps: int) -> None:
    """Train for `steps` steps; go back to the start where the loss ends far above it."""
    start = State(setup)
    losses: list[float] = []
    if not any(isinstance(optimizer, LBFGS) for optimizer in setup.optimizers):
        train = setup.endless()
        for _ in lab.progress(range(steps), "training"):
            losses.append(setup.step(*(next(train) for _ in range(setup.accumulation))))
            if not math.isfinite(losses[-1]):
                break
    few = max(len(losses) // 10, 1)
    first, last = sum(losses[:few]), sum(losses[-few:])
    worse = not last <= first + _WORSE * abs(first)
    if worse:
        start.restore()
    lab.write(SHARPNESS_START, [0.0 if worse else len(losses)])


def _fixed(setup: Setup, batches: int) -> list[Batch]:
    whole = max(batches // setup.accumulation, 1) * setup.accumulation
    found = setup.batches(whole)
    if not found:
        raise InapplicableError("there are no training batches")
    return found[: max(len(found) // setup.accumulation, 1) * setup.accumulation]


def _curvature(
    setup: Setup,
    lab: Lab,
    objective: Objective,
    random: torch.Generator,
    *,
    iterations: int,
    tolerance: float,
) -> None:
    """The largest eigenvalue of the Hessian, the optimizer's bound on it, and steps beside it."""

    def largest(scale: Tensor | None = None) -> Eigenvalue:
        number = sum(parameter.numel() for parameter in objective.parameters)
        first = torch.randn(number, generator=random).to(objective.parameters[0])
        root = 1.0 if scale is None else scale.sqrt()
        counted = lab.progress(range(iterations), "curvature")

        def multiply(vector: Tensor) -> Tensor:
            next(counted)
            return root * objective.product(root * vector)

        found = largest_eigenvalue(multiply, first, iterations=iterations, tolerance=tolerance)
        lab.clear()
        return found

    with twice_differentiable():
        objective.reject_single_derivatives()
        plain = largest()
    _write(lab, "hessian", plain)
    allowed = stability(setup.phases[0], objective.parameters)
    felt, name = plain, "hessian"
    if allowed.scale is not None:
        with twice_differentiable():
            felt, name = largest(allowed.scale), "preconditioned"
        _write(lab, name, felt)
    lab.write(SHARPNESS_BOUND, [allowed.bound], trial=name)
    lab.write(SHARPNESS_RATE, [allowed.rate])
    _descents(setup, lab, objective, allowed, felt)


def _write(lab: Lab, trial: str, found: Eigenvalue) -> None:
    lab.write(SHARPNESS_EIGENVALUE, [found.value], trial=trial)
    lab.write(SHARPNESS_RESIDUAL, [found.residual], trial=trial)


def _descents(
    setup: Setup, lab: Lab, objective: Objective, allowed: Stability, felt: Eigenvalue
) -> None:
    """Steps on the same batches at the learning rate as set and, if that is high, at a low one."""
    start = State(setup)
    lab.write(SHARPNESS_DESCENT, _descent(setup, objective), trial="as set")
    start.restore()
    if felt.value > allowed.bound:
        factor = _SAFE * allowed.bound / felt.value
        with learning_rate_times(factor).applied(setup) as reduced:
            lab.write(SHARPNESS_DESCENT, _descent(reduced, objective), trial="reduced")
        start.restore()


def _descent(setup: Setup, objective: Objective) -> list[float]:
    phase = setup.phases[0]
    losses: list[float] = []
    for number in range(_DESCENT + 1):
        for optimizer in phase.optimizers:
            optimizer.zero_grad()
        total = 0.0
        for loss in objective.losses():
            total += float(loss.detach())
            torch.autograd.backward(loss)
        losses.append(total)
        if number == _DESCENT or not math.isfinite(total):
            return losses
        if phase.max_norm is not None:
            nn.utils.clip_grad_norm_(objective.parameters, phase.max_norm)
        for optimizer in phase.optimizers:
            optimizer.step()
    return losses
