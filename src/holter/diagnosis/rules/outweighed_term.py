"""A loss term is outweighed by another one, and the model learns nothing from it."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import CROSS_ENTROPIES, last, readings
from holter.diagnosis.facts.handwritten import loss_name
from holter.diagnosis.facts.robust import Values
from holter.diagnosis.facts.trained import recorded_losses
from holter.diagnosis.rule import exception, rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS_MEAN, LOSS_TERM_GRADIENT, TARGET_ENTROPY, TARGET_STD


@dataclass(frozen=True, slots=True)
class _Term:
    """A term with almost none of the gradient, whose loss is no better than a constant's."""

    function: str
    shares: Values
    end: float
    constant: float

    @property
    def share(self) -> float:
        return float(np.median(self.shares))

    def says(self, facts: Facts) -> str:
        return (
            f"{loss_name(facts, self.function)} has"
            f" {percent(self.share) if self.share else 'none'} of the gradient and ends at"
            f" {self.end:.3g}; the best constant prediction gives {self.constant:.3g}"
        )


@exception
def switched_off(facts: Facts, term: _Term) -> str | None:
    """The gradient is exactly 0: the script switches the term off."""
    zero = float((term.shares == 0).mean())
    if zero < 1 / 2:
        return None
    return f"{term.says(facts)}; its gradient is exactly 0 on {percent(zero)} of the sampled steps"


@exception
def opposed(facts: Facts, term: _Term) -> str | None:
    """A part with its own optimizer is an adversary and may be meant to fail."""
    losses = list(recorded_losses(facts).values())
    together = Counter((series.first, series.last, len(series)) for series in losses)
    count = max(together.values(), default=0)
    if count < 2:
        return None
    return f"{term.says(facts)}; {count} optimizers follow the same backward pass"


@rule(
    severity=Severity.WARNING,
    level=Level.HYPERPARAMETER,
    needs=(LOSS_TERM_GRADIENT, LOSS_MEAN),
    exceptions=(switched_off, opposed),
    preview=True,
)
def outweighed_term(
    facts: Facts,
    *,
    min_readings: Annotated[int, "sampled steps needed"] = 8,
    min_steps: Annotated[int, "steps of training needed"] = 100,
    max_share: Annotated[float, "share of the gradient that is too little"] = 0.01,
    near: Annotated[float, "distance from the best constant prediction, as a share"] = 0.03,
) -> Iterator[Verdict]:
    """A loss term is outweighed by another one, and the model learns nothing from it.

    ## What it does
    Compares the gradients of the loss terms at the point where they meet in the model. It reports a
    term with almost none of the gradient on a typical step if its own loss ends no lower than that
    of the best constant prediction. Terms inside a single loss function are not separated.

    ## Why it matters
    The optimizer minimises the sum. A term with a hundredth of the gradient of another does not
    change the direction of the steps, so its task is not trained at all, while the total loss falls
    as expected.

    ## Example
    ```python
    loss = boxes.square().sum() + F.cross_entropy(logits, y)    # bad
    loss = boxes.square().mean() + F.cross_entropy(logits, y)   # good
    ```

    ## What to do
    Reduce all terms in the same way, by a mean, and choose weights that give gradients of the same
    order of magnitude.

    ## When it is wrong
    The task of the term cannot be learned from these inputs. The term is adversarial by design,
    without its own optimizer.

    ## How to confirm
    - Train with the other terms multiplied by 0: if the term falls now, its weight was too small.
    """
    shares = {
        owner: series.values[np.isfinite(series.values)].astype(np.float64)
        for owner, series in facts.run[LOSS_TERM_GRADIENT].items()
    }
    shares = {owner: values for owner, values in shares.items() if len(values) >= min_readings}
    if len(shares) < 2 or facts.run.steps < min_steps:
        yield outweighed_term.not_examined("too few steps of a loss with several terms")
        return
    small = {owner: float(np.median(values)) for owner, values in shares.items()}
    smallest = min(small, key=small.__getitem__)
    found = False
    functions = Counter(owner.partition(" ")[0] for owner in shares)
    for owner, share in small.items():
        function = owner.partition(" ")[0]
        constant = _constant(facts, function)
        losses = readings(facts, LOSS_MEAN, function)
        if share > max_share or constant is None or len(losses) < min_readings:
            continue
        if functions[function] > 1:  # the mean is that of several terms
            continue
        end = float(np.median(losses[-max(len(losses) // 4, 1) :]))
        if end < (1 - near) * constant:
            continue
        found = True
        term = _Term(function, shares[owner], end, constant)
        excuse = outweighed_term.excused(facts, term)
        if excuse is not None:
            yield excuse
            continue
        series = facts.run[LOSS_TERM_GRADIENT][owner]
        yield outweighed_term.finding(
            term.says(facts),
            confidence=Confidence.LIKELY,
            onset=series.first,
            evidence=(
                Evidence(
                    LOSS_TERM_GRADIENT,
                    (series.first, series.last),
                    f"{percent(share)} on the median of {len(series)} sampled steps",
                    owner,
                ),
                Evidence(LOSS_MEAN, (series.first, series.last), f"{end:.3g} at the end", function),
            ),
            fix=f"multiply the term by about {min(0.5 / max(share, 1e-6), 1e6):.2g}, or reduce the"
            " others by a mean instead of a sum",
        )
    if not found:
        yield outweighed_term.clear(
            f"of {len(small)} terms {smallest} has the smallest share of the gradient,"
            f" {percent(small[smallest])}"
        )


def _constant(facts: Facts, function: str) -> float | None:
    """Return the loss of the best constant prediction for one term, or None if unknown."""
    if function in CROSS_ENTROPIES:
        return last(facts, TARGET_ENTROPY, function)
    deviation = last(facts, TARGET_STD, function) if function == "mse_loss" else None
    return None if deviation is None else deviation**2
