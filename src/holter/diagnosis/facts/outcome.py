"""Whether a training went badly: what its loss came to, measured once for all rules."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from holter.diagnosis.facts.curve import Curve, levels, warmed_up
from holter.diagnosis.facts.robust import Values, midmean, noise
from holter.diagnosis.facts.streaks import trailing
from holter.record.findings import Evidence
from holter.record.signals import LOSS, LR

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

_PIECES = 10  # into which the curve is cut
_FEWEST = 20  # losses that make a curve
_NO_FALL = 0.02  # share of a loss that it has to lose to have fallen
_AT_CHANCE = 0.97  # share of the loss of a constant answer above which nothing was learned
_REGAINED = 0.5  # share of what it had lost that a loss which came back has regained
_STAYED = 0.9  # share of its start that a loss has to keep to be flat, however noisy it is
_BACK = 0.9  # share of its first value that a loss which jumped has to stay above

CURVES = (  # what is seen in curves whatever the cause, and is the cause of nothing else
    "diverging-loss",
    "flat-loss",
    "loss-at-constant-predictor",
    "loss-plateau",
    "loss-spike",
    "nonfinite-gradient",
    "nonfinite-loss",
    "nonfinite-weights",
    "oscillating-loss",
    "underfitting",
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a loss came to: `bad` where it surely did not fall, `fall` as a share of its start."""

    bad: bool
    says: str
    fall: float
    evidence: Evidence
    finite: bool = True
    at_chance: bool = False  # no better than a constant answer
    state: str = ""  # how the training went, in a word or two: `learned`, `learned nothing`
    numbers: str = ""  # the numbers behind the state, as a phrase


def outcome_of(facts: "Facts") -> Outcome | None:
    """What the loss came to; None where that cannot be told.

    Losses of several optimizers may compete, one that changes its sign has no floor, and one of few
    readings, or of a learning rate that still warms up, has no history yet. A loss that is not
    finite at last is bad in any case.
    """
    if LOSS not in facts.run:
        return None
    lost = _lost(facts)
    if lost is not None:
        return lost
    curve = facts.curve
    if isinstance(curve, str) or len(curve) < _FEWEST or warmed_up(facts, curve) is None:
        return None
    constant = facts.baseline
    if isinstance(constant, str) or not 0.5 < constant.drift < 2:
        return _judge(curve, None)
    return _judge(curve, constant.level * constant.scale)


def why_unknown(facts: "Facts") -> str:
    """Return why the outcome cannot be judged; empty where it can."""
    if LOSS not in facts.run:
        return "no loss was recorded"
    if facts.outcome is not None:
        return ""
    curve = facts.curve
    if isinstance(curve, str):
        return curve
    if len(curve) < _FEWEST:
        return f"too few losses to judge ({len(curve)} of {_FEWEST})"
    return "the learning rate is still warming up"


def learning_rate(facts: "Facts") -> str:
    """The learning rates that were used, as words: `0.01`, `0.001 to 0.01`; empty if unknown."""
    if LR not in facts.run:
        return ""
    rows = facts.run[LR].rows()
    rates = rows.values[rows.present & np.isfinite(rows.values) & (rows.values > 0)]
    if not len(rates):
        return ""
    low, high = f"{rates.min():.3g}", f"{rates.max():.3g}"
    return low if low == high else f"{low} to {high}"


def _lost(facts: "Facts") -> Outcome | None:
    for owner, loss in facts.run[LOSS].items():
        finite = np.isfinite(loss.values)
        if len(loss) and not finite[-1]:
            since = int(loss.steps[len(loss) - trailing(~finite)])
            says = f"the loss is not finite since step {since}"
            evidence = Evidence(LOSS, (loss.first, loss.last), says, owner)
            state, numbers = f"broke at step {since}", "the loss is NaN or infinite from there on"
            return Outcome(
                True, says, -np.inf, evidence, finite=False, state=state, numbers=numbers
            )
    return None


def _judge(curve: Curve, constant: float | None) -> Outcome:
    values, cut = curve.values, levels(curve, _PIECES)
    end = curve.part(0.8)
    last = midmean(end if len(end) >= _FEWEST // 2 else values[-_FEWEST // 2 :])
    first, best = float(values[0]), float(cut.values.min())
    start = max(float(np.median(values[:5])), float(cut.values[0]))
    jumped = _surely_above(values, start, first)
    if jumped:  # within the first steps: before them it was at `first`
        start, top = first, start
    fall = (start - last) / max(abs(start), 1e-30)
    went = f"from {start:.4g} to {last:.4g} over {len(values)} losses"
    visible = max(4 * float(cut.errors.max()), _NO_FALL * abs(start))

    bad, at_chance = True, False
    state = "learned nothing"
    moved = f"loss {start:.3g} → {last:.3g}"
    steps = curve.span[1] - curve.span[0] + 1
    numbers = f"{moved} over {steps:,} steps"
    if abs(last - start) < _NO_FALL * abs(start):
        numbers = f"loss stayed at {last:.3g} for {steps:,} steps"
    if constant is not None and last >= _AT_CHANCE * constant:
        at_chance = True
        says = f"the loss ended at {last:.4g}; a constant answer has {constant:.4g}"
        numbers += f"; the best constant prediction gives {constant:.3g}"
    elif jumped and last > _BACK * first:
        says = f"the loss jumped from {first:.4g} to {top:.3g} and ended at {last:.4g}"
        numbers = f"loss jumped from {first:.3g} to {top:.3g} and ended at {last:.3g}"
    elif last - best > max(visible, _REGAINED * (start - best)):
        says = f"the loss fell to {best:.4g} and came back to {last:.4g}"
        state = "lost what it had learned"
        numbers = f"loss fell to {best:.3g} and rose back to {last:.3g}"
        if best > 0.98 * start:
            says = f"the loss rose {went}"
            state, numbers = "diverged", f"loss rose from {start:.3g} to {last:.3g}"
    elif not jumped and np.ptp(cut.values) < visible and last > _STAYED * start:
        says = f"the loss went {went}"
    else:
        bad, says = False, f"the loss fell {went}"
        known = "" if constant is None else f" (best constant prediction {constant:.3g})"
        state, numbers = "learned", f"{moved}{known}"
    evidence = Evidence(LOSS, curve.span, says, curve.owner)
    return Outcome(bad, says, fall, evidence, at_chance=at_chance, state=state, numbers=numbers)


def _surely_above(values: Values, level: float, first: float) -> bool:
    """Whether a level lies above the first loss by more than one loss is likely to.

    In logarithms, for a loss that runs away has no scale but its own.
    """
    if first <= 0 or values.min() <= 0:
        return False
    sigma = noise(np.array_split(np.log(values), _PIECES))
    return float(np.log(level / first)) > 3 * sigma + float(np.log(1.5))
