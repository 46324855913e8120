"""Whether a condition did damage: the outcome of the run, as a part of a rule's verdict."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import inf
from types import MappingProxyType

from holter.diagnosis.causes import members
from holter.diagnosis.effects import reached_by
from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.chance import validation_at_chance
from holter.diagnosis.facts.figures import learned_metric
from holter.diagnosis.facts.outcome import OutcomeState
from holter.diagnosis.facts.robust import midmean
from holter.diagnosis.facts.targets import growth_of_targets
from holter.diagnosis.rule import Rule
from holter.record.findings import Confidence, Evidence, Finding, Normal, NotExamined, Severity
from holter.record.signals import LOSS

UNEXPLAINED = "unexplained-failure"  # the rule that reports a failure which no other rule does

_LOSSES = 20  # needed to judge a run

# What each way to fail looks like: findings of these families are the failure itself.
_FAILURES: Mapping[OutcomeState, tuple[str, ...]] = MappingProxyType(
    {
        OutcomeState.LEARNED_NOTHING: ("no-learning", "diverging-loss"),
        OutcomeState.COLLAPSED: ("no-learning", "diverging-loss"),
        OutcomeState.MEMORISED: ("bad-validation",),
        OutcomeState.DIVERGED: ("no-learning", "unstable", "unbounded-loss"),
        OutcomeState.BROKE: ("non-finite", "unstable", "half-precision"),
    }
)
_STALL = ("no-learning", "motionless")


@dataclass(frozen=True, slots=True)
class Damage:
    """What the loss came to, with how much certainty it supports a finding."""

    says: str
    confidence: Confidence  # likely if the training failed, else a hint
    evidence: tuple[Evidence, ...]  # none if the loss cannot be judged

    @property
    def severity(self) -> Severity | None:
        """A warning if the damage is a hint, which ends no build; None leaves it to the rule."""
        return None if self.confidence > Confidence.HINT else Severity.WARNING


def damage_of(
    rule: Rule,
    facts: Facts,
    measured: str,
    *,
    min_fall: float = -inf,
    max_loss: float = inf,
    regardless: bool = False,
) -> Damage | Normal | NotExamined:
    """Return the damage that goes with a condition, or the verdict of `rule` if there is none.

    A loss that fell by a share of at most `min_fall`, that ends above `max_loss` times the best
    constant prediction, or that is still falling towards it, makes a hint. So does one that cannot
    be judged because optimizers compete or because it changes its sign, unless a metric that the
    script shows rises far. While losses are few, or the learning rate warms up, it is too early.
    A condition to report `regardless` of damage is a hint at least.
    """
    outcome = facts.outcome
    if outcome is not None and outcome.bad:
        return Damage(outcome.says, Confidence.LIKELY, (outcome.evidence,))
    poor = outcome is not None and (
        outcome.state is OutcomeState.FALLING
        or outcome.fall <= min_fall
        or _ends_above(facts, max_loss)
    )
    if outcome is not None and (poor or regardless):
        return Damage(outcome.says, Confidence.HINT, (outcome.evidence,))
    if outcome is not None:
        return rule.harmless(f"{measured}, but {outcome.says}")
    shown = learned_metric(facts.run)
    if shown is not None and not regardless:
        course = f"from {shown.values[0]:.3g} to {shown.last:.3g}"
        return rule.harmless(f"{measured}, but `{shown.name}` goes {course}")
    if _too_early(facts) and not regardless:
        return rule.not_examined(f"{measured}; too few losses after warm-up to judge the damage")
    return Damage("whether the loss fell is unknown", Confidence.HINT, ())


def graded(findings: Iterable[Finding], facts: Facts) -> list[Finding]:
    """Make the findings that are, or explain, the failure of a run errors; leave the others.

    A condition is as severe as what it costs: a stale optimizer is an error in a run that learned
    nothing, and a warning in one that learned. A run whose validation never is better than the best
    constant prediction has failed as well. So has one that stalled there for a likely cause; a hard
    task stalls as well, so that a hint stays what it is. A log does not tell a loss that is level
    because nothing was learned from one that had converged before: its findings stay as severe as
    they are.
    """
    if facts.run.meta.source is not None and not facts.training_outcome.sure:
        return list(findings)
    baseline = facts.baseline
    failure = _failure(facts)
    if not isinstance(baseline, str) and validation_at_chance(facts, baseline) is not None:
        failure |= members(("bad-validation",))
    stall = members(_STALL) if _stalled_at_chance(facts) else set()
    return [
        replace(finding, severity=Severity.ERROR)
        if finding.rule != UNEXPLAINED
        and (
            _explains(finding, failure)
            or (finding.confidence > Confidence.HINT and _explains(finding, stall))
        )
        else finding
        for finding in findings
    ]


def tells_failure(findings: Iterable[Finding], facts: Facts) -> bool:
    """Return whether one of the findings is, or explains, the failure of a run."""
    failure = _failure(facts)
    return any(_explains(finding, failure) for finding in findings)


def _failure(facts: Facts) -> set[str]:
    """Return the rules that report the way in which a run failed."""
    states = {facts.training_outcome.state, facts.run_outcome.state}
    return {rule for state in states for rule in members(_FAILURES.get(state, ()))}


def _stalled_at_chance(facts: Facts) -> bool:
    """Whether the loss is level, hardly better than the best constant prediction."""
    outcome = facts.run_outcome
    return outcome.state is OutcomeState.STALLED and outcome.constant is not None


def _explains(finding: Finding, failure: set[str]) -> bool:
    return bool(failure & {finding.rule, *reached_by(finding)})


def _ends_above(facts: Facts, max_loss: float) -> bool:
    curve, baseline = facts.signed_curve, facts.baseline
    if isinstance(curve, str) or isinstance(baseline, str) or not len(curve):
        return False
    return midmean(curve.part(0.8)) > max_loss * baseline.level * baseline.scale


def _too_early(facts: Facts) -> bool:
    """Whether the run has no outcome yet, but will have one when it is longer."""
    losses = facts.run[LOSS].values() if LOSS in facts.run else ()
    if max(map(len, losses), default=0) < _LOSSES:
        return True
    # A loss that grows with its targets has no outcome, however long the run is.
    is_judged = facts.outcome is not None or growth_of_targets(facts) is not None
    return not is_judged and not isinstance(facts.curve, str)
