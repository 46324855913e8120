"""How a run went as a whole: its training loss, its validation, an exception that ended it."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from holter.diagnosis.facts.baseline import most_frequent, readings
from holter.diagnosis.facts.chance import Standing, validation_at_chance
from holter.diagnosis.facts.figures import learned_metric
from holter.diagnosis.facts.outcome import Outcome, OutcomeState
from holter.diagnosis.facts.validation import Curves
from holter.record import Run
from holter.record.events import ExceptionRaised
from holter.record.signals import ACCURACY, LOSS, VAL_LOSS

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

_PASSES = 4  # validation passes that tell whether anything carries over
_ONE_CLASS = 0.995  # share of a class from which on accuracies tell nothing
_CLEARLY = 0.02  # share below the best constant prediction that tells without accuracies
_MORE = 0.1  # of the way from chance to always right, or of the best constant prediction
_LEAST = 4  # accuracies that make a level


def run_outcome(facts: "Facts") -> Outcome:
    """Return how the run went; `says` has the numbers at the end that make it plain.

    A training that learned has failed all the same if no validation was ever better than the best
    constant prediction. Noisy or mixed labels keep a loss near that prediction: where accuracies,
    validation or a metric that the script shows tell more, the training has not stalled.
    """
    outcome = _with_numbers(facts, facts.training_outcome)
    raised = exception_line(facts.run)
    if raised is not None:
        return replace(outcome, state=OutcomeState.BROKE, onset=raised[0], says=raised[1])
    if outcome.state in (OutcomeState.LEARNED, OutcomeState.STALLED) and _carries_nothing(facts):
        outcome = replace(outcome, state=OutcomeState.MEMORISED)
    if outcome.state is OutcomeState.STALLED and _learned_more(facts, outcome):
        outcome = replace(outcome, state=OutcomeState.LEARNED)
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
    """Return whether accuracies, validation or metrics tell more than the training loss."""
    chance, baseline = outcome.chance_accuracy, facts.baseline
    gains = [
        0.0 if accuracy is None or chance is None else (accuracy - chance) / (1 - chance)
        for accuracy in (outcome.accuracy, outcome.validation_accuracy)
    ]
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


def _curves(facts: "Facts") -> Curves | None:
    if VAL_LOSS not in facts.run or LOSS not in facts.run or isinstance(facts.validation, str):
        return None
    return facts.validation
