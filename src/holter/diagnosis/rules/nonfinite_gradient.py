"""A gradient became NaN or infinite, and the optimizer used it."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.nonfinite import nonfinite_owners, reading_at
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import of, some
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import GRAD_NONFINITE, GRAD_NORM, GRAD_TOTAL_NORM, LOSS


@rule(
    severity=Severity.ERROR,
    level=Level.NUMERICS,
    needs=(GRAD_TOTAL_NORM,),
    symptom=True,
)
def nonfinite_gradient(facts: Facts) -> Iterator[Verdict]:
    """A gradient became NaN or infinite, and the optimizer used it.

    ## What it does
    Looks for the first step whose total gradient norm is NaN or ±Inf, names the parameters whose
    gradients were bad, and tells whether the loss of that step was still finite: if so, the
    backward pass made the bad value. Steps that a GradScaler skipped are left out.

    ## Why it matters
    `optimizer.step()` writes the bad value into the weights, and every later output is NaN.
    Clipping does not help: `clip_grad_norm_` divides by the norm and spreads a NaN everywhere.

    ## What to do
    Where the loss is finite, look for an operation whose derivative is infinite where its value
    is not: `sqrt` and `norm` at 0, `x / x.norm()` of a zero vector, `pow` with an exponent under 1,
    `acos` at ±1, or `torch.where` with a bad value in the branch not taken. Put an epsilon inside,
    or replace the input before the operation. Where the loss is not finite, mend the loss first.

    ## When it is wrong
    A loop that clears bad gradients itself, between backward and the update, is not harmed by
    them; if the weights stay finite, `nonfinite-weights` is clear. A norm beyond the float32 range
    (3.4e38) reads as infinite though every element is finite; the evidence then says so, and such
    a gradient is a fault of its own.

    ## How to confirm
    - Run the same script under `torch.autograd.set_detect_anomaly(True)`: it names the operation
      whose backward made the NaN.
    - Call `backward()` on the batch of the step named with each term of the loss alone; the term
      with the NaN is the guilty one.
    """
    skipped = facts.skipped_steps
    for owner, norm in facts.run[GRAD_TOTAL_NORM].items():
        bad = ~np.isfinite(norm.values)
        excused = bad & np.isin(norm.steps, skipped)
        bad &= ~excused
        taken = len(norm) - int(excused.sum())
        if taken == 0:
            yield nonfinite_gradient.not_examined("no step with a gradient was taken")
            continue
        if 0 < len(norm) - taken < taken:  # where most steps are skipped, nothing is normal
            yield nonfinite_gradient.normal(
                f"GradScaler skipped {len(norm) - taken} of {len(norm)} steps, the last at step"
                f" {norm.steps[excused][-1]}, for non-finite gradients: so it finds its scale"
            )
        if not bad.any():
            yield nonfinite_gradient.clear(f"the gradient norms of all {taken} steps are finite")
            continue
        first, value = int(norm.steps[bad.argmax()]), float(norm.values[bad.argmax()])
        names = nonfinite_owners(facts, GRAD_NORM, first)
        loss = reading_at(facts, LOSS, owner, first)
        born_in_backward = loss is not None and np.isfinite(loss)
        window = (max(first - 20, 0), first)
        evidence = [
            Evidence(
                GRAD_TOTAL_NORM,
                window,
                f"{int(bad.sum())} of {taken} total norms are not finite, from step {first} on",
                owner,
            )
        ]
        if names:
            evidence.append(
                Evidence(GRAD_NORM, (first, first), _extent(facts, first, len(names)), names[0])
            )
        if loss is not None:
            evidence.append(Evidence(LOSS, window, f"loss is {loss:.4g} at step {first}", owner))
        where = f" in {some(names)}" if names else ""
        while_loss = "" if loss is None else f" while the loss is {loss:.4g}"
        yield nonfinite_gradient.finding(
            f"gradient{of(owner)} is {value} at step {first}{where}{while_loss}",
            confidence=Confidence.CERTAIN,
            onset=first,
            evidence=evidence,
            fix=f"between {names[-1]} and the loss, put an epsilon inside the sqrt, norm or"
            " division that can reach 0"
            if born_in_backward and names
            else f"find what made step {first} bad in backward (anomaly mode names it); resume"
            " from a checkpoint made before it",
        )


def _extent(facts: Facts, step: int, parameters: int) -> str:
    if GRAD_NONFINITE in facts.run:
        rows = facts.run[GRAD_NONFINITE].rows(step, step)
        elements = int(rows.values[rows.present].sum())
        if elements == 0:
            return f"{parameters} norms exceed float32 at step {step}; every element is finite"
        return f"{elements} bad elements in {parameters} parameters at step {step}"
    return f"{parameters} parameters have bad gradients at step {step}"
