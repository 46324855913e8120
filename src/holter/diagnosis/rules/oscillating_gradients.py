"""The gradient norm oscillates from step to step."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.robust import Values
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import of, percent
from holter.record import Series
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import GRAD_TOTAL_NORM, LOSS

_FEWEST = 30  # pairs of consecutive steps


@rule(
    severity=Severity.WARNING,
    level=Level.HYPERPARAMETER,
    needs=(GRAD_TOTAL_NORM,),
    preview=True,
)
def oscillating_gradients(
    facts: Facts,
    *,
    swing: Annotated[float, "factor between the norms of consecutive steps"] = 10.0,
    most: Annotated[float, "share of the pairs of steps that oscillate"] = 0.8,
    min_fall: Annotated[float, "share by which the peaks of a falling loss must fall"] = 0.1,
) -> Iterator[Verdict]:
    """The gradient norm oscillates from step to step.

    ## What it does
    Compares the gradient norms of consecutive steps. It gives a hint if most pairs differ by a
    large factor and the run failed, or if the loss also oscillates and its peaks do not fall.

    ## Why it matters
    Gradients that alternate cancel each other: two kinds of batches pull in opposite directions, or
    each step overshoots the minimum and the next one returns.

    ## Example
    ```python
    for step in range(steps): train(next(sources[step % 2]))                 # bad
    loader = DataLoader(ConcatDataset([first, second]), shuffle=True)        # good
    ```

    ## What to do
    If batches alternate between two sources or tasks, mix them within a batch or weight each of
    them. Otherwise lower the learning rate, or raise the momentum.

    ## When it is wrong
    Losses may alternate by design, for example between two tasks, while the training fails for
    another reason.

    ## How to confirm
    - Repeat 100 steps with shuffled batches: the oscillation should disappear.
    - Repeat 100 steps with a tenth of the learning rate and compare the oscillation.
    """
    for owner, norm in facts.run[GRAD_TOTAL_NORM].items():
        changes = _changes(norm)
        if len(changes) < _FEWEST:
            yield oscillating_gradients.not_examined(
                f"{len(changes)} of the {_FEWEST} pairs of consecutive steps needed{of(owner)}"
            )
            continue
        factor = float(np.exp(np.median(changes)))
        share = float((changes >= np.log(swing)).mean())
        measured = (
            f"the gradient norm{of(owner)} changes by a factor of {factor:.2g} from step to step"
        )
        if share < most:
            yield oscillating_gradients.clear(measured)
            continue
        if facts.outcome is None:
            yield oscillating_gradients.not_examined(
                f"{measured}, but whether the loss fell is unknown"
            )
            continue
        stuck = _stuck(facts, min_fall)
        if stuck is None:
            yield oscillating_gradients.harmless(f"{measured}; {facts.outcome.says}")
            continue
        low, high = np.quantile(norm.values[np.isfinite(norm.values)], (0.1, 0.9))
        span = norm.first, norm.last
        yield oscillating_gradients.finding(
            f"{measured}, in {percent(share)} of {len(changes)} pairs; {stuck.says}",
            confidence=Confidence.HINT,
            onset=norm.first,
            evidence=(
                Evidence(GRAD_TOTAL_NORM, span, f"from {low:.2g} to {high:.2g}", owner),
                stuck,
            ),
            fix="mix the sources within each batch if batches alternate; otherwise lower the"
            " learning rate",
        )


def _stuck(facts: Facts, min_fall: float) -> Evidence | None:
    """Return evidence that the loss did not fall, or that its peaks did not; None if it did."""
    outcome = facts.outcome
    if outcome is None or outcome.bad:
        return None if outcome is None else outcome.evidence
    curve = facts.curve
    if isinstance(curve, str):
        return None
    first, last = (float(np.quantile(part, 0.75)) for part in (curve.part(0, 0.2), curve.part(0.8)))
    if first - last > min_fall * abs(first):
        return None
    says = f"the loss oscillates with peaks of {first:.3g} initially and {last:.3g} at the end"
    return Evidence(LOSS, curve.span, says, curve.owner)


def _changes(norm: Series) -> Values:
    """Return the size of the change between consecutive steps, as a logarithm."""
    usable = np.isfinite(norm.values) & (norm.values > 0)
    logs = np.log(np.where(usable, norm.values, np.nan).astype(np.float64))
    changes: Values = np.abs(np.diff(logs))[np.diff(norm.steps) == 1]
    return changes[np.isfinite(changes)]
