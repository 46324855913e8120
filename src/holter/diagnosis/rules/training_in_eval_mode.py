"""The model trains in eval mode."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np
import numpy.typing as npt

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.stages import starts
from holter.diagnosis.facts.streaks import trailing
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import of
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import BACKWARD_CALLS, MODE_EVAL_FRACTION, MODE_TRAINING


@rule(severity=Severity.ERROR, level=Level.PROCEDURE, needs=(MODE_TRAINING,))
def training_in_eval_mode(
    facts: Facts, *, min_steps: Annotated[int, "last steps in eval mode"] = 5
) -> Iterator[Verdict]:
    """The model trains in eval mode.

    ## What it does
    Looks for models that are in eval mode on the last training steps, together with all their
    dropout and batch-norm modules in trained parts. A model that started in training mode and never
    returned to it is an error; one in eval mode from the first step on is a warning, and a hint if
    that step starts a new stage, such as fine-tuning with a new optimizer.

    ## Why it matters
    In eval mode dropout does nothing and batch norm uses its running statistics without updating
    them: regularisation is lost, and the statistics no longer match the weights. The training loss
    looks better than before, but the model may not be.

    ## Example
    ```python
    def validate(): model.eval(); ...  # bad
    def validate(): model.eval(); ...; model.train()  # good
    ```

    ## What to do
    Call `model.train()` at the top of every epoch and after every validation. `model.eval()` stays
    in effect until `model.train()` is called.

    ## When it is wrong
    Fine-tuning with frozen statistics and no dropout, by design. Adversarial training that creates
    its examples with a `backward()` in eval mode: the mode is read when the step's first
    `backward()` begins, so a finding on steps with several of them is a hint.

    ## How to confirm
    - Put `assert model.training` right before `loss.backward()` and run past the first validation.
    - Add `model.train()` at the top of the training loop and compare the validation loss.
    """
    for owner, training in facts.run[MODE_TRAINING].items():
        # The signal is absent where no model has dropout or batch norm.
        shares = (
            facts.run[MODE_EVAL_FRACTION].get(owner) if MODE_EVAL_FRACTION in facts.run else None
        )
        if shares is None or not len(shares):
            yield training_in_eval_mode.clear(
                f"no dropout or batch norm in trained parts{of(owner)}"
            )
            continue
        steps, of_training, of_share = np.intersect1d(
            training.steps, shares.steps, return_indices=True
        )
        if len(steps) < min_steps:
            yield training_in_eval_mode.not_examined(
                f"{len(steps)} of the {min_steps} steps needed{of(owner)}"
            )
            continue
        in_eval = (training.values[of_training] == 0) & (shares.values[of_share] == 1)
        count = trailing(in_eval)
        if count < min_steps:
            yield training_in_eval_mode.clear(
                f"training mode{of(owner)} on {int((~in_eval).sum())} of {len(steps)} steps"
            )
            continue
        throughout = count == len(steps)
        first, last = int(steps[-count]), int(steps[-1])
        calls = _backward_calls(facts, steps[-count:])
        calls_before = 1.0 if throughout else _backward_calls(facts, steps[:-count])
        several = calls > calls_before  # the first may have served another purpose
        staged = not throughout and _begins_a_stage(facts, int(steps[-count - 1]), first)
        confidence = Confidence.LIKELY if throughout else Confidence.CERTAIN
        yield training_in_eval_mode.finding(
            f"{owner or 'the model'} trains in eval mode from"
            f" {'the first step' if throughout else f'step {first}'} to step {last}: dropout is"
            " off and batch norm does not update",
            severity=Severity.WARNING if throughout or several or staged else Severity.ERROR,
            confidence=Confidence.HINT if several or staged else confidence,
            onset=first,
            evidence=(
                Evidence(
                    MODE_TRAINING,
                    (max(first - 20, 0), last),
                    f"eval mode on the last {count} of {len(steps)} steps"
                    + (f", with {calls:.0f} backward() each" if several else ""),
                    owner,
                ),
                Evidence(
                    MODE_EVAL_FRACTION,
                    (max(first - 20, 0), last),
                    "all dropout and batch-norm modules in trained parts",
                    owner,
                ),
            ),
            fix="call `model.train()` before training, unless dropout is off on purpose"
            if throughout or staged
            else "call `model.train()` at the top of each epoch: the validation before step"
            f" {first} left the model in eval mode",
        )


def _begins_a_stage(facts: Facts, last_in_training: int, first_in_eval: int) -> bool:
    """Whether a new optimizer takes over between two steps: the script may have chosen the mode."""
    return any(
        last_in_training <= start.step and start.after <= first_in_eval for start in starts(facts)
    )


def _backward_calls(facts: Facts, steps: npt.NDArray[np.int64]) -> float:
    """Median number of backward() calls on these steps; 1 if unknown."""
    if BACKWARD_CALLS not in facts.run:
        return 1.0
    calls = facts.run[BACKWARD_CALLS][""]
    values = calls.values[np.isin(calls.steps, steps)]
    return float(np.median(values)) if len(values) else 1.0
