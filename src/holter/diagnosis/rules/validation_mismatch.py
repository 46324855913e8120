"""The validation loss never beats the best constant prediction although the training loss does."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.robust import midmean
from holter.diagnosis.facts.validation import (
    Curves,
    chance,
    enough_passes,
    fitted_accuracy,
    rises,
    smooth,
)
from holter.diagnosis.facts.validation_inputs import has_other_inputs
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import ACCURACY, LOSS, VAL_ACCURACY, VAL_LOSS, VAL_R2

_RENAMED = 0.7  # share of the targets that another numbering of the classes makes right


@rule(
    severity=Severity.WARNING,
    level=Level.DATA,
    needs=(LOSS, VAL_LOSS),
)
def validation_mismatch(
    facts: Facts,
    *,
    min_passes: Annotated[int, "validation passes needed"] = 3,
    learned: Annotated[float, "training loss over the best constant prediction"] = 0.8,
    beaten: Annotated[float, "validation loss over the best constant prediction"] = 0.95,
    max_scale: Annotated[float, "ratio of the two above which scales differ"] = 20.0,
    max_gain: Annotated[float, "validation accuracy above chance, of what is possible"] = 0.1,
    min_gain: Annotated[float, "training accuracy above chance, of what is possible"] = 0.3,
    min_kept: Annotated[float, "share of this gain that validation has if it is harmless"] = 0.3,
) -> Iterator[Verdict]:
    """The validation loss never beats the best constant prediction although the training loss does.

    ## What it does
    Compares both losses with the best constant prediction: the entropy of the labels, or the
    variance of the targets. It reports if training falls clearly below that level while no
    validation pass does and validation does not improve; a rising validation loss needs a smaller
    gap. The finding is likely if the validation accuracy is at chance or the inputs differ; it is
    left out if that accuracy keeps 30 % of what training gains over chance.

    ## Why it matters
    The model does not generalise at all. Overfitting is rarely the reason: the two sets are
    preprocessed differently, or the labels of one do not belong to their inputs. Do not base
    decisions on this validation.

    ## Example
    ```python
    valid_set = Images(valid_files, classes=set(names))              # bad
    valid_set = Images(valid_files, classes=train_set.classes)       # good
    ```

    ## What to do
    Pass one sample through both pipelines and compare what reaches the model: scaling, order of
    channels, tokenizer, order of classes. Look at ten validation samples with their labels. Check
    that shuffling moves inputs and labels together.

    ## When it is wrong
    Tasks without generalisation, such as random labels or noise. A validation loss with class
    weights or class proportions that differ from training has a different baseline.

    ## How to confirm
    - Validate on a part of the training set with the validation code: the loss must be close to the
      training loss.
    - Train for a few epochs on the validation set: if that fails too, its labels are wrong.
    """
    curves = enough_passes(facts, min_passes)
    if isinstance(curves, str):
        yield validation_mismatch.not_examined(curves)
        return
    constant = curves.constant
    if constant is None:
        yield validation_mismatch.not_examined(
            "the best constant prediction is unknown for this loss function"
        )
        return
    lowest = float(smooth(curves.validation).min())
    first, last = midmean(curves.validation[: curves.third]), curves.final_validation
    trained = curves.final_training
    fitted, odds = fitted_accuracy(facts, curves), chance(facts, curves.function)
    accuracy = _late_accuracy(curves)
    is_fitted = fitted is not None and odds is not None and fitted > odds + min_gain * (1 - odds)
    worsens = last > constant / beaten and rises(curves.validation)
    has_learned = curves.is_comparable and trained < (beaten if worsens else learned) * constant
    reference = f"the best constant prediction ({constant:.3g})"
    if lowest < beaten * constant:
        yield validation_mismatch.clear(
            f"the validation loss fell to {lowest:.3g}, below {reference}"
        )
        return
    if not is_fitted and not has_learned:
        yield validation_mismatch.clear(
            f"training ({trained:.3g}) is no better than {reference} either"
        )
        return
    explained = _explained(facts, curves)
    is_worse = explained is not None and explained <= 0
    if last < beaten * first and not is_worse:
        yield validation_mismatch.clear(
            f"the validation loss improves from {first:.3g} to {last:.3g}"
        )
        return
    at_chance = None
    if accuracy is not None and odds is not None:
        at_chance = accuracy < odds + max_gain * (1 - odds)
        is_lost = fitted is not None and accuracy - odds < min_kept * (fitted - odds)
        if not at_chance and not is_lost:
            yield validation_mismatch.harmless(
                f"the validation loss stays above {reference}, but its accuracy is {accuracy:.0%}"
                f" (most frequent class: {odds:.0%})"
            )
            return
    other_inputs = has_other_inputs(facts)
    if at_chance is None and not other_inputs and not is_worse and lowest > max_scale * constant:
        yield validation_mismatch.not_examined(
            f"the validation loss ({lowest:.3g}) and {reference} are on different scales"
        )
        return
    yield validation_mismatch.finding(
        f"the validation loss ({first:.3g} initially, {last:.3g} at the end) never falls below"
        f" {reference}; the training loss reaches {trained:.3g}",
        confidence=Confidence.LIKELY
        if other_inputs or is_worse or (at_chance and is_fitted)
        else Confidence.HINT,
        onset=int(curves.steps[0]),
        evidence=(
            *_renamed_evidence(facts, curves),
            Evidence(
                VAL_LOSS,
                curves.span,
                f"lowest of {len(curves)} passes: {lowest:.3g}",
                curves.owner,
            ),
            Evidence(LOSS, curves.span, f"{trained:.3g} at the end", curves.trained),
            *_accuracy_evidence(curves, accuracy, fitted, odds),
            *_explained_evidence(curves, explained),
        ),
        fix="pass one sample through both pipelines and compare the model inputs; then check that"
        " validation labels belong to their inputs",
    )


def _explained(facts: Facts, curves: Curves) -> float | None:
    """Return the largest share of the variance of validation targets that a pass explained."""
    if VAL_R2 not in facts.run or (series := facts.run[VAL_R2].get(curves.owner)) is None:
        return None
    return float(series.values.max()) if len(series) else None


def _explained_evidence(curves: Curves, explained: float | None) -> Iterator[Evidence]:
    if explained is not None and explained <= 0:
        says = f"{explained:.3g} at best: the mean of the validation targets is a better prediction"
        yield Evidence(VAL_R2, curves.span, says, curves.owner)


def _renamed_evidence(facts: Facts, curves: Curves) -> Iterator[Evidence]:
    """Say that classes have other numbers in validation, if another numbering makes it right."""
    measured = facts.measured_validation
    counts = None if isinstance(measured, str) else measured.last.classes
    if counts is None:
        return
    names: dict[int, int] = {}
    times = 0
    for confusion in sorted(counts.confusions, key=lambda one: -one.times):
        if confusion.target not in names and confusion.predicted not in names.values():
            names[confusion.target] = confusion.predicted
            times += confusion.times
    targets = sum(one.support for one in counts.each)
    if len(names) > 1 and times >= _RENAMED * targets > counts.right:
        shown = ", ".join(f"{one} as {other}" for one, other in sorted(names.items())[:4])
        says = (
            f"classes are numbered differently: {times} of {targets} targets are predicted"
            f" correctly with another numbering ({shown})"
        )
        yield Evidence(VAL_ACCURACY, curves.span, says, curves.owner)


def _late_accuracy(curves: Curves) -> float | None:
    recorded = curves.accuracy[np.isfinite(curves.accuracy)]
    return float(recorded[-max(len(recorded) // 3, 1) :].mean()) if len(recorded) else None


def _accuracy_evidence(
    curves: Curves, accuracy: float | None, fitted: float | None, odds: float | None
) -> Iterator[Evidence]:
    if accuracy is None or odds is None:
        return
    yield Evidence(
        VAL_ACCURACY,
        curves.span,
        f"{accuracy:.0%} at the end (most frequent class: {odds:.0%})",
        curves.owner,
    )
    if fitted is not None:
        yield Evidence(ACCURACY, curves.span, f"at least {fitted:.0%} in training", curves.function)
