"""Alarms: what makes the black box write its window, seen in readings as they arrive."""

import math
import statistics
from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from holter.record.band import WINDOW, Band
from holter.record.signals import (
    ACTIVATION_ABSMAX,
    AMP_SCALE,
    GRAD_TOTAL_NORM,
    LOSS,
    LOSS_COEFFICIENT_BALANCE,
    LOSS_COEFFICIENT_SIZE,
    WEIGHT_NORM,
    Signal,
)

_FEWEST = 32  # before which there is no band
_STILL_HIGH = 4.0  # spreads above the band from which it has not come back
_LOOK_EVERY = 32  # losses between two looks at the band: medians take their time
_PATIENCE = 24  # losses that a spike is given to come back
_STAGES = 16  # whose bands are kept
_FAR_ABOVE = 1e3  # times its largest early size, at which a loss has grown without bound
_FAR_BELOW = 1e2  # the same of a loss that falls, and at least so far below zero
_FAR_FOR = 8  # losses in a row that are so far
_CHANGES = 4096  # changes of stage between a step and the arrival of its loss
_ONE_SIGN = 0.9  # balance of coefficients, nearly all of which have one sign
_VARIES = 2.0  # size of coefficients, high over low, that moves a loss by itself

Stage = Hashable  # equal for steps whose losses can be compared


@dataclass(frozen=True, slots=True)
class Alarm:
    """Why a window is written, and the step it began with."""

    kind: str  # "nonfinite", "spike", "growth", "descent", "exception", "asked"
    step: int
    says: str


class Alarms:
    """Looks at the readings of each step on the host; tells of the first thing that is wrong.

    Losses are compared with those of the same stage: of the same optimizers and loss functions.
    """

    def __init__(self) -> None:
        self._stages: deque[tuple[int, Stage]] = deque(maxlen=_CHANGES)  # from which step on
        self._stage: Stage = None  # of the last loss, and its spikes
        self._open = Spikes()
        self._spikes: dict[Stage, Spikes] = {None: self._open}
        self._coefficients = Coefficients()
        self.suspects = False  # a loss has left its band, and may still come back

    def begins(self, step: int, stage: Stage) -> None:
        """Take the losses from this step on for those of a stage."""
        if not self._stages or self._stages[-1][1] != stage:
            self._stages.append((step, stage))

    def see(self, step: int, readings: Mapping[Signal, Sequence[float]]) -> Alarm | None:
        """The alarm that the readings of a step raise, if they do."""
        self._coefficients.see(readings)
        for loss in readings.get(LOSS, ()):
            if (alarm := self.see_loss(step, loss)) is not None:
                return alarm
        if not all(map(math.isfinite, readings.get(WEIGHT_NORM, ()))):
            return Alarm("nonfinite", step, "a weight is not finite")
        if (
            AMP_SCALE in readings
        ):  # with a loss scale, gradients that overflow are skipped by design
            return None
        for norm in readings.get(GRAD_TOTAL_NORM, ()):
            if not math.isfinite(norm):
                return Alarm("nonfinite", step, f"the gradient norm is {_in_words(norm)}")
        if not all(map(math.isfinite, readings.get(ACTIVATION_ABSMAX, ()))):
            return Alarm("nonfinite", step, "an activation is not finite")
        return None

    def see_loss(self, step: int, loss: float) -> Alarm | None:
        """Return the alarm that the loss of a step raises, if it does."""
        if not math.isfinite(loss):
            return Alarm("nonfinite", step, f"the loss is {_in_words(loss)}")
        spikes = self._spikes_at(step)
        peak = spikes.add(step, loss)
        if spikes.is_open or self.suspects:
            self.suspects = any(spikes.is_open for spikes in self._spikes.values())
        far, spikes.is_far = spikes.is_far, False
        if (peak is None and not far) or self._coefficients.rule_the_loss:
            return None
        if peak is not None:
            return Alarm("spike", peak[0], f"the loss rose to {peak[1]:.4g} and did not return")
        kind, verb = ("growth", "grew") if loss > 0 else ("descent", "fell")
        return Alarm(kind, step, f"the loss {verb} to {loss:.4g}, {spikes.early:.4g} initially")

    def see_usual_losses(self, first: int, losses: Sequence[float]) -> int:
        """See losses from a step on while they are of one stage and in its band; return how many.

        They are finite.
        """
        if self.suspects or (len(self._stages) > 1 and self._stages[-1][0] > first):
            return 0
        return self._spikes_at(first).add_usual(losses)

    def _spikes_at(self, step: int) -> "Spikes":
        """The band of the stage that a step belongs to; readings arrive in order of steps."""
        while len(self._stages) > 1 and self._stages[1][0] <= step:
            self._stages.popleft()
        stage = self._stages[0][1] if self._stages else None
        if stage is not self._stage:
            if stage not in self._spikes:
                if len(self._spikes) >= _STAGES:
                    self._spikes.pop(next(iter(self._spikes)))
                self._spikes[stage] = Spikes()
            self._stage, self._open = stage, self._spikes[stage]
        return self._open


def _in_words(value: float) -> str:
    """Return a value that is not finite as a word."""
    return "NaN" if math.isnan(value) else "infinite"


class Coefficients:
    """Tells whether the constants that a loss multiplies its terms by decide how high it is.

    Advantages have both signs, and returns grow with success: such a loss may rise while all is
    well.
    """

    def __init__(self) -> None:
        self._balances: deque[float] = deque(maxlen=WINDOW)
        self._sizes: deque[float] = deque(maxlen=WINDOW)

    def see(self, readings: Mapping[Signal, Sequence[float]]) -> None:
        """Keep those of a step, if they were read."""
        self._balances.extend(readings.get(LOSS_COEFFICIENT_BALANCE, ()))
        self._sizes.extend(readings.get(LOSS_COEFFICIENT_SIZE, ()))

    @property
    def rule_the_loss(self) -> bool:
        """Whether they have both signs, or their size varies by far."""
        if not self._balances or not self._sizes:
            return False
        balances, sizes = sorted(self._balances), sorted(self._sizes)
        tenth = len(balances) // 10
        low, high = balances[tenth], balances[-1 - tenth]
        if low * high <= 0 or min(map(abs, balances[tenth : len(balances) - tenth])) < _ONE_SIGN:
            return True
        tenth = len(sizes) // 10
        return sizes[-1 - tenth] > _VARIES * sizes[tenth]


class Spikes:
    """Tells of a loss that left its band upwards and has not come back."""

    def __init__(self) -> None:
        self._band: deque[float] = deque(maxlen=WINDOW)
        self._ceiling = math.inf  # above which a loss is a spike
        self._until_look = _FEWEST  # losses until the band is looked at again
        self._since: list[tuple[int, float]] = []  # losses from a spike on
        self.is_open = False  # a spike is waited for to come back
        self.early: float = 0.0  # the largest size of the first losses
        self.is_far = False  # the last losses are of another order of size, for the first time
        self._highest, self._lowest = math.inf, -math.inf  # beyond which a loss is so far
        self._beyond = 0  # losses in a row that are

    def add(self, step: int, loss: float) -> tuple[int, float] | None:
        """The step and height of a spike that has not recovered, once that is known."""
        if not self._lowest <= loss <= self._highest:
            self._see_far()
        else:
            self._beyond = 0
        if self.is_open:
            return self._wait(step, loss)
        if loss > self._ceiling:
            self._since, self.is_open = [(step, loss)], True
            return None
        self._band.append(loss)
        self._until_look -= 1
        if self._until_look <= 0:
            self._look()
        return None

    def add_usual(self, losses: Sequence[float]) -> int:
        """Add losses as long as all until the next look are in the band; return how many."""
        added = 0
        while added < len(losses) and not self.is_open:
            part = losses[added : added + self._until_look]
            if max(part) > min(self._ceiling, self._highest) or min(part) < self._lowest:
                break
            self._band.extend(part)
            added += len(part)
            self._until_look -= len(part)
            if self._until_look <= 0:
                self._look()
        return added

    def _see_far(self) -> None:
        self._beyond += 1
        if self._beyond == _FAR_FOR:
            self.is_far, self._highest, self._lowest = True, math.inf, -math.inf

    def _look(self) -> None:
        if not self.early:
            self.early = max(map(abs, self._band))
            self._highest = _FAR_ABOVE * self.early or math.inf
            self._lowest = -_FAR_BELOW * max(self.early, 1.0)
        self._ceiling, self._until_look = Band.of_few(self._band).ceiling(), _LOOK_EVERY

    def _wait(self, step: int, loss: float) -> tuple[int, float] | None:
        self._since.append((step, loss))
        if len(self._since) < _PATIENCE:
            return None
        since, self._since, self.is_open = self._since, [], False
        band = Band.of_few(self._band)
        late = statistics.median(value for _, value in since[len(since) // 2 :])
        highest = max(self._band)  # losses with long tails come as high without being ill
        self._band.clear()
        self._ceiling, self._until_look = math.inf, _FEWEST
        if late > max(band.ceiling(_STILL_HIGH), highest):
            return since[0][0], max(value for _, value in since)
        self._band.extend(value for _, value in since[len(since) // 2 :])
        return None
