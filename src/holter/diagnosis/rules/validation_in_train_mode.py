"""Validation runs in training mode."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import readings
from holter.diagnosis.facts.validation import no_validation
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import of
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    VAL_INPUT_FINGERPRINT,
    VAL_LOSS,
    VAL_MODE_TRAINING,
    VAL_TRAIN_FRACTION,
)

_MOST = 0.9  # share of the passes that have to agree
_ALL = 0.99  # share of the modules that counts as all of them


@rule(
    severity=Severity.WARNING,
    level=Level.PROCEDURE,
    needs=(VAL_TRAIN_FRACTION, VAL_LOSS),
)
def validation_in_train_mode(facts: Facts, *, min_passes: int = 2) -> Iterator[Verdict]:
    """Validation runs in training mode.

    ## What it does
    Looks at the dropout and batch-norm modules of a model while validation losses are computed. It
    speaks where some are in training mode on 9 of 10 passes, and on `min_passes` at least. Losses
    that are computed without gradients for another purpose are left out: those after nearly every
    step, those of the training batches themselves, and those of a model that is not the trained
    one, such as a moving average of it.

    ## Why it matters
    Dropout then silences units at random, and batch norm takes its statistics from the validation
    batch and folds them into its running ones: the loss depends on chance and on how the set is
    cut into batches, and validation changes the model that it measures.

    ## What to do
    Call `model.eval()` before validation and `model.train()` after it. `torch.no_grad()` does not
    do it: it is about gradients only.

    ## When it is wrong
    Monte-Carlo dropout, which keeps dropout on to see how unsure a model is, and batch statistics
    that are adapted at test time, by design: where only a part of the modules is in training mode,
    or where the model itself is in eval mode and its modules were put back by hand, the finding is
    a hint. Of a validation with a single batch nothing is said: whether the model
    itself was called, and with what, is seen from the second batch on.

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
        if count < max(_MOST * len(share), min_passes):
            yield validation_in_train_mode.clear(
                f"eval mode{of(owner)} on {len(share) - count} of {len(share)} validation passes"
            )
            continue
        given = (
            facts.run[VAL_INPUT_FINGERPRINT].get(owner)
            if VAL_INPUT_FINGERPRINT in facts.run
            else None
        )
        reason = no_validation(facts, share.steps)
        if given is None or not len(given):
            reason = f"{owner or 'the model'} itself was not seen to be called in validation"
        if given is None or reason is not None:
            yield validation_in_train_mode.not_examined(str(reason))
            continue
        typical = float(np.median(share.values[training]))
        which = "all" if typical >= _ALL else f"{typical:.0%} of"
        first, last = int(share.steps[training.argmax()]), share.last
        yield validation_in_train_mode.finding(
            f"{owner or 'the model'} is validated in training mode: {which} its dropout and"
            f" batch-norm modules, on {count} of {len(share)} passes since step {first}",
            confidence=Confidence.CERTAIN
            if typical >= _ALL and not _by_hand(facts, owner)
            else Confidence.HINT,
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
                    (given.first, given.last),
                    "the model was called, and with other batches than in training",
                    owner,
                ),
            ),
            fix="call model.eval() before validation and model.train() after it",
        )


def _by_hand(facts: Facts, model: str) -> bool:
    """Whether the model itself was in eval mode, and only modules of it were not."""
    own = readings(facts, VAL_MODE_TRAINING, model)
    return len(own) > 0 and float(np.median(own)) == 0
