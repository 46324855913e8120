"""Some weights get gradients of exactly zero, step after step."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.layers import Sample
from holter.diagnosis.facts.membership import covering
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import some
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import GRAD_NORM

_TRAILING = 0.5  # share of the run, up to its end, in which they have to be zero


@rule(
    severity=Severity.WARNING,
    level=Level.ARCHITECTURE,
    needs=(GRAD_NORM,),
)
def dead_gradients(facts: Facts, *, min_steps: int = 20) -> Iterator[Verdict]:
    """Some weights get gradients of exactly zero, step after step.

    ## What it does
    Looks for weight matrices that an optimizer trains and whose gradient arrived and was exactly
    zero on every step that was read in the last half of the run, `min_steps` or more, while others
    got gradients that were not. It is likely where the loss went badly too, and else a hint.
    Vectors are left out, for biases often cancel; weights that get no gradient at all, and runs in
    which all are zero, have rules of their own.

    ## Why it matters
    Such weights are not trained, though they are in the optimizer and look alive: units behind a
    ReLU that never fires, a value that a clamp holds at its bound, a factor that is always zero.

    ## What to do
    Follow the output of the named layers forward until it stops to matter: a dead activation, a
    clamp, a mask, a product with zero.

    ## When it is wrong
    Losses multiplied by zero on purpose, so that all weights take part; experts or heads that
    this data never uses; weights that begin at zero behind others that do, within the first steps.

    ## How to confirm
    - Print the activations behind the named layer for one batch: are they constant?
    - Perturb one of the named weights and see whether the loss changes.
    """
    norms = facts.sample(GRAD_NORM, [each.name for each in facts.layers] or None)
    kept = ~np.isin(norms.steps, facts.skipped_steps)
    norms = Sample(norms.steps[kept], norms.owners, norms.values[kept]).between(1 - _TRAILING, 1)
    read = np.isfinite(norms.values)
    if len(norms) < min_steps:
        yield dead_gradients.not_examined(f"{len(norms)} of the {min_steps} steps needed")
        return
    zero = (read.sum(axis=0) >= min_steps) & ((norms.values == 0) | ~read).all(axis=0)
    alive = (facts.sample(GRAD_NORM).between(1 - _TRAILING, 1).values > 0).any()  # vectors, too
    if not zero.any() or not alive:
        which = "all" if alive else "none"
        yield dead_gradients.clear(
            f"{which} of {len(norms.owners)} weights got gradients that are not zero in the last"
            f" {len(norms)} steps that were read"
        )
        return
    dead = [norms.owners[column] for column in np.flatnonzero(zero)]
    others = [owner for owner in norms.owners if owner not in dead]
    result = facts.outcome
    bad = result is not None and result.bad
    first, last = int(norms.steps[0]), int(norms.steps[-1])
    yield dead_gradients.finding(
        f"{len(dead)} of {len(norms.owners)} weights get gradients of exactly zero on all"
        f" {len(norms)} steps read since step {first}: {some(covering(dead, others))}"
        + (f"; {result.says}" if result is not None and bad else ""),
        confidence=Confidence.LIKELY if bad else Confidence.HINT,
        onset=first,
        evidence=(
            Evidence(GRAD_NORM, (first, last), f"0 on all {len(norms)} steps", dead[0]),
            *((result.evidence,) if result is not None and bad else ()),
        ),
        fix="look at what follows the named layers: a dead activation, a clamp, a mask or a factor"
        " of zero holds their gradient back",
    )
