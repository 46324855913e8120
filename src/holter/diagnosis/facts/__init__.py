"""What rules share about a run, computed once: curve, baseline, outcome, layers, schedule, ...

`Facts(run)` holds them. A fact that cannot be known is a sentence that says why, or None.
"""

from collections.abc import Iterable
from functools import cached_property

import numpy as np
import numpy.typing as npt

from holter.diagnosis.facts import (
    baseline,
    baselines,
    chance,
    coefficients,
    collapse,
    cures,
    curve,
    depth,
    ending,
    evaluations,
    gradient_scale,
    layers,
    measured,
    membership,
    outcome,
    progress,
    ranks,
    schedule,
    skips,
    stream,
    terms,
    time,
    trained,
    validation,
    weight_growth,
)
from holter.diagnosis.facts.baseline import Baseline
from holter.diagnosis.facts.baselines import Comparison
from holter.diagnosis.facts.chance import Chance
from holter.diagnosis.facts.collapse import Response
from holter.diagnosis.facts.cures import Cures
from holter.diagnosis.facts.curve import Curve
from holter.diagnosis.facts.depth import DepthProfile
from holter.diagnosis.facts.evaluations import Evaluation
from holter.diagnosis.facts.gradient_scale import GradientScale
from holter.diagnosis.facts.layers import Layer, Sample
from holter.diagnosis.facts.measured import Measured
from holter.diagnosis.facts.membership import Parameter
from holter.diagnosis.facts.outcome import Outcome, OutcomeState
from holter.diagnosis.facts.ranks import Ranks
from holter.diagnosis.facts.schedule import Epochs, Pace, Rate, Scheduler
from holter.diagnosis.facts.stream import Stream
from holter.diagnosis.facts.terms import Terms
from holter.diagnosis.facts.time import Breakdown
from holter.diagnosis.facts.validation import Curves
from holter.diagnosis.facts.weight_growth import Decay, Growth
from holter.record import Run, Series
from holter.record.signals import Signal


class Facts:
    """Everything that more than one rule wants to know of a run; each fact is computed once."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._samples: dict[tuple[Signal, tuple[str, ...] | None], Sample] = {}

    @cached_property
    def outcome(self) -> Outcome | None:
        """How the training loss went, or None where that cannot be judged."""
        judged = self.training_outcome
        return None if judged.state is OutcomeState.UNKNOWN else judged

    @cached_property
    def training_outcome(self) -> Outcome:
        """How the training loss went; where that cannot be judged, it says why."""
        return outcome.training_outcome(self)

    @cached_property
    def run_outcome(self) -> Outcome:
        """How the run went: the training loss, validation, and an exception that ended it."""
        return ending.run_outcome(self)

    @cached_property
    def curve(self) -> Curve | str:
        """The training loss of the only optimizer, for losses that have a floor to fall to."""
        return curve.training_curve(self)

    @cached_property
    def signed_curve(self) -> Curve | str:
        """The training loss of the only optimizer, whatever its sign."""
        return curve.training_curve(self, may_change_sign=True)

    @cached_property
    def stage_start(self) -> int:
        """The step at which the optimizer that counts took over from others; 0 if it is alone."""
        return trained.stage_start(self)

    @cached_property
    def fresh_start(self) -> int:
        """The step at which the last training of a fresh model began; 0 if it goes on with one."""
        return trained.fresh_start(self)

    @cached_property
    def no_order(self) -> str | None:
        """Why a lower loss is not a better one, or None if nothing speaks against that."""
        return coefficients.no_order(self)

    @cached_property
    def falling_loss(self) -> Series | None:
        """The finite losses of the only optimizer if they are never negative."""
        return progress.falling_loss(self)

    @cached_property
    def baseline(self) -> Baseline | str:
        """The loss of the best constant prediction."""
        return baseline.baseline_of(self)

    @cached_property
    def comparison(self) -> Comparison | None:
        """The best simple model beside the network on held-out rows, if that was measured."""
        return baselines.comparison_of(self)

    @cached_property
    def chance(self) -> Chance | str:
        """The end of the training loss beside the best constant prediction."""
        return chance.chance_of(self)

    @cached_property
    def terms(self) -> Terms:
        """The terms of the loss whose best constant prediction is known."""
        return terms.terms_of(self)

    @cached_property
    def responses(self) -> list[Response]:
        """What models return in training, and how much it varies between samples."""
        return collapse.responses(self)

    @cached_property
    def streams(self) -> list[Stream]:
        """The samples that streamed by, by training loader; the one with most samples first."""
        return stream.streams(self)

    @cached_property
    def loss_function(self) -> str | None:
        """The only loss function the model trains by."""
        return baseline.only_function(self)

    @cached_property
    def evaluation(self) -> Evaluation | str:
        """The evaluation pass that is the validation."""
        return evaluations.validation_of(self)

    @cached_property
    def measured(self) -> list[Measured]:
        """The evaluation passes whose predictions were counted."""
        return measured.measured(self)

    @cached_property
    def measured_validation(self) -> Measured | str:
        """The counted passes of the validation."""
        return measured.measured_validation(self)

    @cached_property
    def validation(self) -> Curves | str:
        """Validation passes beside the training loss of the same time."""
        return validation.curves(self)

    @cached_property
    def cures(self) -> Cures | None:
        """What the training did when it was repeated under changes, or None."""
        return cures.cures_of(self.run)

    @cached_property
    def parameters(self) -> list[Parameter]:
        """All parameters with the sets they belong to."""
        return membership.parameters(self)

    @cached_property
    def layers(self) -> list[Layer]:
        """The weights that an optimizer trains, in order of registration."""
        return layers.trained_layers(self)

    @cached_property
    def activations_by_depth(self) -> DepthProfile | None:
        """How the spread of activations changes with depth in the first steps."""
        return depth.depth(self)

    @cached_property
    def gradient_scale(self) -> GradientScale | None:
        """Gradient norm times RMS weight over the loss, at the first step."""
        return gradient_scale.gradient_scale(self)

    @cached_property
    def weight_growth(self) -> Growth | None:
        """How weight norms changed from the first step to the last."""
        return weight_growth.growth(self)

    @cached_property
    def weight_decay(self) -> Decay | None:
        """The weight decay in effect."""
        return weight_growth.weight_decay(self)

    @cached_property
    def learning_rate(self) -> str:
        """The learning rates that were used, in words; empty if unknown."""
        return outcome.learning_rate(self)

    @cached_property
    def rates(self) -> list[Rate]:
        """The learning rate of each optimizer."""
        return schedule.rates(self)

    @cached_property
    def schedulers(self) -> list[Scheduler]:
        """The schedulers that were stepped."""
        return schedule.schedulers(self)

    @cached_property
    def scheduler_pace(self) -> Pace | None:
        """How often schedulers are stepped."""
        return schedule.pace(self)

    @cached_property
    def epochs(self) -> Epochs | None:
        """The equal parts of a run: passes over the data, or validations."""
        return schedule.epochs(self)

    @cached_property
    def epoch_steps(self) -> int | None:
        """Steps in one pass over the training data."""
        return curve.epoch_steps(self)

    @cached_property
    def time(self) -> Breakdown | str:
        """Where the time of a step goes."""
        return time.breakdown(self)

    @cached_property
    def skipped_steps(self) -> npt.NDArray[np.int64]:
        """Steps whose update was left out, by a GradScaler as far as it is known."""
        return skips.skipped_steps(self)

    @property
    def skipped_by(self) -> str:
        """Who skipped them."""
        return skips.skipped_by(self)

    @cached_property
    def discarded_steps(self) -> npt.NDArray[np.int64]:
        """Steps whose non-finite loss the script itself threw away."""
        return skips.discarded_steps(self)

    @cached_property
    def ranks(self) -> Ranks | str:
        """The processes of a distributed training, or why there are none to compare."""
        return ranks.ranks_of(self.run)

    @cached_property
    def median_update(self) -> float | None:
        """The median relative update of a parameter in the last steps."""
        return progress.recent_update(self)

    def sample(self, signal: Signal, owners: Iterable[str] | None = None) -> Sample:
        """Readings of some owners (or of all), bounded in number; read once."""
        key = signal, None if owners is None else tuple(owners)
        if key not in self._samples:
            self._samples[key] = layers.sample(self, *key)
        return self._samples[key]
