"""Validation runs in training mode."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import readings
from holter.diagnosis.facts.prevalence import prevails
from holter.diagnosis.facts.validation import no_validation
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import of, percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    VAL_INPUT_FINGERPRINT,
    VAL_LOSS,
    VAL_MODE_TRAINING,
    VAL_TRAIN_FRACTION,
)

_ALL = 0.99  # share of the modules that counts as all of them


@rule(severity=Severity.WARNING, level=Level.PROCEDURE, needs=(VAL_TRAIN_FRACTION, VAL_LOSS))
def validation_in_train_mode(
    facts: Facts,
    *,
    min_passes: Annotated[int, "validation passes needed"] = 2,
    min_share: Annotated[float, "share of the passes in training mode"] = 0.9,
) -> Iterator[Verdict]:
    """Validation runs in training mode.

    ## What it does
    Looks at the dropout and batch-norm modules of a model while validation losses are computed.
    Losses computed without gradients for other purposes do not count: after nearly every step, on
    training batches, or of a different model. A copy of the model, such as a moving average, counts
    if it alone is evaluated.

    ## Why it matters
    Dropout drops units at random, and batch norm normalises by the validation batch and updates its
    running statistics: the validation loss is random and depends on the batch size, and validation
    changes the model it measures.

    ## Example
    ```python
    with torch.no_grad(): validate(model)  # bad
    model.eval(); validate(model); model.train()  # good
    ```

    ## What to do
    Call `model.eval()` before validation and `model.train()` after it. `torch.no_grad()` only turns
    gradients off.

    ## When it is wrong
    Monte-Carlo dropout, or batch statistics adapted at test time, by design: if only some modules
    are in training mode, or the model is in eval mode but its modules are not, the finding is a
    hint. A validation with a single batch is not judged.

    ## How to confirm
    - Put `assert not model.training` before the validation loop.
    - Validate twice in a row: in eval mode both losses are equal.
    """
    for owner, share in facts.run[VAL_TRAIN_FRACTION].items():
        if len(share) < min_passes:
            yield validation_in_train_mode.not_examined(
                f"{len(share)} of the {min_passes} validation passes needed{of(owner)}"
            )
            continue
        training = share.values > 0
        count = int(training.sum())
        if not prevails(training, min_steps=min_passes, min_share=min_share, recent=len(share)):
            yield validation_in_train_mode.clear(
                f"eval mode{of(owner)} on {len(share) - count} of {len(share)} validation passes"
            )
            continue
        inputs = (
            facts.run[VAL_INPUT_FINGERPRINT].get(owner)
            if VAL_INPUT_FINGERPRINT in facts.run
            else None
        )
        reason = no_validation(facts, share.steps)
        if inputs is None or not len(inputs):
            reason = f"{owner or 'the model'} was not called in validation"
        if inputs is None or reason is not None:
            yield validation_in_train_mode.not_examined(str(reason))
            continue
        typical = float(np.median(share.values[training]))
        which = "all" if typical >= _ALL else f"{percent(typical)} of"
        first, last = int(share.steps[training.argmax()]), share.last
        is_certain = typical >= _ALL and not _model_is_in_eval_mode(facts, owner)
        yield validation_in_train_mode.finding(
            f"{owner or 'the model'} is validated in training mode: {which} its dropout and"
            f" batch-norm modules, on {count} of {len(share)} passes since step {first}",
            confidence=Confidence.CERTAIN if is_certain else Confidence.HINT,
            onset=first,
            evidence=(
                Evidence(
                    VAL_TRAIN_FRACTION,
                    (share.first, last),
                    f"median {typical:.2f} over {len(share)} passes; 0 in eval mode",
                    owner,
                ),
                Evidence(
                    VAL_INPUT_FINGERPRINT,
                    (inputs.first, inputs.last),
                    "validation used batches that are not in training",
                    owner,
                ),
            ),
            fix="call `eval()` on the model that is evaluated, before validation, and"
            " `model.train()` on the one that is trained, after it",
        )


def _model_is_in_eval_mode(facts: Facts, model: str) -> bool:
    """Whether the model itself was in eval mode and only some of its modules were not."""
    modes = readings(facts, VAL_MODE_TRAINING, model)
    return len(modes) > 0 and float(np.median(modes)) == 0
