"""The changes that are tried on a training that failed, by name and in the order of trial."""

from collections.abc import Iterable, Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.cure_causes import CURE_CAUSES, cause_of
from holter.lab.changes import TappedChange
from holter.lab.changes.activations import LAST_ACTIVATION_OFF
from holter.lab.changes.augmentation import AUGMENTATION_OFF
from holter.lab.changes.clipping import CLIP_OUTLIERS, CLIPPING_OFF
from holter.lab.changes.data import (
    CLASS_WEIGHTS,
    MEAN_LOSS,
    SHUFFLED_LOADER,
    STANDARDISED_INPUTS,
    STANDARDISED_TARGETS,
    UNWEIGHTED_LOSS,
)
from holter.lab.changes.dropout import DROPOUT_OFF
from holter.lab.changes.gradients import ACCUMULATION_DIVIDED, GRADIENTS_CLEARED
from holter.lab.changes.graph import CUTS_OFF, hidden_term, without_term
from holter.lab.changes.learning_rate import SCHEDULE_CONSTANT, rates_times, warm_up
from holter.lab.changes.membership import ALL_IN_OPTIMIZER, ALL_TRAINABLE
from holter.lab.changes.modes import EVAL_MODE, FROZEN_EVAL, TRAIN_MODE
from holter.lab.changes.optimizer import DEFAULT_EPSILON, DEFAULT_MOMENTUM, NO_WEIGHT_DECAY
from holter.lab.changes.passes import LOG_PROBABILITIES, LOGITS, TARGET_SHAPE
from holter.lab.changes.precision import AUTOCAST_OFF
from holter.lab.changes.reference import REFERENCE_MODEL
from holter.lab.changes.swaps import (
    LABELS_SHUFFLED,
    LEARNABLE_LABELS,
    PLAIN_LOOP,
    REFERENCE_OPTIMIZER,
    together,
)
from holter.lab.changes.weights import DEFAULT_INITIALISATION
from holter.record.findings import Finding
from holter.record.signals import BACKWARD_CALLS, CLIP_LIMIT, LR, VAL_TRAIN_FRACTION
from holter.record.trials import TrialKind, TrialName, parts

FACTORS = (0.1, 10.0, 0.01, 100.0)  # of the learning rate
TERMS = 4  # of a loss that are left out, one at a time
FURTHER = (1e3, 1e-3, 1e4)  # tried if another optimizer restores learning

_CHANGES = {
    change.id.kind: change
    for change in (
        *(ALL_IN_OPTIMIZER, GRADIENTS_CLEARED, TRAIN_MODE, EVAL_MODE, TARGET_SHAPE, LOGITS),
        *(LAST_ACTIVATION_OFF, LOG_PROBABILITIES, MEAN_LOSS, ACCUMULATION_DIVIDED, SHUFFLED_LOADER),
        *(STANDARDISED_INPUTS, STANDARDISED_TARGETS, SCHEDULE_CONSTANT, CLIPPING_OFF),
        *(NO_WEIGHT_DECAY, DROPOUT_OFF, AUTOCAST_OFF, DEFAULT_EPSILON, DEFAULT_MOMENTUM),
        *(ALL_TRAINABLE, CLIP_OUTLIERS, DEFAULT_INITIALISATION, CLASS_WEIGHTS, PLAIN_LOOP),
        *(REFERENCE_OPTIMIZER, REFERENCE_MODEL, LEARNABLE_LABELS, FROZEN_EVAL, UNWEIGHTED_LOSS),
        *(CUTS_OFF, AUGMENTATION_OFF, LABELS_SHUFFLED),
    )
}
# Changes that alter nothing in most trainings; whether they do is seen in the first steps.
_PROBED = (
    *(TrialKind.ALL_IN_OPTIMIZER, TrialKind.GRADIENTS_CLEARED, TrialKind.TRAIN_MODE),
    *(TrialKind.TARGET_SHAPE, TrialKind.LOGITS, TrialKind.LOG_PROBABILITIES, TrialKind.MEAN_LOSS),
    *(TrialKind.ACCUMULATION_DIVIDED, TrialKind.SHUFFLED_LOADER, TrialKind.STANDARDISED_INPUTS),
    *(TrialKind.STANDARDISED_TARGETS, TrialKind.NO_WEIGHT_DECAY, TrialKind.DROPOUT_OFF),
    *(TrialKind.AUTOCAST_OFF, TrialKind.DEFAULT_EPSILON, TrialKind.DEFAULT_MOMENTUM),
    *(TrialKind.ALL_TRAINABLE, TrialKind.FROZEN_EVAL, TrialKind.UNWEIGHTED_LOSS),
    *(TrialKind.CLASS_WEIGHTS, TrialKind.LAST_ACTIVATION_OFF, TrialKind.CUTS_OFF),
    *(TrialKind.AUGMENTATION_OFF, TrialKind.TERM_OFF),
)
# Changes that may find something to alter late in a training; all others do so from the start.
LATE = frozenset(
    (
        *(TrialKind.SCHEDULE_CONSTANT, TrialKind.CLIP_OUTLIERS, TrialKind.CLIPPING_OFF),
        TrialKind.EVAL_MODE,
    )
)


def change_named(text: str) -> TappedChange:
    """Return the change of a trial by its name; several are made together."""
    changes = [_single(name) for name in parts(text)]
    return changes[0] if len(changes) == 1 else together(changes[0].id, *changes)


def _single(name: TrialName) -> TappedChange:
    if name.kind is TrialKind.LEARNING_RATE:
        return rates_times(name.amount)
    if name.kind is TrialKind.WARM_UP:
        return warm_up(int(name.detail))
    if name.kind is TrialKind.TERM_OFF:
        return without_term(int(name.detail))
    if name.kind is TrialKind.TERM_HIDDEN:
        return hidden_term(int(name.detail))
    return _CHANGES[name.kind]


def swaps() -> list[str]:
    """Return the trials that put a known-good part in the place of the script's own."""
    return [
        str(TrialName(kind))
        for kind, cause in CURE_CAUSES.items()
        if cause.is_swap and not cause.by_training
    ]


def is_probed(trial: str) -> bool:
    """Whether a few steps with many changes at once tell if this one alters anything."""
    return all(name.kind in _PROBED for name in parts(trial))


def singles(facts: Facts, steps: int) -> list[str]:
    """Return the single changes that a training has something to change for, smallest first."""
    return list(_singles(facts, steps))


def _singles(facts: Facts, steps: int) -> Iterator[str]:
    for kind, cause in CURE_CAUSES.items():
        if cause.is_swap or not _may_alter(kind, facts):
            continue
        if kind is TrialKind.LEARNING_RATE:
            yield from (str(rates_times(factor).id) for factor in FACTORS)
        elif kind is TrialKind.WARM_UP:
            yield str(warm_up(max(steps // 5, 5)).id)
        elif kind is TrialKind.TERM_OFF:
            yield from (str(without_term(number).id) for number in range(1, TERMS + 1))
        else:
            yield str(TrialName(kind))


def _may_alter(kind: TrialKind, facts: Facts) -> bool:
    """Whether the recorded run leaves it possible that a change has something to alter."""
    run = facts.run
    if kind is TrialKind.EVAL_MODE:
        shares = run[VAL_TRAIN_FRACTION].values() if VAL_TRAIN_FRACTION in run else ()
        return any((series.values > 0).any() for series in shares)
    if kind is TrialKind.CLIPPING_OFF:
        return CLIP_LIMIT in run
    if kind is TrialKind.SCHEDULE_CONSTANT and LR in run:
        return any(len(np.unique(series.values)) > 1 for series in run[LR].values())
    if kind is TrialKind.ACCUMULATION_DIVIDED and BACKWARD_CALLS in run:
        return any((series.values > 1).any() for series in run[BACKWARD_CALLS].values())
    return True


def suspicion(trial: str, findings: Iterable[Finding]) -> int:
    """Return how sure a cause is that a change removes: -1 if nothing speaks for it."""
    implied = cause_of(trial).implies
    return max((int(f.confidence) for f in findings if f.rule in implied), default=-1)
