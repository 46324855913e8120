from dataclasses import replace
from math import inf

import numpy as np
import pytest

from holter.diagnosis.damage import Damage, damage_of, graded
from holter.diagnosis.engine import named_rule
from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.outcome import OutcomeState
from holter.diagnosis.rules.exploding_weights import exploding_weights
from holter.record import Event, Run
from holter.record.events import FigurePrinted
from holter.record.findings import Confidence, Finding, Normal, NotExamined, Severity
from holter.record.signals import LOSS, LR, TARGET_ENTROPY, TARGET_LARGEST_CLASS_FRACTION
from layered import broken, falling, flat, rising
from synthetic import run_of


def judged(run: Run, **limits: float) -> object:
    return damage_of(exploding_weights, Facts(run), "measured", **limits)


@pytest.mark.parametrize("loss", [flat(), rising(), broken()])
def test_a_bad_loss_is_damage(loss: np.ndarray) -> None:
    damage = judged(run_of({LOSS: {"": loss}}))
    assert isinstance(damage, Damage)
    assert damage.confidence is Confidence.LIKELY
    assert damage.severity is None
    assert damage.evidence[0].signal is LOSS


def test_a_loss_that_fell_is_none() -> None:
    verdict = judged(run_of({LOSS: {"": falling()}}))
    assert isinstance(verdict, Normal)
    assert verdict.exception == "no-damage"


@pytest.mark.parametrize(("min_fall", "hint"), [(-inf, False), (0.1, False), (0.3, True)])
def test_a_loss_that_fell_a_little_is_a_hint(min_fall: float, hint: bool) -> None:
    damage = judged(run_of({LOSS: {"": falling(end=1.9)}}), min_fall=min_fall)
    assert isinstance(damage, Damage) == hint
    assert not isinstance(damage, Damage) or damage.severity is Severity.WARNING


@pytest.mark.parametrize(("max_loss", "hint"), [(inf, False), (0.9, False), (0.7, True)])
def test_a_loss_near_the_best_constant_prediction_is_a_hint(max_loss: float, hint: bool) -> None:
    entropy = {TARGET_ENTROPY: {"cross_entropy": np.full(200, 2.3)}}
    damage = judged(run_of({LOSS: {"": falling(end=1.9)}, **entropy}), max_loss=max_loss)
    assert isinstance(damage, Damage) == hint


@pytest.mark.parametrize("losses", [{"a": flat(), "b": 2 * flat()}, {"": flat() - 2.3}])
def test_a_loss_that_cannot_be_judged_is_a_hint(losses: dict[str, np.ndarray]) -> None:
    damage = judged(run_of({LOSS: losses}))
    assert isinstance(damage, Damage)
    assert damage.confidence is Confidence.HINT
    assert damage.severity is Severity.WARNING


@pytest.mark.parametrize(
    ("values", "learned"),
    [((0.2, 0.6, 0.9, 0.95), True), ((0.2, 0.6, 0.3, 0.3), False), ((0.1, 0.1, 0.12), False)],
)
def test_a_metric_that_the_script_shows_tells_where_the_loss_does_not(
    values: tuple[float, ...], learned: bool
) -> None:
    shown = FigurePrinted("test acc", tuple(range(10, 10 * len(values) + 1, 10)), values)
    run = run_of({LOSS: {"": flat() - 2.3}}, events=[Event(199, 0.0, shown)])
    assert isinstance(judged(run), Normal) == learned


@pytest.mark.parametrize(
    "signals",
    [
        {},
        {LOSS: {"": flat(19)}},
        {LOSS: {"a": flat(19), "b": flat(19)}},
        {LOSS: {"": flat()}, LR: {"group": np.linspace(0.01, 1, 200)}},  # still warming up
    ],
)
def test_too_early(signals: dict) -> None:
    assert isinstance(judged(run_of(signals)), NotExamined)


@pytest.mark.parametrize("loss", [falling(), flat(19)])
def test_a_condition_to_report_regardless_is_a_hint(loss: np.ndarray) -> None:
    damage = damage_of(
        exploding_weights, Facts(run_of({LOSS: {"": loss}})), "measured", regardless=True
    )
    assert isinstance(damage, Damage)
    assert damage.confidence is Confidence.HINT


def a_finding(rule: str, severity: Severity = Severity.WARNING) -> Finding:
    return named_rule(rule).finding(
        "it is so",
        severity=severity,
        confidence=Confidence.LIKELY,
        onset=0,
        evidence=(),
        fix="do this",
    )


@pytest.mark.parametrize(
    ("loss", "rule"),
    [
        (flat(), "parameters-outside-model"),  # a cause of the failure
        (flat(), "flat-loss"),  # the failure itself
        (rising(), "diverging-loss"),
        (broken(), "nonfinite-loss"),
        (broken(), "nonfinite-inputs"),
    ],
)
def test_what_explains_a_failure_is_an_error(loss: np.ndarray, rule: str) -> None:
    (finding,) = graded([a_finding(rule)], Facts(run_of({LOSS: {"": loss}})))
    assert finding.severity is Severity.ERROR
    (finding,) = graded([a_finding(rule)], Facts(run_of({LOSS: {"": falling()}})))
    assert finding.severity is Severity.WARNING


@pytest.mark.parametrize(
    ("loss", "rule"), [(flat(), "inefficient-batch-size"), (broken(), "imbalanced-classes")]
)
def test_what_explains_no_failure_keeps_its_severity(loss: np.ndarray, rule: str) -> None:
    (finding,) = graded([a_finding(rule, Severity.INFO)], Facts(run_of({LOSS: {"": loss}})))
    assert finding.severity is Severity.INFO


@pytest.mark.parametrize(
    ("confidence", "severity"),
    [(Confidence.LIKELY, Severity.ERROR), (Confidence.HINT, Severity.WARNING)],
)
def test_the_likely_cause_of_a_stall_at_chance_is_an_error(
    confidence: Confidence, severity: Severity
) -> None:
    loss = 2.3 * np.where(np.arange(200) < 5, 1.1, 0.95)
    signals = {
        TARGET_ENTROPY: {"cross_entropy": np.full(200, 2.3)},
        TARGET_LARGEST_CLASS_FRACTION: {"cross_entropy": np.full(200, 0.1)},
    }
    facts = Facts(run_of({LOSS: {"": loss}, **signals}))
    assert facts.run_outcome.state is OutcomeState.STALLED
    finding = replace(a_finding("decayed-learning-rate"), confidence=confidence)
    assert graded([finding], facts)[0].severity is severity


def test_without_a_loss_severities_stay() -> None:
    (finding,) = graded([a_finding("flat-loss")], Facts(run_of({})))
    assert finding.severity is Severity.WARNING
