"""Passes over data without training, and which of them is the validation."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holter.diagnosis.facts.baseline import trained_functions
from holter.record import Series
from holter.record.evaluations import parts_of
from holter.record.events import EvaluationSeen
from holter.record.signals import VAL_LOSS

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

_FEWEST = 3  # passes of a validation that is repeated
SPARSE = 3  # training steps per pass: losses without gradients at more steps may be anything


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The losses of one loss function on one data set, evaluated during training."""

    owner: str  # of the readings
    function: str  # empty if the script logged the losses
    data: str
    split: str  # train, validation or test, if the script names it
    losses: Series


def evaluations(facts: "Facts") -> list[Evaluation]:
    """Return all losses that were computed without a backward pass, or logged as validation."""
    if VAL_LOSS not in facts.run:
        return []
    splits = splits_of(facts)
    passes = []
    for owner, losses in facts.run[VAL_LOSS].items():
        function, data = parts_of(owner)
        if len(losses):
            passes.append(Evaluation(owner, function, data, splits.get(data, ""), losses))
    return passes


def validation_of(facts: "Facts") -> Evaluation | str:
    """Return the pass that is the validation, or why none is."""
    passes = evaluations(facts)
    if not passes:
        return "no validation loss was read"
    for evaluation in passes:
        if not evaluation.owner:
            return evaluation
    functions = trained_functions(facts)
    passes = [candidate for candidate in passes if not functions or candidate.function in functions]
    if not passes:
        return "validation and training use different loss functions"
    held_out = [candidate for candidate in passes if candidate.split != "train"]
    if not held_out:
        return "only the training data are evaluated"
    if len({candidate.function for candidate in held_out}) > 1:
        return "validation uses several loss functions"
    return _told_apart(facts, held_out)


def _told_apart(facts: "Facts", passes: list[Evaluation]) -> Evaluation | str:
    """Return the validation among passes over several data, by frequency and by name."""
    named = [candidate for candidate in passes if candidate.split == "validation"]
    untested = [candidate for candidate in passes if candidate.split != "test"]
    candidates = named or untested or passes
    rare = [
        candidate
        for candidate in candidates
        if len(candidate.losses) >= _FEWEST and len(candidate.losses) * SPARSE <= facts.run.steps
    ]
    candidates = rare or candidates  # what is computed at every step is a metric of training
    most = max(len(candidate.losses) for candidate in candidates)
    longest = [candidate for candidate in candidates if len(candidate.losses) == most]
    if len(longest) == 1:
        return longest[0]
    names = ", ".join(candidate.data or "unnamed data" for candidate in longest)
    return (
        f"{len(longest)} data sets are evaluated ({names}); it is unknown which one is the"
        " validation set"
    )


def splits_of(facts: "Facts") -> dict[str, str]:
    """Return the split of each evaluated data set by its name."""
    seen = {event.what.name: event.what for event in facts.run.events_of(EvaluationSeen)}
    return {name: _split(data, seen) for name, data in seen.items()}


def _split(data: EvaluationSeen, seen: dict[str, EvaluationSeen]) -> str:
    if data.trained_on:
        return "train"
    # A variable that has one value only may say what the whole script does.
    told = not data.by_value or any(
        other.by_value and other.where == data.where and other.split != data.split
        for other in seen.values()
    )
    return data.split if told else ""
