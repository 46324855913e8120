"""Names of trials: what an experiment changed in one of the trainings that it ran.

An experiment writes the readings of a trial under `str(name)`; facts read it back with
`TrialName.parse`. A name is a kind and, where the kind needs one, a detail without spaces: a
factor, a layer, a number.
"""

from dataclasses import dataclass
from enum import StrEnum


class TrialKind(StrEnum):
    """What is different in a trial; kinds below the blank line have a detail."""

    UNCHANGED = "unchanged"
    DROPOUT_OFF = "dropout off"
    CLIPPING_OFF = "clipping off"
    NO_WEIGHT_DECAY = "weight decay 0"
    FLOAT32 = "float32"
    DETERMINISTIC = "deterministic algorithms"
    MATH_ATTENTION = "math attention"
    COMPILE_OFF = "compile off"
    BATCH_NORM_EVAL = "batch norm in eval mode"
    BATCH_NORM_TRAIN = "batch norm in train mode"
    ADAM = "Adam on all trainable parameters"
    NOTHING_FROZEN = "Adam with all parameters trainable"
    REINITIALISED = "weights re-initialised"
    SAME_RANDOM_NUMBERS = "same random numbers in every step"
    LARGER_EPSILON = "larger epsilon"
    LINE_SEARCH = "line search"
    SECOND_MOMENT_RESET = "second moment reset"
    LOGITS = "logits in place of probabilities"
    TARGET_SHAPE = "predictions in the shape of the targets"
    RESCALED_OUTPUTS = "outputs rescaled"
    STANDARDISED_INPUTS = "inputs standardised"
    NOISE_INPUTS = "inputs replaced by noise"
    ROLLED_LABELS = "labels rolled by one sample"
    TWO_SAMPLES = "2 samples"
    EARLIER_RATE = "learning rate before it rose"
    SAME_ACCUMULATION = "as many batches per step as before"
    PREVIOUS_BATCH = "previous batch"
    ANOTHER_BATCH = "another batch"
    STEP_SKIPPED = "step skipped"
    EDITS_LEFT_OUT = "edits of weights left out"
    TRUE_LABELS = "true"
    ONE_BATCH = "one batch"
    GRADIENTS_CLEARED = "gradients cleared after each step"
    ACCUMULATION_DIVIDED = "gradients divided by the backward passes of a step"
    SCHEDULE_CONSTANT = "schedule held constant"
    CLIP_OUTLIERS = "gradients clipped at their 90th percentile"
    TRAIN_MODE = "train mode in training"
    EVAL_MODE = "eval mode in validation"
    FROZEN_EVAL = "frozen modules in eval mode"
    ALL_IN_OPTIMIZER = "every parameter in the optimizer"
    ALL_TRAINABLE = "every parameter trained"
    DEFAULT_EPSILON = "default epsilon"
    DEFAULT_MOMENTUM = "default momentum"
    AUTOCAST_OFF = "float32 without autocast"
    SHUFFLED_LOADER = "batches shuffled"
    STANDARDISED_TARGETS = "targets standardised"
    MEAN_LOSS = "loss averaged in place of summed"
    CLASS_WEIGHTS = "classes weighted by their frequency"
    UNWEIGHTED_LOSS = "loss without its weights"
    LOG_PROBABILITIES = "log-probabilities in place of raw outputs"
    LAST_ACTIVATION_OFF = "last activation left out"
    CUTS_OFF = "gradients through detached results"
    AUGMENTATION_OFF = "augmentation off"
    PLAIN_LOOP = "plain training loop"
    REFERENCE_OPTIMIZER = "reference optimizer"
    REFERENCE_MODEL = "reference model with the reference optimizer"
    LEARNABLE_LABELS = "labels computed from the inputs"
    LABELS_SHUFFLED = "labels shuffled"

    LEARNING_RATE = "learning rate x"  # a factor
    CLIP = "clip to"  # a norm
    GUARDED = "guarded"  # an operation
    HELD = "held"  # a number of the script, and at what: temperature=0.05
    FACTOR = "factor below 1"  # a number of the script, and its reciprocal: discount=0.9
    COUNTER_HELD = "counter held"  # likewise, of one that counts steps
    COUNTER_KEPT = "counter not set back"  # likewise: the value that it had reached
    LAYER_LEFT_OUT = "without the last"  # a class of layers
    SWEEP = "sweep"  # its number
    CONFIRM = "confirm"  # a learning rate
    SHUFFLED_LABELS = "shuffled"  # a number
    WARM_UP = "warm-up over"  # a number of steps
    TERM_OFF = "loss without term"  # its number
    TERM_HIDDEN = "reported loss without term"  # its number; it is trained as before


_VALUES = frozenset(kind.value for kind in TrialKind)
_SEPARATOR = " and "  # between changes that are made together


@dataclass(frozen=True, slots=True)
class TrialName:
    """The name of one trial, or of one change of a trial that combines several."""

    kind: TrialKind
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.kind.value} {self.detail}" if self.detail else self.kind.value

    @property
    def amount(self) -> float:
        """The detail as a number."""
        return float(self.detail)

    @classmethod
    def parse(cls, text: str) -> "TrialName":
        """Read a name back; raises ValueError if it names no kind of trial."""
        if text in _VALUES:
            return cls(TrialKind(text))
        kind, _, detail = text.rpartition(" ")
        return cls(TrialKind(kind), detail)


UNCHANGED = str(TrialName(TrialKind.UNCHANGED))


def combined(*names: TrialName) -> str:
    """Name a trial that makes several changes together."""
    return _SEPARATOR.join(map(str, names))


def parts(text: str) -> tuple[TrialName, ...]:
    """Return the changes that a trial makes together."""
    return tuple(TrialName.parse(part) for part in text.split(_SEPARATOR))
