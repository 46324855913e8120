"""A gradient became NaN or infinite, and the optimizer used it."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.nonfinite import nonfinite_owners, reading_at
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import number, of, some
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
    Finds the first step whose total gradient norm is NaN or ±Inf and that the optimizer did not
    skip, and names the parameters. If the loss of that step is finite, the backward pass produced
    the value.

    ## Why it matters
    `optimizer.step()` writes the bad value into the weights, and every later output is NaN.
    Clipping does not help: `clip_grad_norm_` divides by the norm and spreads a NaN everywhere.

    ## Example
    ```python
    distance = (a - b).pow(2).sum(1).sqrt()             # bad
    distance = (a - b).pow(2).sum(1).add(1e-12).sqrt()  # good
    ```

    ## What to do
    If the loss is finite, look for an operation whose derivative is infinite where its value is
    not: `sqrt` and `norm` at 0, `x / x.norm()` of a zero vector, `pow` with an exponent under 1,
    `acos` at ±1, or `torch.where` with a bad value in the branch not taken. Put an epsilon inside,
    or replace the input before the operation. If the loss is not finite, fix the loss first.

    ## When it is wrong
    A norm beyond the float32 range (3.4e38) reads as infinite although every element is finite; the
    evidence then says so. If the optimizer itself ignores non-finite gradients, there is no damage:
    the weights stay finite and `nonfinite-weights` is clear.

    ## How to confirm
    - `holter try replay RUN` repeats the last steps and names operation, line and sample.
    - Run the same script under `torch.autograd.set_detect_anomaly(True)`: it names the operation
      whose backward produced the NaN.
    """
    for owner, norm in facts.run[GRAD_TOTAL_NORM].items():
        skipped = np.isin(norm.steps, facts.skipped_steps)
        taken = int((~skipped).sum())
        if taken == 0:
            yield nonfinite_gradient.not_examined(
                f"{facts.skipped_by} skipped every step with a gradient"
            )
            continue
        bad = ~np.isfinite(norm.values) & ~skipped
        if not bad.any():
            others = f"; {facts.skipped_by} skipped {len(norm) - taken} others"
            note = others if skipped.any() else ""
            yield nonfinite_gradient.clear(
                f"the gradient norm is finite at all {taken} steps taken{note}"
            )
            continue
        step, value = int(norm.steps[bad.argmax()]), float(norm.values[bad.argmax()])
        names = nonfinite_owners(facts, GRAD_NORM, step)
        loss = reading_at(facts, LOSS, owner, step)
        window = (max(step - 20, 0), step)
        evidence = [
            Evidence(
                GRAD_TOTAL_NORM,
                window,
                f"{int(bad.sum())} of {taken} total norms are not finite, the first at step {step}",
                owner,
            )
        ]
        if names:
            evidence.append(
                Evidence(GRAD_NORM, (step, step), _extent(facts, step, len(names)), names[0])
            )
        if loss is not None:
            evidence.append(
                Evidence(LOSS, window, f"the loss is {number(loss)} at step {step}", owner)
            )
        where = f" in {some(names)}" if names else ""
        while_loss = "" if loss is None else f"; the loss is {number(loss)}"
        yield nonfinite_gradient.finding(
            f"the gradient{of(owner)} is {number(value)} at step {step}{where}{while_loss}",
            confidence=Confidence.CERTAIN,
            onset=step,
            evidence=evidence,
            fix=f"between {names[-1]} and the loss, add an epsilon inside the `sqrt`, `norm` or"
            " division that can reach 0: `(x + 1e-12).sqrt()`"
            if names and loss is not None and np.isfinite(loss)
            else f"run `holter try replay` for the operation that fails at step {step}; resume from"
            " a checkpoint before it",
        )


def _extent(facts: Facts, step: int, parameters: int) -> str:
    """Describe how many elements are not finite, as far as they were counted."""
    if GRAD_NONFINITE in facts.run:
        rows = facts.run[GRAD_NONFINITE].rows(step, step)
        elements = int(rows.values[rows.present].sum())
        if elements == 0:
            return f"every element is finite at step {step}; {parameters} norms exceed float32"
        return f"{elements} elements in {parameters} parameters are not finite at step {step}"
    return f"{parameters} parameters have non-finite gradients at step {step}"
