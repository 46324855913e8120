"""What an evaluation pass counts: predictions against targets, without any sample."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from holter.record.events._event import Occurrence

RELIABILITY_BINS = 15
SCORE_BINS, SCORE_LIMIT = 256, 16.0  # of logits from -SCORE_LIMIT to SCORE_LIMIT
MOST_CLASSES = 1000  # that are counted one by one
POSITION_BINS = 64
FREQUENCY_BINS = 4
OCTAVE_BINS, OCTAVES = 4, 30  # residuals from 2**-OCTAVES to 2**OCTAVES, OCTAVE_BINS a factor of 2


class ReliabilityBin(NamedTuple):
    """Predictions of about the same confidence."""

    predictions: int
    confidence: float  # their sum
    right: int


class ClassCount(NamedTuple):
    """One class of a pass."""

    label: int
    support: int  # targets of this class
    predicted: int
    right: int
    loss: float  # mean over its targets; NaN where the scores are no likelihood


class Confusion(NamedTuple):
    """How often one class was predicted for the targets of another."""

    target: int
    predicted: int
    times: int


class PositionBin(NamedTuple):
    """Targets at some positions of their sequences."""

    first: int
    last: int
    targets: int
    loss: float  # mean


class FrequencyBin(NamedTuple):
    """Classes of about the same frequency; each bin holds about as many targets."""

    classes: int
    targets: int
    right: int
    loss: float  # mean


@dataclass(frozen=True, slots=True)
class ClassCounts:
    """Targets that are one of several classes."""

    number: int  # of classes that the model has an output for
    present: int  # of classes among the targets
    right: int
    largest: int  # targets of the most frequent class
    recall: float  # mean over the classes that are present: the balanced accuracy
    each: tuple[ClassCount, ...] = ()  # of at most MOST_CLASSES, the most frequent
    confusions: tuple[Confusion, ...] = ()  # the most frequent
    reliability: tuple[ReliabilityBin, ...] = ()
    positions: tuple[PositionBin, ...] = ()
    frequencies: tuple[FrequencyBin, ...] = ()  # the rarest classes come first


class UnitCount(NamedTuple):
    """One unit that answers yes or no."""

    unit: int
    yes: int  # targets
    predicted: int  # predicted yes
    right: int  # of those


@dataclass(frozen=True, slots=True)
class ScoreCounts:
    """Targets that are yes or no, for one or several units."""

    units: int
    each: tuple[UnitCount, ...]  # one for all of them where there are more than MOST_CLASSES
    yes: tuple[int, ...]  # targets by logit, in SCORE_BINS bins; all units together
    no: tuple[int, ...]
    reliability: tuple[ReliabilityBin, ...] = ()  # by the probability of yes


@dataclass(frozen=True, slots=True)
class NumberSums:
    """Targets that are numbers."""

    units: int
    mean: float  # of the targets
    variance: float  # of the targets, about the mean of each unit
    bias: float  # mean residual: prediction minus target
    absolute: float  # mean absolute residual
    square: float  # mean squared residual
    spread: float  # variance of the predictions, about the mean of each unit
    below: tuple[int, ...]  # residuals < 0 by magnitude, the smallest first
    above: tuple[int, ...]  # residuals > 0
    exact: int = 0  # residuals of 0


@dataclass(frozen=True, slots=True)
class PassMeasured(Occurrence):
    """Predictions and targets of an evaluation pass were counted; ignored targets are left out."""

    kind: ClassVar[str] = "pass measured"
    owner: str  # loss function and data, as that of `val.loss`
    targets: int  # that were read
    read: float = (
        1.0  # share of the targets: predictions of more than 4 million numbers are thinned
    )
    classes: ClassCounts | None = None
    scores: ScoreCounts | None = None
    numbers: NumberSums | None = None
    from_training: bool = False  # the predictions are outputs of a forward call of the training


@dataclass(frozen=True, slots=True)
class DataEvaluated(Occurrence):
    """The experiment `evaluate` made a pass; what it found in it follows as further events."""

    kind: ClassVar[str] = "data evaluated"
    data: str  # validation or training
    samples: int
    loss: float  # mean over the samples
    is_complete: bool = True  # False: the time was over before the data
    function: str = ""
    counts: PassMeasured | None = None
    auroc: float | None = None  # of all scores, where scikit-learn is installed
    average_precision: float | None = None


@dataclass(frozen=True, slots=True)
class SliceMeasured(Occurrence):
    """The samples of one group by a feature."""

    kind: ClassVar[str] = "slice"
    by: str
    group: str
    samples: int
    loss: float  # mean
    error: float | None  # share of wrong predictions; None where they are no classes
    explained: float  # share of the variance of the losses that lies between the groups
    noise: float  # what groups by chance would explain


@dataclass(frozen=True, slots=True)
class WorstExample(Occurrence):
    """A sample with one of the largest losses."""

    kind: ClassVar[str] = "worst example"
    index: int  # in the data set, or in the order of the pass
    loss: float
    target: float | None = None
    predicted: float | None = None
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class LabelsExamined(Occurrence):
    """Labels were compared with predictions for samples that the model was not trained on."""

    kind: ClassVar[str] = "labels examined"
    data: str
    samples: int
    suspected: int


@dataclass(frozen=True, slots=True)
class LabelSuspected(Occurrence):
    """A label that is likely wrong, the least likely one first."""

    kind: ClassVar[str] = "label suspected"
    index: int
    given: int
    suggested: int
    quality: float  # between 0 and 1, of the label given
    data: str = "validation"
