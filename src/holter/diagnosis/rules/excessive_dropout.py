"""Dropout drops so much that the training loss stays high."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import learned
from holter.diagnosis.facts.data_sets import was_asked_for, why_absent
from holter.diagnosis.facts.robust import midmean
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Finding, Level, Severity, Verdict
from holter.record.signals import EVAL_GAP_DROPPED, EVAL_GAP_LOSS, EVAL_GAP_START, LOSS, VAL_LOSS


@rule(
    severity=Severity.WARNING,
    level=Level.HYPERPARAMETER,
    needs=(LOSS,),
    preview=True,
)
def excessive_dropout(
    facts: Facts,
    *,
    min_share: Annotated[float, "share that is dropped"] = 0.7,
    sure_share: Annotated[float, "the same that makes the finding likely"] = 0.85,
    max_ratio: Annotated[float, "loss without dropout over the loss with it"] = 0.7,
    max_learned: Annotated[float, "share of the constant prediction's loss that is gone"] = 0.6,
    max_nothing: Annotated[float, "the same for a training that learns nothing"] = 0.1,
    min_left: Annotated[float, "the same that is left in eval mode"] = 0.1,
    min_validation: Annotated[float, "validation loss over training loss without effect"] = 0.8,
) -> Iterator[Verdict]:
    """Dropout drops so much that the training loss stays high.

    ## What it does
    Measures the loss of a training batch when the script has ended: in train mode, without dropout,
    and in eval mode. It reports dropout of at least 70 % if the loss is far lower without it,
    training has learned little, and validation is better than training; that is likely from 85 %
    on. So much dropout in a training that learns nothing is a hint.

    ## Why it matters
    Each step sees a small, random part of the features. The model is trained for what these have in
    common, and never uses most of its capacity.

    ## Example
    ```python
    nn.Dropout(0.9)   # bad
    nn.Dropout(0.1)   # good
    ```

    ## What to do
    Lower `p`: it is the share that is dropped. TensorFlow 1 took the share that is kept, so that
    its 0.9 is 0.1 here. From 0.1 to 0.5 is common.

    ## When it is wrong
    A model that has to work with most of its features missing. A data set so small that a weaker
    dropout overfits, if no validation loss is computed.

    ## How to confirm
    - Train again with the dropout halved: training and validation loss must both be lower.
    """
    run = facts.run
    if EVAL_GAP_LOSS not in run or EVAL_GAP_DROPPED not in run:
        yield excessive_dropout.not_examined(
            why_absent(run, EVAL_GAP_LOSS, "the loss without dropout was not measured")
        )
        return
    if was_asked_for(run):
        yield excessive_dropout.not_examined("a few steps do not tell what dropout leaves to learn")
        return
    means = {trial: float(each.values.mean()) for trial, each in run[EVAL_GAP_LOSS].items()}
    start = float(run[EVAL_GAP_START][""].values.mean())
    ((module, shares),) = run[EVAL_GAP_DROPPED].items()
    share = float(shares.values[-1])
    train, quiet = means["train"], max(means["train without dropout"], means["eval"])
    if share < min_share:
        yield excessive_dropout.clear(
            f"{module or 'the model'} drops {percent(share)}" if share else "nothing is dropped"
        )
        return
    if not np.isfinite([train, quiet, start]).all() or min(train, quiet, start) <= 0:
        yield excessive_dropout.not_examined("a loss is not finite, or negative")
        return
    measured = (
        f"the loss of the same batch is {train:.3g} with the dropout of {percent(share)}"
        f" ({module or 'in forward'}) and {means['eval']:.3g} in eval mode"
    )
    level = _level(facts, train / start)
    if quiet > max_ratio * train:
        if share < sure_share or not level.is_known or level.learned > max_nothing:
            yield excessive_dropout.clear(measured)
            return
        yield _finding(
            facts,
            f"nothing is learned with dropout of {percent(share)} ({module or 'in forward'}):"
            f" {level.says}",
            confidence=Confidence.HINT,
        )
        return
    if level.learned > max_learned:
        yield excessive_dropout.harmless(f"{measured}, but {level.says}")
        return
    if quiet / train * level.left < min_left:
        yield excessive_dropout.harmless(f"{measured}, which is low")
        return
    curves = facts.validation
    validated: tuple[Evidence, ...] = ()
    if not isinstance(curves, str) and curves.is_comparable:
        validation, training = curves.final_validation, curves.final_training
        if validation > min_validation * training:
            yield excessive_dropout.clear(
                f"validation ({validation:.3g}) is no better than training ({training:.3g}):"
                " a weaker dropout would overfit"
            )
            return
        says = f"{validation:.3g} at the end; {training:.3g} in training"
        validated = (Evidence(VAL_LOSS, curves.span, says, curves.owner),)
    yield _finding(
        facts,
        f"dropout of {percent(share)} leaves too little to learn from: {measured}; {level.says}",
        confidence=Confidence.LIKELY if share >= sure_share else Confidence.HINT,
        beside=validated,
    )


def _finding(
    facts: Facts, summary: str, *, confidence: Confidence, beside: tuple[Evidence, ...] = ()
) -> Finding:
    ((module, shares),) = facts.run[EVAL_GAP_DROPPED].items()
    losses, share = facts.run[EVAL_GAP_LOSS], float(shares.values[-1])
    window = 0, len(losses["train"]) - 1
    return excessive_dropout.finding(
        summary,
        confidence=confidence,
        onset=0,
        evidence=(
            Evidence(EVAL_GAP_DROPPED, (0, 0), percent(share), module),
            *(
                Evidence(EVAL_GAP_LOSS, window, f"{losses[mode].values.mean():.3g}", mode)
                for mode in ("train", "eval")
            ),
            *beside,
        ),
        fix=f"lower the dropout{f' of {module}' if module else ''}: `p` is the share that is"
        f" dropped, `p={share:.2g}` keeps {percent(1 - share)}; `p={max(1 - share, 0.1):.2g}` if"
        " the share to keep was meant",
    )


@dataclass(frozen=True, slots=True)
class _Level:
    """How much training has learned, in train mode."""

    learned: float  # by loss or by accuracy, of what is possible
    left: float  # of the loss of the best constant prediction
    says: str
    is_known: bool = True  # whether the best constant prediction is


def _level(facts: Facts, left_of_start: float) -> _Level:
    baseline, curve = facts.baseline, facts.curve
    if isinstance(baseline, str) or isinstance(curve, str) or not len(curve):
        fallen = 1 - left_of_start
        says = f"{percent(max(fallen, 0))} below the initial loss"
        return _Level(fallen, left_of_start, says, is_known=False)
    reached = learned(facts, baseline, midmean(curve.part(0.8)))
    return _Level(reached.most, 1 - reached.by_loss, f"in training, {reached}")
