"""What rules conclude from a replayed failure, on events made by hand."""

from dataclasses import replace

import numpy as np

from holter import Run, Series, check, diagnose
from holter.diagnosis.engine import Checkup
from holter.diagnosis.facts.replays import replayed
from holter.record import Event
from holter.record.births import Birth
from holter.record.events import (
    BirthFound,
    ChangesTried,
    ChangeTried,
    Occurrence,
    Reproduced,
    TriageMade,
    WindowMeasure,
)
from holter.record.findings import Confidence
from holter.record.signals import REPLAY_LOSS, REPLAY_NORM
from holter.record.typed import from_json

BIRTH = BirthFound(
    from_json(
        Birth,
        {
            "operation": "log",
            "kind": "log of zero",
            "phase": "forward",
            "where": "train.py:13",
            "line": "loss = -p.log().mean()",
            "says": "-inf is born in log at train.py:13",
        },
    ),
    failing=59,
)
DATA = TriageMade(batch_on_older_weights=True, older_batch_on_these_weights=False)
STATE = TriageMade(batch_on_older_weights=False, older_batch_on_these_weights=True)
FAILS = WindowMeasure(nonfinite_at=59)
RULES = ("nonfinite-birth", "irreproducible-failure", "oversized-steps", "poisonous-batch")


def replay(
    *occurrences: Occurrence,
    verdict: str = "bit for bit",
    alarm: str = "nonfinite",
    onset: int = 59,
    departs_at: int | None = None,
    suspects: tuple[str, ...] = (),
    edited: tuple[str, ...] = (),
) -> Run:
    first = Reproduced(
        verdict,
        "it is said",
        failing=59,
        onset=onset,
        state_step=33,
        alarm=alarm,
        normal_loss=1.0,
        normal_spread=0.1,
        unchanged=FAILS,
        departs_at=departs_at,
        suspects=suspects,
        edited=edited,
    )
    series = Series(np.arange(33, 60), np.ones(27, np.float32))
    tables = {REPLAY_LOSS: {"unchanged": series}, REPLAY_NORM: {"unchanged": series}}
    return Run.of(tables, events=[Event(0, 0.0, what) for what in (first, *occurrences)])


def rungs(**outcomes: str) -> list[Occurrence]:
    families = {
        "rate": "learning rate x 0.1",
        "clip": "clip to 1",
        "precision": "float32",
        "guard": "guarded log",
        "accumulation": "as many batches per step as before",
        "epsilon": "larger epsilon",
        "batch": "previous batch",
        "skip": "step skipped",
    }
    measures = {"cures": WindowMeasure(late_loss=1.0), "does not": FAILS}
    told = [
        ChangeTried(families[family], measure=measures[outcome])
        for family, outcome in outcomes.items()
    ]
    return [*told, ChangesTried()]


def checked(run: Run) -> Checkup:
    return check(run, select=RULES)


def found(run: Run) -> set[str]:
    return {finding.rule for finding in checked(run).findings}


def test_a_birth_is_certain_and_says_where() -> None:
    (finding,) = checked(replay(BIRTH)).findings
    assert finding.rule == "nonfinite-birth"
    assert finding.confidence is Confidence.CERTAIN
    assert "train.py:13" in finding.summary
    assert finding.onset == 59
    assert "logits" in finding.fix


def test_a_window_without_a_failure_is_clear_of_all() -> None:
    checkup = checked(replay(verdict="bit for bit", alarm="asked"))
    assert checkup.findings == ()
    assert {verdict.rule for verdict in checkup.clear} == set(RULES)


def test_a_run_without_a_replay_is_not_examined() -> None:
    series = Series(np.arange(3), np.ones(3, np.float32))
    run = Run.of({REPLAY_LOSS: {"a": series}, REPLAY_NORM: {"a": series}})
    checkup = checked(run)
    assert {verdict.rule for verdict in checkup.not_examined} == set(RULES)


def test_a_failure_that_does_not_recur_is_reported() -> None:
    checkup = checked(replay(verdict="not reproduced"))
    (finding,) = checkup.findings
    assert finding.rule == "irreproducible-failure"
    assert finding.confidence is Confidence.LIKELY
    assert {verdict.rule for verdict in checkup.not_examined} == set(RULES) - {finding.rule}


def test_a_replay_that_did_not_reproduce_the_failure_concludes_nothing_certain() -> None:
    changes = rungs(rate="cures", batch="cures", skip="cures")
    checkup = checked(replay(BIRTH, *changes, DATA, verdict="not reproduced"))
    confidences = {finding.rule: finding.confidence for finding in checkup.findings}
    assert confidences == {
        "irreproducible-failure": Confidence.LIKELY,
        "nonfinite-birth": Confidence.HINT,
    }
    leading = diagnose(checkup).leading
    assert leading is not None and leading.rule == "irreproducible-failure"


def test_a_replay_that_departs_is_a_hint_and_rules_nothing_out() -> None:
    run = replay(verdict="not reproduced", departs_at=35, suspects=("code between the steps",))
    checkup = checked(run)
    (finding,) = checkup.findings
    assert finding.rule == "irreproducible-failure"
    assert finding.confidence is Confidence.HINT
    assert "--whole" in finding.fix
    assert not checkup.clear
    asked = checked(replay(verdict="not reproduced", alarm="asked"))
    assert not asked.clear and not asked.findings


def test_edits_of_weights_that_are_the_only_cure_are_the_cause() -> None:
    left_out = ChangeTried("edits of weights left out", measure=WindowMeasure(late_loss=1.0))
    run = replay(left_out, *rungs(rate="does not", batch="does not"), edited=("0.weight",))
    (finding,) = check(run, select=("damaging-weight-edits",)).findings
    assert "0.weight" in finding.summary
    other = replay(left_out, *rungs(batch="cures"), edited=("0.weight",))
    assert not check(other, select=("damaging-weight-edits",)).findings


def test_the_line_of_an_edit_is_named_if_it_produced_the_value() -> None:
    left_out = ChangeTried("edits of weights left out", measure=WindowMeasure(late_loss=1.0))
    tried = (left_out, *rungs(rate="does not", batch="does not"))
    edit = replace(BIRTH.birth, line="w.log_()", before_step=True)
    run = replay(BirthFound(edit, 59), *tried, edited=("0.weight",))
    (finding,) = check(run, select=("damaging-weight-edits",)).findings
    assert "train.py:13: `w.log_()`" in finding.summary
    assert "clamp_min" in finding.fix
    within = replay(BIRTH, *tried, edited=("0.weight",))  # born in the step, by what was written
    (finding,) = check(within, select=("damaging-weight-edits",)).findings
    assert "train.py:13" not in finding.summary + finding.fix


def test_smaller_steps_cure_and_other_batches_do_not() -> None:
    climbed = rungs(rate="cures", clip="cures", precision="does not", batch="does not")
    assert found(replay(*climbed, STATE)) == {"oversized-steps"}


def test_clipping_that_limits_the_damage_of_a_bad_batch_is_no_cause() -> None:
    climbed = rungs(rate="cures", clip="cures", batch="cures", skip="cures")
    run = replay(*climbed, replace(DATA, samples=(27,)))
    (finding,) = checked(run).findings
    assert finding.rule == "poisonous-batch"
    assert "27" in finding.summary


def test_a_batch_that_does_not_fail_on_older_weights_is_not_poisonous() -> None:
    climbed = rungs(rate="does not", batch="cures", skip="cures")
    assert found(replay(*climbed, STATE)) == set()


def test_a_batch_that_broke_the_weights_before_leads() -> None:
    climbed = rungs(rate="does not", batch="cures", skip="cures")
    late = replay(BIRTH, *climbed, DATA, onset=55)
    leading = diagnose(checked(late)).leading
    assert leading is not None and leading.rule == "poisonous-batch"
    at_once = replay(BIRTH, *climbed, DATA)
    leading = diagnose(checked(at_once)).leading
    assert leading is not None and leading.rule == "nonfinite-birth"


def test_a_batch_that_reached_an_unsafe_operation_does_not_lead() -> None:
    climbed = rungs(guard="cures", rate="does not", batch="cures", skip="cures")
    leading = diagnose(checked(replay(BIRTH, *climbed, DATA, onset=55))).leading
    assert leading is not None and leading.rule == "nonfinite-birth"


def test_without_trials_nothing_is_concluded_from_them() -> None:
    checkup = checked(replay(BIRTH))
    assert {verdict.rule for verdict in checkup.not_examined} == {
        "oversized-steps",
        "poisonous-batch",
    }


def test_changes_that_could_not_be_tried_are_no_all_clear() -> None:
    checkup = checked(replay(*rungs(precision="does not"), STATE))
    assert {verdict.rule for verdict in checkup.not_examined} == {
        "oversized-steps",
        "poisonous-batch",
    }


def test_smaller_steps_are_no_cause_where_float32_cures_as_well() -> None:
    assert found(replay(*rungs(rate="cures", precision="cures"), STATE)) == set()


def test_a_guard_that_cures_makes_the_operation_the_cause() -> None:
    climbed = rungs(guard="cures", rate="cures", clip="does not", batch="does not")
    checkup = checked(replay(BIRTH, *climbed, STATE))
    (finding,) = checkup.findings
    assert finding.rule == "nonfinite-birth"
    assert "train.py:13" in finding.fix
    assert "clamp_min" in finding.fix
    assert "clip" not in finding.fix
    assert "learning rate" not in finding.fix
    assert any(evidence.owner == "guarded log" for evidence in finding.evidence)
    (clear,) = (verdict for verdict in checkup.clear if verdict.rule == "oversized-steps")
    assert "guarded log" in clear.because


def test_a_guard_that_does_not_cure_leaves_the_step_size() -> None:
    climbed = rungs(guard="does not", rate="cures", clip="does not", batch="does not")
    diagnosis = diagnose(checked(replay(BIRTH, *climbed, STATE)))
    assert diagnosis.leading is not None
    assert diagnosis.leading.rule == "oversized-steps"
    assert diagnosis.leading.fix == "multiply the learning rate by 0.1"
    (birth,) = diagnosis.explained
    assert birth.fix == diagnosis.leading.fix


def test_an_operation_without_a_guard_is_the_cause_where_the_loss_was_normal_before() -> None:
    climbed = rungs(rate="cures", clip="cures", batch="does not")
    leading = diagnose(checked(replay(BIRTH, *climbed, STATE))).leading
    assert leading is not None and leading.rule == "nonfinite-birth"
    rising = diagnose(checked(replay(BIRTH, *climbed, STATE, onset=55))).leading
    assert rising is not None and rising.rule == "oversized-steps"


def test_another_batch_that_meets_these_weights_does_not_rule_out_the_step_size() -> None:
    climbed = rungs(clip="cures", batch="cures", skip="cures")
    neither = TriageMade(batch_on_older_weights=False, older_batch_on_these_weights=False)
    (finding,) = checked(replay(*climbed, neither)).findings
    assert finding.rule == "oversized-steps"
    assert "clip_grad_norm_(model.parameters(), 1)" in finding.fix


def test_gradients_that_explode_without_clipping_are_named() -> None:
    run = replay(*rungs(clip="cures"), STATE, onset=55)
    norms = np.where(np.arange(33, 60) < 55, 0.5, 4e4).astype(np.float32)
    tables = {
        REPLAY_LOSS: dict(run[REPLAY_LOSS].items()),
        REPLAY_NORM: {"unchanged": Series(np.arange(33, 60), norms)},
    }
    (finding,) = checked(Run.of(tables, events=run.events)).findings
    assert "from 0.5 to 4e+04 and are not clipped" in finding.summary


def test_many_samples_are_counted() -> None:
    climbed = rungs(batch="cures", skip="cures")
    run = replay(*climbed, replace(DATA, samples=tuple(range(12))))
    (finding,) = checked(run).findings
    assert "samples 0, 1, 2, 3, 4, 5, 6, 7 and 4 more fail" in finding.summary


def test_a_birth_in_the_optimizer_is_cured_by_its_epsilon() -> None:
    update = replace(
        BIRTH.birth,
        operation="addcdiv",
        kind="zero by zero",
        phase="update",
        where="train.py:20",
        line="optimizer.step()",
        stepped_at="train.py:20",
    )
    run = replay(BirthFound(update, 59), *rungs(epsilon="cures", rate="does not"), STATE)
    (finding,) = checked(run).findings
    assert finding.rule == "nonfinite-birth"
    assert finding.fix.startswith("at train.py:20, ")
    assert "eps=1e-8" in finding.fix
    climbed = rungs(batch="cures", skip="cures", epsilon="cures")
    told = replayed(replay(BirthFound(update, 59), *climbed, DATA))
    assert told is not None and told.minimal_cure is not None
    assert told.minimal_cure.name == "larger epsilon"


def test_only_the_last_replay_counts() -> None:
    earlier = replay(BIRTH)
    later = replay()
    both = Run(later.tables, (*earlier.events, *later.events))
    assert found(both) == set()


def test_a_setting_that_is_no_number_is_no_step_that_is_too_large() -> None:
    birth = replace(BIRTH.birth, kind="bad setting", phase="update", where="train.py:20")
    run = replay(replace(BIRTH, birth=birth), *rungs(rate="cures", batch="does not"), STATE)
    (finding,) = checked(run).findings
    assert finding.rule == "nonfinite-birth"
    assert "param_groups" in finding.fix


def test_a_counter_is_not_blamed_for_what_an_epsilon_cures() -> None:
    update = replace(BIRTH.birth, operation="addcdiv", kind="zero by zero", phase="update")
    counted = ChangeTried("counter held step=40", measure=WindowMeasure(late_loss=1.0))
    run = replay(BirthFound(update, failing=59), counted, *rungs(epsilon="cures", rate="does not"))
    told = check(run, select=("changed-settings", "nonfinite-birth"))
    assert [finding.rule for finding in told.findings] == ["nonfinite-birth"]
    alone = replay(counted, *rungs(epsilon="does not", rate="does not"))
    told = check(alone, select=("changed-settings",))
    assert [finding.rule for finding in told.findings] == ["changed-settings"]


def test_other_kernels_are_no_cure_where_smaller_steps_are() -> None:
    kernels = ChangeTried("math attention", measure=WindowMeasure(late_loss=1.0))
    told = replayed(replay(kernels, *rungs(rate="cures")))
    assert told is not None and told.minimal_cure is not None
    assert told.minimal_cure.name == "learning rate x 0.1"
    told = replayed(replay(kernels, *rungs(rate="does not")))
    assert told is not None and told.minimal_cure is not None
    assert told.minimal_cure.name == "math attention"
