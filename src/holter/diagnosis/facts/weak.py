"""A training that learned only a part: what counts as such, and which changes tell why."""

import math
from typing import TYPE_CHECKING

from holter.record.trials import TrialKind, TrialName, parts

if TYPE_CHECKING:
    from holter.diagnosis.facts.outcome import Outcome

_LEFT = 0.05  # share of the best constant prediction that a training leaves which learned all
_LEFT_OF_START = 0.5  # the same share of the initial loss, where no constant prediction is known
_RIGHT = 0.97  # accuracy that leaves nothing to learn
_LEARNING = ("learned", "still falling")  # outcomes
_FAR = 0.5  # share of a loss below which another is far lower
_MEMORISED = 0.25  # the same for another model in training, which may memorise more
_NEARLY = 1.2  # times that share for one of several repeats
_CLEARLY = 0.8  # share of the best constant prediction below which that is much

# Settings that move every training: they tell what tuning gives, and are no cause.
_FACTORS = ("0.1", "3", "10")
TUNED = (
    *(str(TrialName(TrialKind.LEARNING_RATE, factor)) for factor in _FACTORS),
    str(TrialName(TrialKind.REFERENCE_OPTIMIZER)),
)
# A sound training without them ends lower in training too: only validation tells.
_REGULARISERS = frozenset(
    (TrialKind.DROPOUT_OFF, TrialKind.NO_WEIGHT_DECAY, TrialKind.AUGMENTATION_OFF)
)
# What a sound training may do on purpose, what changes the task, and what only tunes.
_UNTOLD = frozenset(
    (
        *(TrialKind.ALL_TRAINABLE, TrialKind.CLASS_WEIGHTS, TrialKind.LEARNABLE_LABELS),
        *(TrialKind.LEARNING_RATE, TrialKind.WARM_UP, TrialKind.CLIP_OUTLIERS),
        *(TrialKind.REFERENCE_OPTIMIZER, TrialKind.PLAIN_LOOP, TrialKind.MEAN_LOSS),
        *(TrialKind.STANDARDISED_TARGETS, TrialKind.LAST_ACTIVATION_OFF),
        *(TrialKind.UNWEIGHTED_LOSS, TrialKind.TERM_OFF, TrialKind.CUTS_OFF),
        TrialKind.LABELS_SHUFFLED,
    )
)


def is_weak(outcome: "Outcome") -> bool:
    """Whether a training learned, but left much of its loss and of its accuracy."""
    if str(outcome.state) not in _LEARNING or outcome.first is None or outcome.last is None:
        return False
    accuracies = [a for a in (outcome.accuracy, outcome.validation_accuracy) if a is not None]
    if accuracies and min(accuracies) >= _RIGHT:
        return False
    level = max(outcome.last, outcome.validation or -math.inf)
    if outcome.constant is not None and outcome.constant > 0:
        return level > _LEFT * outcome.constant
    return level > _LEFT_OF_START * outcome.first > 0


def tells(trial: str, *, by_validation: bool) -> bool:
    """Whether a weak training that ends far lower under a change has the cause it implies."""
    kinds = {name.kind for name in parts(trial)}
    return not kinds & _UNTOLD and (by_validation or not kinds & _REGULARISERS)


def share_of(trial: str, *, by_validation: bool, nearly: bool = False) -> float:
    """Return the share of the loss at which a trial has to end to be far lower."""
    other_model = any(name.kind is TrialKind.REFERENCE_MODEL for name in parts(trial))
    share = _MEMORISED if other_model and not by_validation else _FAR
    return _NEARLY * share if nearly else share


def is_far_below(level: float, other: float, constant: float | None, share: float) -> bool:
    """Whether a loss is at most a share of another, or another learned at most that share."""
    if not math.isfinite(level):
        return False
    if not math.isfinite(other) or 0 < level <= share * other:
        return True
    if constant is None or level > _CLEARLY * constant:
        return False
    return share * (constant - level) >= constant - other
