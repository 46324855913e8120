"""The gradient norm swings up and down from step to step."""

from collections.abc import Iterator

import numpy as np

from holter.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.rules import rule
from holter.rules._outcome import outcome
from holter.rules._robust import Values
from holter.rules._wording import of
from holter.run import Run, Series
from holter.signals import GRAD_TOTAL_NORM

_FEWEST = 50  # norms of steps that follow one another


@rule(
    severity=Severity.WARNING,
    level=Level.HYPERPARAMETER,
    needs=(GRAD_TOTAL_NORM,),
    explains=("loss-plateau", "loss-spike", "oscillating-loss", "underfitting"),
    symptom=True,
    preview=True,
)
def oscillating_gradients(run: Run, *, swing: float = 10.0) -> Iterator[Verdict]:
    """The gradient norm swings up and down from step to step.

    ## What it does
    Takes the logarithm of the gradient norm in the last half of the run and looks at how each step
    compares with the one before. It gives a hint where high and low steps alternate (four of five
    times), the usual swing is over `swing`-fold, and the loss went badly.

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
    for owner, norm in run[GRAD_TOTAL_NORM].items():
        logs = _consecutive(norm)
        if len(logs) < _FEWEST:
            yield oscillating_gradients.not_examined(
                f"{len(logs)} of the {_FEWEST} steps in a row needed{of(owner)}"
            )
            continue
        moves = np.diff(logs)
        turns = float((moves[1:] * moves[:-1] < 0).mean())
        size = float(np.exp(np.median(np.abs(moves))))
        result = outcome(run)
        if turns < 0.8 or size < swing or result is None or not result.bad:
            yield oscillating_gradients.clear(
                f"the gradient norm{of(owner)} turns on {turns:.0%} of the steps, by"
                f" {size:.2g}-fold"
            )
            continue
        first, last = int(norm.steps[len(norm) // 2]), norm.last
        yield oscillating_gradients.finding(
            f"the gradient norm{of(owner)} swings {size:.2g}-fold up and down, on {turns:.0%} of"
            f" the steps since step {first}, and {result.says}",
            confidence=Confidence.HINT,
            onset=first,
            evidence=(
                Evidence(
                    GRAD_TOTAL_NORM,
                    (first, last),
                    f"from {np.exp(np.quantile(logs, 0.1)):.2g} to"
                    f" {np.exp(np.quantile(logs, 0.9)):.2g}",
                    owner,
                ),
                result.evidence,
            ),
            fix="mix the sources within each batch if they come in turns; else lower the learning"
            " rate",
        )


def _consecutive(norm: Series) -> Values:
    """Logarithms of the last half of the norms, if they were read at every step; else none."""
    half = slice(len(norm) // 2, None)
    steps, values = norm.steps[half], norm.values[half].astype(np.float64)
    if not len(steps) or (np.diff(steps) != 1).mean() > 0.05:
        return np.empty(0)
    values = values[np.isfinite(values) & (values > 0)]
    return np.log(values)
