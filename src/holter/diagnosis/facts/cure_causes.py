"""What each change implies about a training that it cures, from the smallest change to the largest.

A change that alters nothing in a correct training says more than one that alters every training:
clearing gradients comes before a lower learning rate, and both before another model.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from holter.record.trials import UNCHANGED, TrialKind, TrialName, parts


class Part(StrEnum):
    """The part of a training in which a fault lies."""

    DATA = "data"
    MODEL = "model"
    LOSS = "loss"
    OPTIMIZER = "optimizer"
    LOOP = "loop"


@dataclass(frozen=True, slots=True)
class CureCause:
    """What a change that cures implies: the part, the rules that name the cause, and the fix."""

    part: Part
    implies: tuple[str, ...]
    fix: str
    confirms: tuple[str, ...] = ()  # rules whose findings it makes likely, but does not imply
    rescales: bool = False  # the loss of the changed training has another scale
    is_swap: bool = False  # it localises the fault, and is no fix
    is_control: bool = False  # it replaces what is to be learned: no cure
    by_training: bool = False  # it is judged by the training loss: validation is changed as well
    by_validation: bool = False  # it is judged by the validation loss, which alone it changes
    decides: bool = True  # it removes the cause wholly: without an effect, there is no such cause


_SLOWER = (
    *("huge-updates", "exploding-gradients", "exploding-weights", "unstable-curvature"),
    *("oscillating-gradients", "oversized-steps", "unsuitable-learning-rate"),
)
_FASTER = ("tiny-updates", "unusable-learning-rate", "unsuitable-learning-rate")

CURE_CAUSES: Mapping[TrialKind, CureCause] = MappingProxyType(
    {
        TrialKind.ALL_IN_OPTIMIZER: CureCause(
            Part.LOOP,
            ("parameters-outside-optimizer", "parameters-outside-model"),
            "Give every parameter to the optimizer, and build it after the last line that creates"
            " or replaces the model.",
        ),
        TrialKind.GRADIENTS_CLEARED: CureCause(
            Part.LOOP, ("uncleared-gradients",), "Call `optimizer.zero_grad()` in every step."
        ),
        TrialKind.TRAIN_MODE: CureCause(
            Part.LOOP,
            ("training-in-eval-mode",),
            "Call `model.train()` before each training epoch.",
        ),
        TrialKind.EVAL_MODE: CureCause(
            Part.LOOP,
            ("validation-in-train-mode",),
            "Call `model.eval()` before validation.",
            by_validation=True,
        ),
        TrialKind.FROZEN_EVAL: CureCause(
            Part.LOOP, (), "Call `eval()` on the frozen modules after `model.train()`."
        ),
        TrialKind.TARGET_SHAPE: CureCause(
            Part.LOSS,
            ("broadcast-loss",),
            "Give predictions and targets the same shape: `loss(model(x).squeeze(-1), y)`.",
        ),
        TrialKind.LOGITS: CureCause(
            Part.LOSS,
            ("doubled-softmax", "doubled-sigmoid"),
            "Remove the softmax or sigmoid at the end of the model: the loss function applies it.",
        ),
        TrialKind.LOG_PROBABILITIES: CureCause(
            Part.LOSS,
            ("unnormalised-nll",),
            "Use `nn.CrossEntropyLoss`, or end the model with `nn.LogSoftmax(1)`.",
        ),
        TrialKind.MEAN_LOSS: CureCause(
            Part.LOSS, ("summed-loss",), 'Use `reduction="mean"`.', rescales=True
        ),
        TrialKind.UNWEIGHTED_LOSS: CureCause(
            Part.LOSS,
            ("inverted-class-weights",),
            "Check `weight`, `pos_weight` and `label_smoothing` of the loss function.",
            rescales=True,
            decides=False,
        ),
        TrialKind.ACCUMULATION_DIVIDED: CureCause(
            Part.LOOP,
            ("undivided-accumulation", "repeated-backward"),
            "Divide the loss by the number of backward passes in a step.",
        ),
        TrialKind.SHUFFLED_LOADER: CureCause(
            Part.DATA,
            ("sorted-batches", "repeated-order", "repeated-batches"),
            "Build the training loader with `shuffle=True`.",
        ),
        TrialKind.STANDARDISED_INPUTS: CureCause(
            Part.DATA,
            ("unscaled-inputs",),
            "Standardise the inputs by the mean and standard deviation of the training set.",
        ),
        TrialKind.STANDARDISED_TARGETS: CureCause(
            Part.DATA,
            ("unscaled-targets", "limited-outputs"),
            "Standardise the targets by the mean and standard deviation of the training set.",
            rescales=True,
        ),
        TrialKind.CUTS_OFF: CureCause(
            Part.MODEL,
            ("unreached-parameters",),
            "Remove `.detach()` or `.data` from `forward`, or freeze the parameters below it.",
            decides=False,
        ),
        TrialKind.LAST_ACTIVATION_OFF: CureCause(
            Part.MODEL,
            ("limited-outputs", "doubled-softmax", "doubled-sigmoid", "saturated-units"),
            "End the model with a linear layer.",
            rescales=True,
            decides=False,
        ),
        TrialKind.SCHEDULE_CONSTANT: CureCause(
            Part.OPTIMIZER,
            (
                *("rushed-schedule", "decayed-learning-rate", "stalled-schedule"),
                *("restarted-schedule", "unusable-learning-rate"),
            ),
            "Check how often the scheduler is stepped and how many steps it was built for.",
        ),
        TrialKind.CLIPPING_OFF: CureCause(
            Part.LOOP,
            ("constant-clipping", "scaled-clipping", "misplaced-clip-threshold"),
            "Clip at a norm that only outliers exceed, after `scaler.unscale_(optimizer)`.",
        ),
        TrialKind.NO_WEIGHT_DECAY: CureCause(
            Part.OPTIMIZER, ("collapsed-weights",), "Lower the weight decay."
        ),
        TrialKind.DROPOUT_OFF: CureCause(Part.MODEL, (), "Lower the dropout rate."),
        TrialKind.AUGMENTATION_OFF: CureCause(
            Part.DATA, (), "Weaken the augmentation: it must not change what a label means."
        ),
        TrialKind.TERM_OFF: CureCause(
            Part.LOSS,
            ("outweighed-term",),
            "Check the weight and the sign of this term of the loss.",
            decides=False,
        ),
        TrialKind.AUTOCAST_OFF: CureCause(
            Part.OPTIMIZER,
            (
                *("rounded-away-updates", "collapsing-loss-scale", "overflow-headroom"),
                *("skipped-steps", "hidden-nonfinite"),
            ),
            "Keep the weights in float32 and use autocast with a GradScaler, or bfloat16.",
        ),
        TrialKind.DEFAULT_EPSILON: CureCause(
            Part.OPTIMIZER, ("large-epsilon",), "Use the optimizer's default epsilon."
        ),
        TrialKind.DEFAULT_MOMENTUM: CureCause(
            Part.OPTIMIZER, (), "Use the optimizer's default betas or momentum."
        ),
        TrialKind.ALL_TRAINABLE: CureCause(
            Part.MODEL,
            ("unreached-parameters", "parameters-outside-optimizer"),
            "Unfreeze the parameters with `requires_grad_()`, and give them to the optimizer.",
        ),
        TrialKind.CLIP_OUTLIERS: CureCause(
            Part.OPTIMIZER,
            ("late-clipping", "idle-clipping", "exploding-gradients"),
            "Clip the gradients before `optimizer.step()`.",
            decides=False,
        ),
        TrialKind.WARM_UP: CureCause(
            Part.OPTIMIZER,
            ("missing-warmup", *_SLOWER),
            "Raise the learning rate over the first steps, or lower it.",
            decides=False,
        ),
        TrialKind.LEARNING_RATE: CureCause(Part.OPTIMIZER, (), ""),  # see `cause_of`
        TrialKind.REINITIALISED: CureCause(
            Part.MODEL,
            (
                *("identical-rows", "saturated-units", "fading-activations"),
                *("growing-activations", "vanishing-gradients", "dead-units"),
                *("large-initial-loss", "dead-gradients"),
            ),
            "Keep the default initialisation of the layers.",
            decides=False,
        ),
        TrialKind.CLASS_WEIGHTS: CureCause(
            Part.DATA,
            ("imbalanced-classes",),
            "Weight the classes in the loss by the inverse of their frequency.",
            rescales=True,
            decides=False,
        ),
        TrialKind.PLAIN_LOOP: CureCause(
            Part.LOOP,
            (),
            "Compare the training loop with zero_grad, forward, backward, step at a constant rate.",
            is_swap=True,
        ),
        TrialKind.REFERENCE_OPTIMIZER: CureCause(
            Part.OPTIMIZER,
            (
                *("tiny-updates", "unusable-learning-rate", "huge-updates", "missing-warmup"),
                *("large-epsilon", "collapsed-weights", "rushed-schedule"),
                *("decayed-learning-rate", "stalled-schedule", "exploding-weights"),
                "unsuitable-learning-rate",
            ),
            "Use Adam at a learning rate of 1e-3.",
            is_swap=True,
            decides=False,
        ),
        TrialKind.REFERENCE_MODEL: CureCause(
            Part.MODEL,
            (),
            "Simplify the model until it learns, then add its parts again one by one.",
            confirms=("ignored-inputs", "unused-inputs", "mixed-samples"),
            is_swap=True,
        ),
        TrialKind.LEARNABLE_LABELS: CureCause(
            Part.DATA,
            ("unrelated-labels",),
            "Check that each label belongs to its input after shuffling, splitting and batching.",
            rescales=True,
            is_swap=True,
            is_control=True,
            decides=False,
        ),
        TrialKind.LABELS_SHUFFLED: CureCause(
            Part.DATA,
            ("unrelated-labels",),
            "Check that each label belongs to its input after shuffling, splitting and batching.",
            is_swap=True,
            is_control=True,
            by_training=True,
            decides=False,
        ),
    }
)
_ORDER = list(CURE_CAUSES)


def cause_of(trial: str) -> CureCause:
    """Return what a trial implies if it cures; of several changes, what the largest implies."""
    name = max(parts(trial), key=_place)
    cause = CURE_CAUSES[name.kind]
    if name.kind is TrialKind.LEARNING_RATE:
        slower = name.amount < 1
        fix = f"{'Lower' if slower else 'Raise'} the learning rate {_times(name.amount)} times."
        return CureCause(cause.part, _SLOWER if slower else _FASTER, fix, decides=False)
    return cause


def is_by_validation(trial: str) -> bool | None:
    """Whether a trial is judged by its validation loss; None if that depends on the training."""
    kinds = (name.kind for name in parts(trial))
    causes = [CURE_CAUSES[kind] for kind in kinds if kind in CURE_CAUSES]
    if any(cause.by_training for cause in causes):
        return False
    return True if any(cause.by_validation for cause in causes) else None


def reference_of(trial: str) -> str:
    """Return the trial that one is compared with: mostly the unchanged training.

    Without a term the loss is another one. It is compared with that of the other terms while all
    are trained.
    """
    hidden = (name.detail for name in parts(trial) if name.kind is TrialKind.TERM_OFF)
    return next((str(TrialName(TrialKind.TERM_HIDDEN, detail)) for detail in hidden), UNCHANGED)


def size_of(trial: str) -> tuple[int, int, float]:
    """Return how large an intervention is: fewer changes, then more specific ones first."""
    names = parts(trial)
    rates = sum(_away(name) for name in names if name.kind is TrialKind.LEARNING_RATE)
    return len(names), max(map(_place, names)), rates


def _place(name: TrialName) -> int:
    return _ORDER.index(name.kind)


def _times(factor: float) -> str:
    return f"{max(factor, 1 / factor):g}"


def _away(name: TrialName) -> float:
    return max(name.amount, 1 / name.amount)
