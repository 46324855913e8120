"""A trainable weight became NaN or infinite."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.nonfinite import first_nonfinite, nonfinite_owners, reading_at
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import number, of, some
from holter.record import Series
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import GRAD_TOTAL_NORM, LOSS, WEIGHT_NORM, WEIGHT_TOTAL_NORM


@rule(
    severity=Severity.ERROR,
    level=Level.NUMERICS,
    needs=(WEIGHT_TOTAL_NORM,),
    symptom=True,
)
def nonfinite_weights(facts: Facts) -> Iterator[Verdict]:
    """A trainable weight became NaN or infinite.

    ## What it does
    Finds the first step after which the norm of a trainable weight is NaN or ±Inf, and names the
    parameters. If the loss and the gradients of that step are finite, the update itself produced
    the value.

    ## Why it matters
    A NaN in a weight is permanent: every later update keeps it. All checkpoints from that step on
    contain it, even if the loss is still finite because the weight is not used.

    ## Example
    ```python
    model.half(); optimizer = torch.optim.Adam(model.parameters())            # bad
    model.half(); optimizer = torch.optim.Adam(model.parameters(), eps=1e-4)  # good
    ```

    ## What to do
    If loss and gradients are finite, look at the update: an `eps` of 0 in Adam or RMSprop, or one
    that rounds to 0 in the dtype of the weights (the default 1e-8 does in float16), divides 0 by 0
    for every weight without gradient; a learning rate or weight decay can overflow the dtype. Keep
    the weights in float32 and use autocast. If the loss or the gradients are not finite, fix those
    first.

    ## When it is wrong
    Trainable weights that hold an infinity on purpose, such as a mask of -inf: freeze them with
    `requires_grad_(False)`. A norm beyond the float32 range reads as infinite although every
    element is finite; such weights are unusable anyway.

    ## How to confirm
    - `holter try replay RUN` repeats the last steps and names operation, line and sample.
    - Assert `all(p.isfinite().all() for p in model.parameters())` directly before and after
      `optimizer.step()`: it fails after the step named and not before it.
    """
    frozen = {parameter.name for parameter in facts.parameters if not parameter.trainable}
    for owner, norm in facts.run[WEIGHT_TOTAL_NORM].items():
        if not len(norm):
            continue
        bad = ~np.isfinite(norm.values)
        if not bad.any():
            yield nonfinite_weights.clear(
                f"the weights{of(owner)} are finite after all {len(norm)} steps;"
                f" final norm {norm.values[-1]:.3g}"
            )
            continue
        step = int(norm.steps[bad.argmax()])
        names = nonfinite_owners(facts, WEIGHT_NORM, step)
        if names and frozen.issuperset(names):  # which make the total norm useless
            yield nonfinite_weights.normal(
                f"{some(names)} is frozen and holds {norm.values[bad.argmax()]}: no update"
                " produced it"
            )
            first = first_nonfinite(facts, WEIGHT_NORM, except_for=frozen)
            if first is None:
                yield nonfinite_weights.clear("the norms of all trainable weights are finite")
                continue
            step = first
            names = tuple(
                name for name in nonfinite_owners(facts, WEIGHT_NORM, step) if name not in frozen
            )
        yield _finding(facts, owner, norm, step, names)


def _finding(facts: Facts, owner: str, norm: Series, step: int, names: tuple[str, ...]) -> Verdict:
    value = reading_at(facts, WEIGHT_NORM, names[0], step) if names else None
    if value is None:
        value = reading_at(facts, WEIGHT_TOTAL_NORM, owner, step)
    window = (max(step - 20, 0), step)
    shown = "not finite" if value is None else number(value)
    bad = norm.steps[~np.isfinite(norm.values)]
    says = f"{int((bad >= step).sum())} of {len(norm)} norms are not finite from step {step} on"
    evidence = [Evidence(WEIGHT_TOTAL_NORM, window, says, owner)]
    if names:
        says = f"{len(names)} parameters are not finite after step {step}"
        evidence.append(Evidence(WEIGHT_NORM, window, says, names[0]))
    update = _update(facts, owner, step)
    return nonfinite_weights.finding(
        f"{some(names) if names else f'the weight norm{of(owner)}'} became {shown} in step {step}"
        f"{update}",
        confidence=Confidence.CERTAIN,
        onset=step,
        evidence=evidence,
        fix="set `eps` to a value that is not 0 in the dtype of the weights (1e-4 for float16) and"
        f" lower the learning rate; resume from a checkpoint before step {step}"
        if update
        else f"run `holter try replay` for the operation that fails at step {step}; resume from a"
        " checkpoint before it",
    )


def _update(facts: Facts, owner: str, step: int) -> str:
    """Blame the update if the loss and the gradients of that step are finite, else say nothing."""
    gradient = reading_at(facts, GRAD_TOTAL_NORM, owner, step)
    loss = reading_at(facts, LOSS, owner, step)
    if gradient is None or not np.isfinite([gradient, loss or 0.0]).all():
        return ""
    and_loss = "" if loss is None else f" and loss {loss:.3g}"
    return f": the update produced it, from gradient norm {gradient:.3g}{and_loss}"
