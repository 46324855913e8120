"""How a training went, as far as its loss tells: learned, learned nothing, diverged, broke, ..."""

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from holter.diagnosis.facts.chance import Standing
from holter.diagnosis.facts.curve import Curve, levels, warmed_up
from holter.diagnosis.facts.robust import Values, midmean, midmean_error, noise
from holter.diagnosis.facts.streaks import trailing
from holter.record.findings import Evidence
from holter.record.signals import LOSS, LR

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

_PIECES = 10  # into which the curve is cut
_FEWEST = 20  # losses that make a curve
_NO_FALL = 0.02  # smallest fall of a loss, as a share of its start
_REGAINED = 0.5  # share of its fall that a loss which rose again has regained
_STAYED = 0.9  # share of its start that a flat loss keeps, however noisy it is
_BACK = 0.9  # share of its first value above which a loss that jumped has lost all progress
_FELL = 0.9  # share of its start below which a loss that rose again had learned something
_ROSE = 1.25  # times its start that a loss which diverges reaches


class OutcomeState(Enum):
    """How a training went, in a word or two."""

    LEARNED = "learned"
    FALLING = "still falling"  # towards the best constant prediction
    LEARNED_NOTHING = "learned nothing"
    DIVERGED = "diverged"
    BROKE = "broke"  # the loss is no longer finite
    UNKNOWN = "unknown"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a training went, and the loss that says so."""

    state: OutcomeState
    says: str  # the measurement, or why the outcome is unknown
    fall: float = 0.0  # of the loss, as a share of its start
    steps: tuple[int, int] = (0, 0)
    owner: str = ""
    constant: float | None = None  # loss of the best constant prediction, if known
    at_chance: bool = False  # no better than the best constant prediction
    onset: int | None = None  # the step at which it broke

    @property
    def bad(self) -> bool:
        """Whether the training failed."""
        return self.state in (
            OutcomeState.LEARNED_NOTHING,
            OutcomeState.DIVERGED,
            OutcomeState.BROKE,
        )

    @property
    def finite(self) -> bool:
        """Whether the last loss is finite."""
        return self.state is not OutcomeState.BROKE

    @property
    def evidence(self) -> Evidence:
        """The loss curve with what it shows."""
        return Evidence(LOSS, self.steps, self.says, self.owner)


def outcome_of(facts: "Facts") -> Outcome | None:
    """Return how the training went, or None where that is unknown."""
    outcome = verdict_of(facts)
    return None if outcome.state is OutcomeState.UNKNOWN else outcome


def verdict_of(facts: "Facts") -> Outcome:
    """Return how the training went; where that is unknown, the outcome says why.

    The losses of several optimizers may compete, a loss that changes sign has no lower bound, and
    a short run or one that still warms up has no history yet. A final loss that is not finite is
    bad in any case.
    """
    if LOSS not in facts.run:
        return _unknown("no loss was recorded")
    if (broken := _broken(facts)) is not None:
        return broken
    curve = facts.curve
    if isinstance(curve, str):
        return _unknown(curve)
    if len(curve) < _FEWEST:
        return _unknown(f"{len(curve)} of the {_FEWEST} losses needed")
    if warmed_up(facts, curve) is None:
        return _unknown("the learning rate is still warming up")
    chance, baseline = facts.chance, facts.baseline
    if isinstance(baseline, str) or not 0.5 < baseline.drift < 2:
        return _judge(curve, None)
    constant = baseline.level * baseline.scale
    if isinstance(chance, str):
        return _judge(curve, constant)
    if chance.standing is Standing.YOUNG:
        return _unknown(str(chance))
    outcome = _judge(
        curve,
        constant,
        at_chance=chance.standing is Standing.AT_CHANCE,
        memorised=chance.validation is not None,
    )
    if chance.standing is Standing.FALLING and chance.latest > chance.constant and not outcome.bad:
        return replace(outcome, state=OutcomeState.FALLING)
    return outcome


def learning_rate(facts: "Facts") -> str:
    """Return the learning rates in words: `0.01`, `0.001 to 0.01`; empty if unknown."""
    if LR not in facts.run:
        return ""
    rows = facts.run[LR].rows()
    rates = rows.values[rows.present & np.isfinite(rows.values) & (rows.values > 0)]
    if not len(rates):
        return ""
    low, high = f"{rates.min():.3g}", f"{rates.max():.3g}"
    return low if low == high else f"{low} to {high}"


def _unknown(reason: str) -> Outcome:
    return Outcome(OutcomeState.UNKNOWN, reason)


def _broken(facts: "Facts") -> Outcome | None:
    """Return the outcome of a loss that is not finite at the end, or None."""
    for owner, loss in facts.run[LOSS].items():
        finite = np.isfinite(loss.values)
        if len(loss) and not finite[-1]:
            broken = trailing(~finite)
            since = int(loss.steps[len(loss) - broken])
            before = f", {loss.values[-broken - 1]:.3g} before" if broken < len(loss) else ""
            return Outcome(
                OutcomeState.BROKE,
                f"loss not finite since step {since}{before}",
                -np.inf,
                (loss.first, loss.last),
                owner,
                onset=since,
            )
    return None


def _judge(
    curve: Curve, constant: float | None, *, at_chance: bool = False, memorised: bool = False
) -> Outcome:
    """Judge a finite curve, beside the loss of the best constant prediction if that is known."""
    values, cut = curve.values, levels(curve, _PIECES)
    end = curve.part(0.8)
    last = midmean(end if len(end) >= _FEWEST // 2 else values[-_FEWEST // 2 :])
    first, best = float(values[0]), float(cut.values.min())
    start = top = max(float(np.median(values[:5])), float(cut.values[0]))
    jumped = _surely_above(values, start, first)
    if jumped:  # within the first steps: before them the loss was at `first`
        start = first
    visible = max(4 * float(cut.own_errors.max()), _NO_FALL * abs(start))

    lost_progress = jumped and last > _BACK * first
    rose = last - best > max(visible, _REGAINED * (start - best))
    level = np.ptp(cut.values) < visible and last > _STAYED * start and not jumped
    level = level and not _improves(curve, cut.noise)
    surely_rose = rose and last - start > (_ROSE - 1) * abs(start)
    had_learned = start - best > (1 - _FELL) * abs(start)
    if not (at_chance or lost_progress or rose or level):
        state = OutcomeState.LEARNED
    elif surely_rose or (rose and had_learned and not memorised):
        state = OutcomeState.DIVERGED
    else:
        state = OutcomeState.LEARNED_NOTHING

    if lost_progress:
        says = f"loss jumped {first:.3g} → {top:.3g} and ended at {last:.3g}"
    elif state is OutcomeState.DIVERGED and had_learned:
        says = f"loss fell {start:.3g} → {best:.3g}, then rose to {last:.3g}"
    elif level:
        says = f"loss stayed at {last:.3g} for {curve.span[1] - curve.span[0] + 1:,} steps"
    else:
        says = f"loss {start:.3g} → {last:.3g}"
    if constant is not None:
        says += f" (best constant prediction {constant:.3g})"
    fall = (start - last) / max(abs(start), 1e-30)
    return Outcome(state, says, fall, curve.span, curve.owner, constant, at_chance)


def _improves(curve: Curve, sigma: float) -> bool:
    """Return whether the loss falls slowly, but by more than its noise and by enough to matter."""
    early, late = curve.part(0, 1 / 3), curve.part(2 / 3)
    fall = midmean(early) - midmean(late)
    error = midmean_error(sigma, len(early), len(late))
    return fall > max(3 * error, _NO_FALL / 2 * abs(midmean(early)))


def _surely_above(values: Values, level: float, first: float) -> bool:
    """Return whether a level is above the first loss by more than the noise of one loss.

    Compare logarithms: a loss that explodes has no other scale.
    """
    if first <= 0 or values.min() <= 0:
        return False
    sigma = noise(np.array_split(np.log(values), _PIECES))
    return float(np.log(level / first)) > 3 * sigma + float(np.log(1.5))
