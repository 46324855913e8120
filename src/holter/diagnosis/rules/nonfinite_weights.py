"""A weight became NaN or infinite."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.membership import latest
from holter.diagnosis.facts.nonfinite import nonfinite_owners, reading_at
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import of, some
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    GRAD_TOTAL_NORM,
    LOSS,
    PARAMETER_TRAINABLE,
    WEIGHT_NORM,
    WEIGHT_TOTAL_NORM,
)


@rule(
    severity=Severity.ERROR,
    level=Level.NUMERICS,
    needs=(WEIGHT_TOTAL_NORM,),
    symptom=True,
)
def nonfinite_weights(facts: Facts) -> Iterator[Verdict]:
    """A weight became NaN or infinite.

    ## What it does
    Looks for the first step after which the norm over an optimizer's weights is NaN or ±Inf,
    names the parameters, and tells whether the loss and the gradients of that step were finite:
    if so, the update itself made the bad value.

    ## Why it matters
    A NaN in a weight never leaves: each later update keeps it. Every checkpoint saved from that
    step on holds it too, even while the loss still looks well because the weight is not in use.

    ## What to do
    Where loss and gradients are finite, look at the update: an `eps` of 0 in Adam or RMSprop, or
    one that rounds to 0 in the dtype of the weights (the default 1e-8 does in float16), divides 0
    by 0 for every weight without gradient; a learning rate or weight decay can overflow the dtype.
    Keep the weights in float32 and use autocast. Where they are not finite, mend those first.

    ## When it is wrong
    Weights that hold an infinity on purpose, such as a mask of -inf stored as a parameter: frozen
    ones are told apart and reported as normal, trainable ones are not. A norm beyond the float32
    range reads as infinite though every element is finite; such weights are a fault of their own.

    ## How to confirm
    - Assert `all(p.isfinite().all() for p in model.parameters())` directly before and after
      `optimizer.step()`: it fails after the step named and not before it.
    - Repeat the run with the weights in float32 and the optimizer's default `eps`.
    """
    trainable = latest(facts, PARAMETER_TRAINABLE)
    for owner, norm in facts.run[WEIGHT_TOTAL_NORM].items():
        if not len(norm):
            continue
        bad = ~np.isfinite(norm.values)
        if not bad.any():
            yield nonfinite_weights.clear(
                f"weights{of(owner)} are finite after all {len(norm)} steps;"
                f" norm {norm.values[-1]:.4g} at the last"
            )
            continue
        first, value = int(norm.steps[bad.argmax()]), float(norm.values[bad.argmax()])
        names = nonfinite_owners(facts, WEIGHT_NORM, first)
        if names and not any(trainable.get(name, (1, 0))[0] for name in names):
            yield nonfinite_weights.normal(
                f"{some(names)}, frozen, held {value} at step {first}: no update made it"
            )
            yield nonfinite_weights.not_examined(f"{some(names)} hides the other weights")
            continue
        made_by = _maker(facts, owner, first)
        window = (max(first - 20, 0), first)
        says = f"{int(bad.sum())} of {len(norm)} norms are not finite, from step {first} on"
        evidence = [Evidence(WEIGHT_TOTAL_NORM, window, says, owner)]
        if names:
            says = f"{len(names)} parameters are not finite after step {first}"
            evidence.append(Evidence(WEIGHT_NORM, window, says, names[0]))
        yield nonfinite_weights.finding(
            f"{some(names) if names else f'weight norm{of(owner)}'} became {value} in step {first}"
            f"{made_by}",
            confidence=Confidence.CERTAIN,
            onset=first,
            evidence=evidence,
            fix="give the optimizer an eps that is not 0 in the dtype of the weights and a learning"
            f" rate that cannot overflow it; resume from before step {first}"
            if made_by
            else f"find what made step {first} bad; resume from a checkpoint made before it",
        )


def _maker(facts: Facts, owner: str, step: int) -> str:
    """A clause that blames the update, where the loss and the gradients are known to be finite."""
    gradient = reading_at(facts, GRAD_TOTAL_NORM, owner, step)
    loss = reading_at(facts, LOSS, owner, step)
    if gradient is None or not np.isfinite([gradient, loss or 0.0]).all():
        return ""
    and_loss = "" if loss is None else f" and a finite loss ({loss:.4g})"
    return f", from a finite gradient (norm {gradient:.4g}){and_loss}: the update made it"
