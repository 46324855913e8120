"""Adam's epsilon is larger than the gradients."""

from collections.abc import Iterator

import numpy as np

from holter.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.rules import rule
from holter.rules._layers import sample, trained_layers
from holter.rules._outcome import outcome
from holter.run import Run
from holter.signals import (
    ADAM_TINY_FRACTION,
    EPSILON,
    GRAD_ZERO_FRACTION,
    UPDATE_RATIO,
)

_FEWEST = 10  # sampled steps
_SPARSE = 0.5  # share of zeros in a gradient over which it says nothing of epsilon
_SLOW = 0.5  # share of its loss that a training at full pace loses
_SMALL = 1e-3  # update of a weight in most trainings that go well


@rule(
    severity=Severity.WARNING,
    level=Level.HYPERPARAMETER,
    needs=(ADAM_TINY_FRACTION, EPSILON),
    explains=(
        "tiny-updates",
        "flat-loss",
        "loss-at-constant-predictor",
        "loss-plateau",
        "underfitting",
        "validation-mismatch",
    ),
)
def large_epsilon(run: Run, *, share: float = 0.9) -> Iterator[Verdict]:
    """Adam's epsilon is larger than the gradients.

    ## What it does
    Adam divides each step by the root of the gradient's second moment plus epsilon. It looks at the
    later half of the run, at weights whose gradients are not mostly zero, and speaks where that
    root is under epsilon for more than `share` of the elements of the usual weight, updates are
    under a thousandth of the weights, and the loss lost less than half of itself.

    ## Why it matters
    Where epsilon rules, Adam no longer adapts: it is SGD with a learning rate of lr/epsilon. Layers
    with small gradients hardly move, whatever the learning rate seems to say.

    ## What to do
    Set epsilon well under the gradients: 1e-8 in float32. If gradients themselves are tiny, as
    with a loss divided by a large number, scale the loss up.

    ## When it is wrong
    A large epsilon is a recipe in some fields (1e-3 to 1 for some vision and RL models), with a
    learning rate to match: then the loss falls and this rule is silent.

    ## How to confirm
    - Repeat the first 100 steps with `eps=1e-8`: the loss should fall faster.
    """
    names = [each.name for each in trained_layers(run)]
    whole = sample(run, ADAM_TINY_FRACTION, names or None)
    tiny = whole.between(0.5, 1)
    epsilon = max(
        (float(each.values.max()) for each in run[EPSILON].values() if len(each)), default=0
    )
    if len(whole) < _FEWEST:
        yield large_epsilon.not_examined(f"{len(whole)} of the {_FEWEST} sampled steps needed")
        return
    level = tiny.medians()[_dense(run, tiny.owners)]
    usual = float(np.nanmedian(level)) if np.isfinite(level).any() else 0.0
    if usual <= share:
        yield large_epsilon.clear(
            f"epsilon is {epsilon:.1g}; for {usual:.0%} of the usual weight gradients are smaller"
        )
        return
    said = f"gradients are under epsilon ({epsilon:.1g}) for {usual:.0%} of the usual weight"
    result = outcome(run)
    update = _update(run, names)
    slow = result is not None and (result.bad or result.fall < _SLOW)
    if result is None or not slow or update is None or update > _SMALL:
        came = f"; {result.says}" if result is not None else ""
        yield large_epsilon.normal(f"{said}: Adam does not adapt there{came}")
        yield large_epsilon.clear(f"{said}{came}")
        return
    yield large_epsilon.finding(
        f"{said}: Adam is SGD with a tiny step there, weights change by {update:.1e} a step, and"
        f" {result.says}",
        confidence=Confidence.LIKELY,
        onset=int(whole.steps[0]),
        evidence=(
            Evidence(
                ADAM_TINY_FRACTION,
                (int(tiny.steps[0]), int(tiny.steps[-1])),
                f"median over weights {usual:.3f}",
                tiny.owners[0],
            ),
            Evidence(EPSILON, (0, run.steps - 1), f"epsilon {epsilon:.1g}"),
            result.evidence,
        ),
        fix=f"set eps=1e-8 (now {epsilon:.1g})",
    )


def _dense(run: Run, owners: tuple[str, ...]) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Whose gradients are not mostly zero: what is zero is under any epsilon."""
    if GRAD_ZERO_FRACTION not in run:
        return np.ones(len(owners), np.bool_)
    zeros = sample(run, GRAD_ZERO_FRACTION, owners)
    level = dict(zip(zeros.owners, zeros.medians(), strict=True))
    return np.array([not level.get(owner, 0.0) > _SPARSE for owner in owners])


def _update(run: Run, names: list[str]) -> float | None:
    if UPDATE_RATIO not in run:
        return None
    typical = sample(run, UPDATE_RATIO, names or None).typical()
    return float(np.median(typical)) if len(typical) else None
