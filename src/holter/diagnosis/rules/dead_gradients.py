"""Some weights get gradients of exactly zero at every step."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.layers import Sample
from holter.diagnosis.facts.membership import covering
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import some
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import GRAD_NORM


@rule(
    severity=Severity.WARNING,
    level=Level.ARCHITECTURE,
    needs=(GRAD_NORM,),
)
def dead_gradients(
    facts: Facts,
    *,
    min_steps: Annotated[int, "steps with a gradient of zero needed"] = 20,
    last_share: Annotated[float, "share of the run, up to its end, that is examined"] = 0.5,
) -> Iterator[Verdict]:
    """Some weights get gradients of exactly zero at every step.

    ## What it does
    Reports weight matrices in an optimizer whose gradient is exactly zero on every recorded step in
    the last part of the run while other parameters get gradients. It is likely if the training
    failed, and a hint otherwise. Vectors are left out, because gradients of biases often cancel.

    ## Why it matters
    These weights are in the optimizer but are not trained: they feed a ReLU that never fires, a
    clamp at its bound, or a factor that is always zero.

    ## Example
    ```python
    return head(torch.clamp(body(x), max=-10.0))   # bad
    return head(torch.clamp(body(x), max=10.0))    # good
    ```

    ## What to do
    Follow the output of the named layers forward until it has no effect: a dead activation, a
    clamp, a mask, a product with zero.

    ## When it is wrong
    Losses multiplied by zero by design, so that all parameters get a gradient; experts or heads
    that this data never uses; within the first steps, weights behind others that start at zero.

    ## How to confirm
    - Print the activations after the named layer for one batch: are they constant?
    - Perturb one of the named weights and check whether the loss changes.
    """
    norms = facts.sample(GRAD_NORM, [layer.name for layer in facts.layers] or None)
    kept = ~np.isin(norms.steps, facts.skipped_steps)
    norms = Sample(norms.steps[kept], norms.owners, norms.values[kept]).between(1 - last_share, 1)
    read = np.isfinite(norms.values)
    if len(norms) < min_steps:
        yield dead_gradients.not_examined(f"{len(norms)} of the {min_steps} steps needed")
        return
    zero = (read.sum(axis=0) >= min_steps) & ((norms.values == 0) | ~read).all(axis=0)
    alive = (facts.sample(GRAD_NORM).between(1 - last_share, 1).values > 0).any()  # vectors, too
    if not zero.any() or not alive:
        which = "all" if alive else "none"
        yield dead_gradients.clear(
            f"{which} of {len(norms.owners)} weights got nonzero gradients in the last"
            f" {len(norms)} recorded steps"
        )
        return
    dead = [norms.owners[column] for column in np.flatnonzero(zero)]
    others = [owner for owner in norms.owners if owner not in dead]
    outcome = facts.outcome
    bad = outcome is not None and outcome.bad
    first, last = int(norms.steps[0]), int(norms.steps[-1])
    yield dead_gradients.finding(
        f"{len(dead)} of {len(norms.owners)} weights get gradients of exactly zero on all"
        f" {len(norms)} recorded steps since step {first}: {some(covering(dead, others))}"
        + (f"; {outcome.says}" if outcome is not None and bad else ""),
        confidence=Confidence.LIKELY if bad else Confidence.HINT,
        onset=first,
        evidence=(
            Evidence(GRAD_NORM, (first, last), f"0 on all {len(norms)} steps", dead[0]),
            *((outcome.evidence,) if outcome is not None and bad else ()),
        ),
        fix="check what follows the named layers: a dead activation, a clamp, a mask or a factor"
        " of zero blocks their gradient",
    )
