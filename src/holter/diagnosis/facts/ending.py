"""How a run went as a whole: its training loss, its validation, an exception that ended it."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from holter.diagnosis.facts.baseline import most_frequent, readings
from holter.diagnosis.facts.chance import Standing, validation_at_chance
from holter.diagnosis.facts.figures import learned_metric
from holter.diagnosis.facts.outcome import Outcome, OutcomeState
from holter.diagnosis.facts.predictions import has_like_classes
from holter.diagnosis.facts.validation import Curves
from holter.record import Run
from holter.record.events import ExceptionRaised
from holter.record.signals import ACCURACY, LOSS, TARGET_ENTROPY, VAL_LOSS, VAL_R2

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

_PASSES = 4  # validation passes that tell whether anything carries over
_ONE_CLASS = 0.995  # share of a class from which on accuracies tell nothing
_CLEARLY = 0.02  # share below the best constant prediction that tells without accuracies
_MORE = 0.1  # of the way from chance to always right, or of the best constant prediction
_FAR_MORE = 0.3  # the same of accuracies where the loss is no better than that prediction
_LEAST = 4  # accuracies that make a level
_ABOVE = 1.1  # validation loss over the best constant prediction that no other data explain
_SCALE = 20.0  # the same above which the losses are in other units
_FITTED = 0.5  # training loss over the best constant prediction


def run_outcome(facts: "Facts") -> Outcome:
    """Return how the run went; `says` has the numbers at the end that make it plain.

    A training that learned has failed nevertheless if no validation was ever better than the best
    constant prediction, and overfits if the validation ends above that. Noisy or mixed labels keep
    a loss near that prediction: where accuracies, validation or a metric that the script shows tell
    more, the training has not stalled. Nor has it diverged if the loss may rise because the task
    became harder, and such a metric stays good.
    """
    outcome = _with_numbers(facts, facts.training_outcome)
    raised = exception_line(facts.run)
    if raised is not None:
        return replace(outcome, state=OutcomeState.BROKE, onset=raised[0], says=raised[1])
    if outcome.state in (OutcomeState.LEARNED, OutcomeState.STALLED) and _carries_nothing(facts):
        outcome = replace(outcome, state=OutcomeState.MEMORISED)
    if outcome.state is OutcomeState.LEARNED and _ends_above_constant(facts):
        outcome = replace(outcome, state=OutcomeState.OVERFITS)
    if outcome.state is OutcomeState.STALLED and _learned_more(facts, outcome):
        outcome = replace(outcome, state=OutcomeState.LEARNED)
    shown = learned_metric(facts.run)
    if outcome.state is OutcomeState.DIVERGED and not outcome.sure and shown is not None:
        course = (
            f"{outcome.says}, while `{shown.name}` went {shown.values[0]:.3g} → {shown.last:.3g}"
        )
        outcome = replace(outcome, state=OutcomeState.LEARNED, says=course)
    return replace(outcome, says=_says(facts, outcome))


def exception_line(run: Run) -> tuple[int, str] | None:
    """Return the step and the first line of the exception that ended the training, or None."""
    raised = run.events_of(ExceptionRaised)
    if run.meta.status != "failed" or not raised:
        return None
    error = raised[-1].what
    details = f": {first_line(error.message)}" if error.message else ""
    return raised[-1].step, f"{error.type or 'an exception'}{details}"


def first_line(text: str, *, limit: int = 200) -> str:
    """Return the first line that is not empty, shortened to `limit` characters."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= limit else line[: limit - 3].rstrip() + "..."


def _with_numbers(facts: "Facts", outcome: Outcome) -> Outcome:
    """Add what is known of accuracies and of the validation at the end."""
    function = facts.loss_function
    accuracy = chance = None
    if function is not None:
        accuracies = readings(facts, ACCURACY, function, facts.stage_start)
        chance = most_frequent(facts, function)
        if len(accuracies) >= _LEAST and chance is not None and chance < _ONE_CLASS:
            accuracy = float(accuracies[-max(len(accuracies) // 10, _LEAST) :].mean())
    evaluation = facts.evaluation
    validation = None
    if not isinstance(evaluation, str):
        finite = evaluation.losses.values[np.isfinite(evaluation.losses.values)]
        validation = float(finite[-1]) if len(finite) else None
    curves = _curves(facts)
    right = np.empty(0) if curves is None else curves.accuracy[np.isfinite(curves.accuracy)]
    return replace(
        outcome,
        accuracy=accuracy,
        chance_accuracy=chance if accuracy is not None else None,
        validation=validation,
        validation_accuracy=float(right[-1]) if len(right) and chance is not None else None,
    )


def _says(facts: "Facts", outcome: Outcome) -> str:
    """Return the measurement with validation, and with accuracies unless the loss alone tells."""
    says = outcome.says
    if outcome.state is OutcomeState.UNKNOWN:
        return f"{_loss(facts)}{says}"
    tells = not outcome.bad and (outcome.gain is None or outcome.gain > _CLEARLY)
    if not tells and outcome.accuracy is not None and outcome.chance_accuracy is not None:
        says += f", accuracy {_percent(outcome.accuracy)}"
        says += f" (chance {_percent(outcome.chance_accuracy)})"
    if outcome.validation is not None:
        says += f", validation {outcome.validation:.3g}"
        if not tells and outcome.validation_accuracy is not None:
            says += f" with accuracy {_percent(outcome.validation_accuracy)}"
    return says


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _loss(facts: "Facts") -> str:
    """Return the first and the last loss of a run that has one loss."""
    if LOSS not in facts.run or len(facts.run[LOSS]) != 1:
        return ""
    (series,) = facts.run[LOSS].values()
    values = series.values[np.isfinite(series.values)]
    if not len(values):
        return ""
    return f"loss {values[0]:.3g} → {values[-1]:.3g}; "


def _learned_more(facts: "Facts", outcome: Outcome) -> bool:
    """Return whether accuracies, validation or metrics tell more than the training loss.

    A few first steps raise the accuracy above chance; a loss that still stays above the best
    constant prediction has learned no more than that.
    """
    chance, baseline = outcome.chance_accuracy, facts.baseline
    gains = [
        0.0 if accuracy is None or chance is None else (accuracy - chance) / (1 - chance)
        for accuracy in (outcome.accuracy, outcome.validation_accuracy)
    ]
    if outcome.gain is not None and outcome.gain <= 0 and max(gains) < _FAR_MORE:
        gains = [0.0]
    if outcome.validation is not None and not isinstance(baseline, str):
        curves = _curves(facts)
        if curves is not None and curves.is_comparable:
            gains.append(1 - outcome.validation / baseline.level)
    return max(gains) > _MORE or learned_metric(facts.run) is not None


def _carries_nothing(facts: "Facts") -> bool:
    """Return whether no validation was better than the best constant prediction."""
    baseline, chance, curves = facts.baseline, facts.chance, _curves(facts)
    if isinstance(baseline, str) or isinstance(chance, str) or curves is None:
        return False
    if len(curves) < _PASSES or chance.standing is not Standing.BETTER:
        return False
    return validation_at_chance(facts, baseline) is not None


def _ends_above_constant(facts: "Facts") -> bool:
    """Return whether the last validations are worse than the best constant prediction.

    That is the one of the validation targets where their classes were counted. Where their variance
    is known, the share of it that is explained tells.
    """
    baseline, curves = facts.baseline, _curves(facts)
    if isinstance(baseline, str) or curves is None or not curves.is_comparable:
        return False
    constant = curves.constant
    if constant is None or curves.final_training > _FITTED * constant:
        return False
    if baseline.signal is TARGET_ENTROPY:
        entropy = _validation_entropy(facts)
        prior = most_frequent(facts, baseline.function)
        if entropy is not None:
            constant = max(constant, entropy)
        elif prior is None or not has_like_classes(facts, baseline, prior):
            return False
    lowest = float(curves.validation[-curves.third :].min())
    if not _ABOVE * constant < lowest < _SCALE * constant:
        return False
    explained = facts.run[VAL_R2].get(curves.owner) if VAL_R2 in facts.run else None
    return explained is None or not len(explained) or float(explained.values[-1]) <= 0


def _validation_entropy(facts: "Facts") -> float | None:
    """Return the entropy of the classes of the validation targets, if they were counted."""
    measured = facts.measured_validation
    counts = None if isinstance(measured, str) else measured.last.classes
    if counts is None or len(counts.each) < counts.present:
        return None
    support = np.array([each.support for each in counts.each if each.support], float)
    shares = support / support.sum()
    return float(-(shares * np.log(shares)).sum())


def _curves(facts: "Facts") -> Curves | None:
    if VAL_LOSS not in facts.run or LOSS not in facts.run or isinstance(facts.validation, str):
        return None
    return facts.validation
