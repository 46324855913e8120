"""The gradient norm swings up and down from step to step."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.robust import Values
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import of
from holter.record import Series
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import GRAD_TOTAL_NORM, LOSS

_FEWEST = 30  # pairs of steps that follow one another
_MOST = 0.8  # share of them that has to swing
_NO_FALL = 0.1  # share of its peaks that a loss loses which does not fall


@rule(
    severity=Severity.WARNING,
    level=Level.HYPERPARAMETER,
    needs=(GRAD_TOTAL_NORM,),
    preview=True,
)
def oscillating_gradients(facts: Facts, *, swing: float = 10.0) -> Iterator[Verdict]:
    """The gradient norm swings up and down from step to step.

    ## What it does
    Compares the gradient norm of each step with that of the next. It gives a hint where four of
    five such pairs differ over `swing`-fold, up and down again, and the loss went badly,
    or swings with them and its peaks do not fall.

    ## Why it matters
    Gradients that alternate cancel each other: two kinds of batches pull against each other, or
    each step jumps over the valley and the next one back.

    ## What to do
    If batches come in turns, from two sources or two tasks, mix them within a batch or give each
    its own weight. Otherwise lower the learning rate, or raise the momentum.

    ## When it is wrong
    Losses that alternate by design, such as one backward for each of two tasks, while the training
    is bad for another reason.

    ## How to confirm
    - Repeat 100 steps with shuffled batches: the swing should go.
    - Repeat 100 steps with a tenth of the learning rate and compare the swing.
    """
    for owner, norm in facts.run[GRAD_TOTAL_NORM].items():
        moves = _moves(norm)
        if len(moves) < _FEWEST:
            yield oscillating_gradients.not_examined(
                f"{len(moves)} of the {_FEWEST} pairs of steps in a row needed{of(owner)}"
            )
            continue
        size = float(np.exp(np.median(moves)))
        share = float((moves >= np.log(swing)).mean())
        stuck = _stuck(facts)
        if share < _MOST or stuck is None:
            yield oscillating_gradients.clear(
                f"the gradient norm{of(owner)} changes {size:.2g}-fold from a step to the next"
            )
            continue
        first, last = norm.first, norm.last
        yield oscillating_gradients.finding(
            f"the gradient norm{of(owner)} swings {size:.2g}-fold up and down from step to step, on"
            f" {share:.0%} of {len(moves)} pairs, and {stuck.says}",
            confidence=Confidence.HINT,
            onset=first,
            evidence=(
                Evidence(
                    GRAD_TOTAL_NORM,
                    (first, last),
                    f"from {_quantile(norm, 0.1):.2g} to {_quantile(norm, 0.9):.2g}",
                    owner,
                ),
                stuck,
            ),
            fix="mix the sources within each batch if they come in turns; else lower the learning"
            " rate",
        )


def _stuck(facts: Facts) -> Evidence | None:
    """That the loss did not fall: as a whole, or its peaks, where it swings with the gradients."""
    result = facts.outcome
    if result is None or result.bad:
        return None if result is None else result.evidence
    curve = facts.curve
    if isinstance(curve, str):
        return None
    first, last = (float(np.quantile(part, 0.75)) for part in (curve.part(0, 0.2), curve.part(0.8)))
    if first - last > _NO_FALL * abs(first):
        return None
    says = f"the loss swings, too, with peaks about {first:.4g} at first and {last:.4g} at last"
    return Evidence(LOSS, curve.span, says, curve.owner)


def _moves(norm: Series) -> Values:
    """Sizes of the change from one step to the next, in logarithms, where both were read."""
    known = np.isfinite(norm.values) & (norm.values > 0)
    logs = np.log(np.where(known, norm.values, np.nan).astype(np.float64))
    moves: Values = np.abs(np.diff(logs))[np.diff(norm.steps) == 1]
    return moves[np.isfinite(moves)]


def _quantile(norm: Series, share: float) -> float:
    return float(np.quantile(norm.values[np.isfinite(norm.values)], share))
