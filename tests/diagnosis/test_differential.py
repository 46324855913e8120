"""One cause, not forty alarms."""

from holter.diagnosis.differential import diagnose
from holter.diagnosis.effects import reached_by
from holter.diagnosis.engine import Checkup, named_rule
from holter.record.findings import Clear, Confidence, Evidence, Finding, NotExamined, Severity
from holter.record.signals import (
    ACTIVATION_DEAD_FRACTION,
    GRAD_TOTAL_NORM,
    INPUT_NONFINITE,
    LOSS,
    LR,
    UPDATE_RATIO,
    USE_CHANGE,
    WEIGHT_TOTAL_NORM,
    Signal,
)


def finding(
    rule: str,
    onset: int = 0,
    signal: Signal = LOSS,
    *,
    severity: Severity = Severity.ERROR,
    confidence: Confidence = Confidence.CERTAIN,
    until: int = 100,
) -> Finding:
    return named_rule(rule).finding(
        "it is so",
        severity=severity,
        confidence=confidence,
        onset=onset,
        evidence=(Evidence(signal, (onset, until), "so"),),
        fix="mend it",
    )


def test_nothing_found() -> None:
    diagnosis = diagnose(Checkup())
    assert diagnosis.leading is None
    assert not diagnosis.known


def test_a_cause_leads_before_its_consequences() -> None:
    stale = finding("parameters-outside-model")
    still = finding("motionless-weights")
    flat = finding("flat-loss", 66, confidence=Confidence.LIKELY)
    diagnosis = diagnose(Checkup((flat, still, stale)))
    assert diagnosis.leading is stale
    assert diagnosis.known
    assert diagnosis.explained == (still, flat)
    assert diagnosis.others == ()


def test_only_the_source_puts_a_wrong_sign_before_updates_that_ruin_a_policy() -> None:
    huge = finding("huge-updates", 20, UPDATE_RATIO, confidence=Confidence.HINT)
    worse = finding("unimproved-metrics", 0, confidence=Confidence.HINT)
    diagnosis = diagnose(Checkup((worse, huge)))
    assert diagnosis.leading is huge
    assert diagnosis.explained == (worse,)
    source = finding("reversed-objective", confidence=Confidence.LIKELY)
    diagnosis = diagnose(Checkup((worse, huge, source)))
    assert diagnosis.leading is source
    assert set(diagnosis.explained) == {worse, huge}


def test_what_to_run_next_names_the_script_that_was_recorded() -> None:
    unknown = finding("unexplained-failure", confidence=Confidence.HINT)
    advised = diagnose(Checkup((unknown,), script="fit.py --epochs 3")).experiments
    assert any("`holter doctor fit.py --epochs 3`" in each for each in advised)
    assert any("`holter doctor train.py`" in e for e in diagnose(Checkup((unknown,))).experiments)


def test_between_symptoms_who_moved_first_leads() -> None:
    gradient = finding("nonfinite-gradient", 14, GRAD_TOTAL_NORM)
    weights = finding("nonfinite-weights", 14, WEIGHT_TOTAL_NORM)
    loss = finding("nonfinite-loss", 15, LOSS)
    assert diagnose(Checkup((loss, weights, gradient))).leading is gradient
    early = finding("nonfinite-loss", 14, LOSS)
    assert diagnose(Checkup((weights, gradient, early))).leading is early


def test_a_symptom_that_nothing_explains_has_an_unknown_cause() -> None:
    diagnosis = diagnose(Checkup((finding("nonfinite-loss", 8),)))
    assert diagnosis.leading is not None
    assert not diagnosis.known
    assert len(diagnosis.experiments) == 2


def test_what_was_ruled_out_is_what_would_explain_it_and_was_measured() -> None:
    checkup = Checkup(
        (finding("motionless-weights"),),
        clear=(
            Clear("unusable-learning-rate", "lr 0.1 on all steps"),
            Clear("parameters-outside-model", ""),  # says nothing: no measurement to show
            Clear("training-in-eval-mode", "in training mode"),  # would not explain it
        ),
        not_examined=(
            NotExamined("parameters-outside-optimizer", "no grad.norm"),
            NotExamined("training-in-eval-mode", "no mode"),
        ),
    )
    diagnosis = diagnose(checkup)
    assert [each.rule for each in diagnosis.ruled_out] == ["unusable-learning-rate"]
    assert [each.rule for each in diagnosis.unexamined] == ["parameters-outside-optimizer"]


def test_independent_findings_stand_apart() -> None:
    uncleared = finding("uncleared-gradients", 1)
    evaluating = finding("training-in-eval-mode", 40)
    diagnosis = diagnose(Checkup((uncleared, evaluating)))
    assert diagnosis.leading is uncleared
    assert diagnosis.others == (evaluating,)


def test_a_cause_that_came_after_the_effect_had_ended_explains_nothing() -> None:
    loss = finding("nonfinite-loss", 5, until=5)
    late = finding("uncleared-gradients", 50)
    assert diagnose(Checkup((loss, late))).explained == ()


def test_a_learning_rate_of_zero_does_not_explain_a_nan() -> None:
    from holter.diagnosis.rules.unusable_learning_rate import unusable_learning_rate
    from synthetic import found, run_of

    (zero,) = found(unusable_learning_rate, run_of({LR: {"group 0": [0.0] * 50}}))
    loss = finding("nonfinite-loss", 20)
    still = finding("motionless-weights")
    diagnosis = diagnose(Checkup((zero, still)))
    assert diagnosis.leading is zero
    assert diagnosis.explained == (still,)
    assert diagnose(Checkup((zero, loss))).explained == ()


def test_a_finding_of_a_rule_that_is_not_installed_is_no_error() -> None:
    foreign = Finding(
        "not-installed",
        Severity.ERROR,
        Confidence.HINT,
        named_rule("flat-loss").level,
        "x",
        0,
        (),
        "none",
    )
    diagnosis = diagnose(Checkup((foreign,), clear=(Clear("also-not", "x"),)))
    assert diagnosis.leading is foreign


def test_the_replay_of_a_captured_failure_is_advised_first() -> None:
    for rule in ("nonfinite-loss", "nonfinite-weights", "exploding-gradients", "huge-updates"):
        advice = "`holter try replay runs/1` repeats the captured steps."
        diagnosis = diagnose(Checkup((finding(rule, 8),), advice=advice))
        assert diagnosis.experiments[0] == advice
        assert sum("holter try replay" in each for each in diagnosis.experiments) == 1


def test_a_hint_does_not_lead_before_what_is_sure() -> None:
    mixed = finding("mixed-samples", confidence=Confidence.HINT)
    outside = finding("parameters-outside-optimizer", severity=Severity.WARNING)
    assert diagnose(Checkup((mixed, outside))).leading is outside
    likely = finding("tiny-updates", severity=Severity.WARNING, confidence=Confidence.LIKELY)
    assert diagnose(Checkup((mixed, likely))).leading is likely
    remark = finding("tiny-updates", severity=Severity.INFO)
    assert diagnose(Checkup((mixed, remark))).leading is mixed


def test_a_hint_does_not_lead_a_failure_that_waits_for_its_replay() -> None:
    hint = finding("unscaled-targets", confidence=Confidence.HINT)
    loss = finding("nonfinite-loss", 40)
    assert diagnose(Checkup((hint, loss))).leading is hint
    waiting = diagnose(Checkup((hint, loss), captured=40))
    assert waiting.leading is loss and not waiting.known
    assert waiting.others == (hint,)
    likely = finding("unscaled-targets", confidence=Confidence.LIKELY)
    assert diagnose(Checkup((likely, loss), captured=40)).leading is likely


def test_what_began_with_a_captured_failure_does_not_explain_it() -> None:
    loss = finding("diverging-loss", 40, confidence=Confidence.LIKELY)
    before = finding("huge-updates", 39, confidence=Confidence.LIKELY)
    assert diagnose(Checkup((before, loss), captured=40)).leading is before
    with_it = finding("huge-updates", 40, UPDATE_RATIO, confidence=Confidence.LIKELY)
    diagnosis = diagnose(Checkup((with_it, loss), captured=40))
    assert diagnosis.leading is loss and not diagnosis.known
    assert diagnose(Checkup((with_it, loss))).leading is with_it
    given = finding("nonfinite-inputs", 40, INPUT_NONFINITE, confidence=Confidence.LIKELY)
    assert diagnose(Checkup((given, loss), captured=40)).leading is given
    later = finding("huge-updates", 90, confidence=Confidence.LIKELY, until=200)
    assert diagnose(Checkup((later, loss), captured=40)).leading is later


def test_what_had_held_for_long_does_not_explain_a_sudden_break() -> None:
    loss = finding("nonfinite-loss", 140)
    old = finding("unscaled-inputs", 0, confidence=Confidence.LIKELY, until=140)
    near = finding("huge-updates", 130, confidence=Confidence.LIKELY, until=140)
    zero = finding("singular-operations", 140)
    assert diagnose(Checkup((loss, old), captured=140)).leading is old
    assert diagnose(Checkup((loss, old), captured=140, sudden=True)).leading is loss
    assert diagnose(Checkup((loss, near), captured=140, sudden=True)).leading is near
    assert diagnose(Checkup((loss, old, zero), captured=140, sudden=True)).leading is zero


def test_what_an_experiment_measures_may_follow_from_what_began_in_training() -> None:
    unused = finding("unused-inputs", 0, USE_CHANGE, confidence=Confidence.LIKELY, until=0)
    dead = finding("dead-units", 4, ACTIVATION_DEAD_FRACTION, confidence=Confidence.LIKELY)
    diagnosis = diagnose(Checkup((unused, dead)))
    assert diagnosis.leading is dead
    assert diagnosis.explained == (unused,)


def test_a_certain_cause_stands_before_a_hint_that_would_explain_it() -> None:
    hint = finding("huge-updates", confidence=Confidence.HINT)
    certain = finding("exploding-gradients")
    assert diagnose(Checkup((hint, certain))).leading is certain
    likely = finding("exploding-gradients", confidence=Confidence.LIKELY)
    assert diagnose(Checkup((hint, likely))).leading is hint
    symptom = finding("diverging-loss")
    assert diagnose(Checkup((hint, symptom))).leading is hint


def test_what_costs_time_alone_leads_last() -> None:
    slow = finding("input-bound", severity=Severity.WARNING)
    hint = finding("reset-optimizer-state", confidence=Confidence.HINT)
    assert diagnose(Checkup((slow, hint))).leading is hint
    assert diagnose(Checkup((slow,))).leading is slow


def test_a_measured_cause_explains_a_finding_from_the_source_and_not_its_effects() -> None:
    source = finding("misread-axes", confidence=Confidence.LIKELY)
    labels = finding("unrelated-labels", confidence=Confidence.LIKELY)
    mixed = finding("mixed-samples")
    assert {"misread-axes"} <= reached_by(mixed)
    assert "unrelated-labels" not in reached_by(mixed)
    assert diagnose(Checkup((labels, source))).leading is source
