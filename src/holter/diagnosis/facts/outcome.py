"""How a training went, as far as its loss tells: learned, learned nothing, diverged, broke, ..."""

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from holter.diagnosis.facts.chance import Chance, Standing
from holter.diagnosis.facts.course import FEWEST, Course, course_of
from holter.diagnosis.facts.curve import Curve, curve_of, settled, warmed_up
from holter.diagnosis.facts.descent import Descent, captured_fall, descent_of
from holter.diagnosis.facts.stages import stages
from holter.diagnosis.facts.streaks import trailing
from holter.diagnosis.facts.targets import GROWN, growth_of_targets
from holter.diagnosis.facts.trained import continues, recorded_losses
from holter.record.findings import Evidence
from holter.record.signals import LOSS, LR, Signal

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

_LITTLE = 0.9  # share of the best constant prediction above which little was learned
_EXPLODED = 1e3  # times its largest early size, at which a loss of any sign has diverged
_BEYOND_SUCCESS = 1e6  # the same of a loss without an order, which may grow with success
_LAST = 5  # losses at the end that tell whether it did
_NEARLY_ALL = 0.95  # share of the last losses that are below zero
_LONG = 0.5  # share of the steps for which a loss that stalled is level


class OutcomeState(Enum):
    """How a training went, in a word or two."""

    LEARNED = "learned"
    FALLING = "still falling"  # towards the best constant prediction
    STALLED = "stalled"  # better than the best constant prediction, but hardly, and level
    OVERFITS = "overfits"  # the validation loss rises while the training loss falls, or is high
    LEARNED_NOTHING = "learned nothing"
    MEMORISED = "learned only the training data"  # validation is at the best constant prediction
    DIVERGED = "diverged"
    COLLAPSED = "collapsed"  # the model returns the same for every input
    BROKE = "broke"  # the loss is no longer finite, or an exception ended the training
    UNKNOWN = "unknown"

    def __str__(self) -> str:
        return self.value


FAILED = (
    OutcomeState.LEARNED_NOTHING,
    OutcomeState.MEMORISED,
    OutcomeState.DIVERGED,
    OutcomeState.COLLAPSED,
    OutcomeState.BROKE,
)


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
    onset: int | None = None  # the step since which it is so
    first: float | None = None  # loss
    last: float | None = None
    accuracy: float | None = None  # in training, at the end
    chance_accuracy: float | None = None  # of always predicting the most frequent class
    validation: float | None = None  # loss at the end
    validation_accuracy: float | None = None
    signal: Signal = LOSS  # that says so
    sure: bool = True  # whether no sound training looks so

    @property
    def bad(self) -> bool:
        """Whether the training failed."""
        return self.state in FAILED

    @property
    def finite(self) -> bool:
        """Whether the last loss is finite."""
        return self.state is not OutcomeState.BROKE

    @property
    def gain(self) -> float | None:
        """The share by which the last loss is below the best constant prediction, if known."""
        if self.constant is None or self.last is None or self.constant <= 0:
            return None
        return 1 - self.last / self.constant

    @property
    def title(self) -> str:
        """The state with its step or level: `broke at step 812`, `stalled at 1.9`."""
        if self.state is OutcomeState.STALLED and self.last is not None:
            return f"stalled at {self.last:.3g}"
        if self.onset is None:
            return str(self.state)
        since = "since" if self.state is OutcomeState.OVERFITS else "at"
        return f"{self.state} {since} step {self.onset}"

    @property
    def evidence(self) -> Evidence:
        """The loss curve with what it shows."""
        return Evidence(self.signal, self.steps, self.says, self.owner)


def training_outcome(facts: "Facts") -> Outcome:
    """Return how the training went; where that is unknown, the outcome says why.

    The losses of several optimizers may compete, the loss of a policy gradient has no order, and a
    short run or one that still warms up has no history yet. A final loss that is not finite is bad
    in any case.
    """
    if LOSS not in facts.run:
        return _unknown("no loss was recorded")
    if (broken := _broken(facts)) is not None:
        return broken
    fall = captured_fall(facts.run)
    if fall is not None:
        says = f"loss {fall.first:.3g} → {fall.last:.3g}, falling without bound"
        return Outcome(
            *(OutcomeState.DIVERGED, says, -np.inf, fall.span, fall.owner),
            first=fall.first,
            last=fall.last,
        )
    curve = facts.signed_curve
    if isinstance(curve, str):
        return _without_curve(facts, curve)
    if len(curve) < FEWEST:
        return _unknown(f"{len(curve)} of the {FEWEST} losses needed")
    descent = descent_of(facts, curve)
    if descent.is_unbounded:
        return _without_bound(curve, descent)
    if warmed_up(facts, curve) is None:
        return _unknown("the learning rate is still warming up")
    if curve.changes_sign:
        return _of_changing_sign(facts, curve)
    return _beside_constant(facts, curve)


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
    for owner, loss in recorded_losses(facts).items():
        finite = np.isfinite(loss.values) | np.isin(loss.steps, facts.discarded_steps)
        if not finite[-1] and loss.last >= facts.stage_start:
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


def _without_bound(curve: Curve, descent: Descent) -> Outcome:
    return Outcome(
        OutcomeState.DIVERGED,
        f"loss {descent.first:.3g} → {descent.end:.3g}, falling without bound",
        -np.inf,
        curve.span,
        curve.owner,
        first=descent.first,
        last=descent.end,
    )


def _without_curve(facts: "Facts", reason: str) -> Outcome:
    """Judge losses that cannot be judged as one: several of them, or one without an order."""
    curves = [curve_of(owner, loss) for owner, loss in recorded_losses(facts).items()]
    for curve in curves:
        if len(curve) >= FEWEST and (lost := _exploded(curve, _BEYOND_SUCCESS)) is not None:
            return lost
    if facts.no_order is None:
        if not curves or any(len(curve) < FEWEST for curve in curves):
            return _unknown(reason)
        courses = [course_of(curve) for curve in curves]
        if all(course.fell for course in courses):  # they do not compete
            return _outcome(courses[-1], OutcomeState.LEARNED, None)
        return _unknown(reason)
    terms = facts.terms
    return _of_term(terms.stuck[0].chance) if terms.learned_nothing else _unknown(reason)


def _of_changing_sign(facts: "Facts", curve: Curve) -> Outcome:
    """Judge a loss without a lower bound: it learned if it fell below zero and stayed there.

    A loss that goes on changing its sign, as that of an actor and a critic does, has no level; but
    one that grows by orders of magnitude has diverged.
    """
    if (lost := _exploded(curve, _EXPLODED)) is not None:
        return lost
    course = course_of(curve)
    is_below = float(np.quantile(curve.part(0.8), _NEARLY_ALL)) < 0
    if course.fell and is_below and facts.no_order is None:
        return _outcome(course, OutcomeState.LEARNED, None)
    return _unknown("the loss changes sign, so it has no lower bound to fall to")


def _exploded(curve: Curve, times: float) -> Outcome | None:
    """Return the outcome of a loss whose size grew so many times, whatever its sign; else None."""
    early, late = np.abs(curve.part(0, 0.2)), np.abs(curve.values[-_LAST:])
    if float(np.median(late)) <= times * float(early.max()):
        return None
    says = f"absolute loss {np.median(early):.3g} → {np.median(late):.3g}"
    return replace(_outcome(course_of(curve), OutcomeState.DIVERGED, None), says=says)


def _beside_constant(facts: "Facts", curve: Curve) -> Outcome:
    """Judge a loss that is never negative, beside the best constant prediction if it is known."""
    chance, baseline, course = facts.chance, facts.baseline, _course(facts, curve)
    if isinstance(baseline, str) or not 0.5 < baseline.drift < 2:
        growth = growth_of_targets(facts)
        if course.rose and growth is not None and course.last <= GROWN * growth * course.start:
            grew = f"whose variance grew {growth:.2g} times"
            return _unknown(f"the loss grows with the targets, {grew}")
        if facts.terms.learned_nothing:
            return _of_term(facts.terms.stuck[0].chance)
        return _without_constant(facts, course)
    constant = baseline.level * baseline.scale
    if isinstance(chance, str):
        return _outcome(course, _state(course, memorised=False), constant)
    if chance.standing is Standing.YOUNG:
        return _unknown(str(chance))
    is_at_chance = chance.standing is Standing.AT_CHANCE
    state = _state(course, memorised=chance.validation is not None)
    if is_at_chance and state in (OutcomeState.LEARNED, OutcomeState.STALLED):
        state = OutcomeState.LEARNED_NOTHING
    if state is OutcomeState.LEARNED_NOTHING and chance.standing is Standing.BETTER:
        state = OutcomeState.STALLED
    if state is OutcomeState.LEARNED:
        if chance.standing is Standing.FALLING and chance.latest > chance.constant:
            state = OutcomeState.FALLING
        elif chance.level > _LITTLE * chance.constant and _is_level(curve):
            state = OutcomeState.STALLED
    outcome = replace(_outcome(course, state, constant), at_chance=is_at_chance)
    read = chance.predictions
    if state is OutcomeState.LEARNED_NOTHING and read is not None and read.collapsed:
        spread = (
            f"predictions vary by {read.spread:.2g} between inputs, {read.initial:.2g} initially"
        )
        return replace(outcome, state=OutcomeState.COLLAPSED, says=f"{outcome.says}, {spread}")
    return outcome


def _course(facts: "Facts", curve: Curve) -> Course:
    """Return the course of a curve; where it rose, since the last loss function took over."""
    course = course_of(curve)
    if not course.rose:
        return course
    last = stages(facts, curve)[-1]
    return course_of(last) if len(last) >= FEWEST else course


def _without_constant(facts: "Facts", course: Course) -> Outcome:
    """Judge a loss by its course alone.

    Where the best constant prediction is unknown, a loss may rise because the task becomes harder,
    or stay because the model had converged before: a run that improved on its start has not failed.
    """
    state = _state(course, memorised=False)
    if state is OutcomeState.DIVERGED and course.improved:
        state = OutcomeState.LEARNED
    if state is OutcomeState.LEARNED_NOTHING and course.level and continues(facts):
        state = OutcomeState.STALLED
    outcome = replace(_outcome(course, state, None), sure=course.is_extreme)
    if facts.run.meta.source is not None and outcome.bad and course.level and not outcome.sure:
        says = f"{outcome.says}, as for a model that had already converged"
        return replace(outcome, says=says)
    return outcome


def _state(course: Course, *, memorised: bool) -> OutcomeState:
    """Return the state by the course alone; what only was `memorised` cannot have diverged."""
    if not course.is_bad:
        return OutcomeState.LEARNED
    if course.surely_rose or (course.rose and course.had_learned and not memorised):
        return OutcomeState.DIVERGED
    return OutcomeState.LEARNED_NOTHING


def _is_level(curve: Curve) -> bool:
    end = settled(curve)
    return end is not None and end.share >= _LONG


def _outcome(
    course: Course, state: OutcomeState, constant: float | None, name: str = "loss"
) -> Outcome:
    says = course.says(name, diverged=state is OutcomeState.DIVERGED)
    if constant is not None:
        says += f" (best constant prediction {constant:.3g})"
    return Outcome(
        state,
        says,
        course.fall,
        course.curve.span,
        course.curve.owner,
        constant,
        first=course.start,
        last=course.last,
    )


def _of_term(term: Chance) -> Outcome:
    """Return the outcome of a loss whose terms learned nothing, by the first of them."""
    course, name = course_of(term.curve), term.baseline.function
    outcome = _outcome(course, OutcomeState.LEARNED_NOTHING, term.constant, name)
    return replace(outcome, at_chance=True, signal=term.signal)
