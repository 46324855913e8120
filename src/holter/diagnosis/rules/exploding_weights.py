"""Weights grow by orders of magnitude."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import WEIGHT_NORM


@rule(
    severity=Severity.ERROR,
    level=Level.PROCEDURE,
    needs=(WEIGHT_NORM,),
)
def exploding_weights(facts: Facts, *, ratio: float = 30.0) -> Iterator[Verdict]:
    """Weights grow by orders of magnitude.

    ## What it does
    Compares the norm of each weight matrix at the end with what it was at first. It speaks where
    the usual one (the median) has grown over `ratio`-fold, and the loss went badly. Weights that
    were zero at first are left out.

    ## Why it matters
    Weights of a network that learns grow by a few times at most. Growth without end makes outputs
    larger and larger until they saturate or overflow.

    ## What to do
    If updates are huge as well, lower the learning rate: that finding leads then. Otherwise
    something outside the optimizer changes the weights: a decay with the wrong sign, an average or
    a rescaling that is applied at every step, a penalty that rewards large weights.

    ## When it is wrong
    Weights that begin almost at zero on purpose grow by any factor; in most networks they are few,
    and the median does not see them.

    ## How to confirm
    - Compare the weights before and after everything in the loop that writes to them.
    - Print `p.norm()` of a few layers every 10 steps: is the growth exponential?
    """
    found = facts.weight_growth
    if found is None:
        yield exploding_weights.not_examined("the norms of weights were not read often enough")
        return
    if found.usual < ratio:
        yield exploding_weights.clear(f"the usual weight norm is {found.usual:.2g} times the first")
        return
    result = facts.outcome
    if result is None:
        yield exploding_weights.not_examined(
            f"weights grew {found.usual:.2g}-fold, but whether the loss fell cannot be told"
        )
        return
    if not result.bad:
        yield exploding_weights.clear(f"weights grew {found.usual:.2g}-fold, but {result.says}")
        return
    yield exploding_weights.finding(
        f"weights explode: the usual norm grew {found.usual:.2g}-fold by step {found.steps[1]};"
        f" {result.says}",
        confidence=Confidence.LIKELY,
        onset=found.crossing(2.0),
        evidence=(
            Evidence(WEIGHT_NORM, found.steps, found.says(found.largest), found.largest),
            result.evidence,
        ),
        fix="look for code besides the optimizer that changes weights (a decay with the wrong"
        " sign, a rescaling at each step); else lower the learning rate",
    )
