"""Failures of the zoo: truths name what exists, and replays find them."""

import subprocess
import sys
from pathlib import Path

import pytest

from holter import Run, check, diagnose
from holter.diagnosis.facts.replays import Replayed, replayed
from holter.lab.birth import KINDS
from zoo.failures import FAILURES, TRUTHS
from zoo.specimens import Specimen, corpus


def test_truths_name_specimens() -> None:
    names = [each.name for each in (*corpus(), *FAILURES)]
    assert len(set(names)) == len(names)
    assert set(TRUTHS) <= set(names)
    assert len(FAILURES) >= 16
    assert {each.kind for each in TRUTHS.values()} <= {"", *KINDS}
    for each in FAILURES:
        compile(each.script, each.name, "exec")


def found(folder: Path, name: str) -> Replayed:
    (specimen,) = (each for each in FAILURES if each.name == name)
    _holter(folder, specimen, "run", "--no-check", "--out", "run", "train.py")
    _holter(folder, specimen, "try", "replay", "run")
    told = replayed(Run.load(folder / "run"))
    assert told is not None
    return told


def _holter(folder: Path, specimen: Specimen, *arguments: str) -> None:
    (folder / "train.py").write_text(specimen.script)
    subprocess.run(
        [sys.executable, "-m", "holter", *arguments],
        cwd=folder,
        capture_output=True,
        check=False,
        timeout=120,
    )


@pytest.mark.slow
def test_a_birth_in_the_second_micro_batch(tmp_path: Path) -> None:
    told = found(tmp_path, "regression-second-micro-batch")
    assert told.verdict == "bit for bit"  # with dropout: each batch has its own random state
    assert told.birth is not None
    assert told.birth.kind == "log of zero"
    assert "torch.log(y)" in told.birth.line
    assert (told.birth.micro_batch, told.birth.samples) == (1, (5,))
    assert told.birth.indices == (1973,)
    assert told.is_data


@pytest.mark.slow
def test_a_hand_written_optimizer_is_named_with_the_line_that_calls_it(tmp_path: Path) -> None:
    told = found(tmp_path, "regression-hand-written-optimizer")
    birth = told.birth
    assert birth is not None
    assert (birth.phase, birth.kind) == ("update", "outside domain")
    assert ".sqrt()" in birth.line
    lines = (tmp_path / "train.py").read_text().splitlines()
    file, number = birth.stepped_at.split(":")
    assert file == "train.py"
    assert lines[int(number) - 1].strip() == "optimizer.step()"
    assert told.minimal_cure is not None
    assert told.minimal_cure.name == "guarded sqrt"


@pytest.mark.exhaustive
@pytest.mark.slow
def test_an_accumulation_that_changes_is_no_poisonous_batch(tmp_path: Path) -> None:
    told = found(tmp_path, "regression-changed-accumulation")
    assert told.minimal_cure is not None
    assert told.minimal_cure.name == "gradients divided by the backward passes of a step"
    leading = diagnose(check(Run.load(tmp_path / "run"))).leading
    assert leading is not None
    assert leading.rule == "changed-accumulation"


@pytest.mark.exhaustive
@pytest.mark.slow
def test_the_rate_of_before_cures_a_schedule_that_jumps(tmp_path: Path) -> None:
    told = found(tmp_path, "gan-raised-rate")
    assert told.alarm == "spike"
    assert told.birth is None
    assert told.all_tried
    assert told.minimal_cure is not None
    assert told.minimal_cure.name == "learning rate before it rose"
    assert told.triage is not None
    assert told.triage.says.startswith("state")


@pytest.mark.exhaustive
@pytest.mark.slow
def test_a_clamped_critic_is_clamped_again_and_its_phases_take_turns(tmp_path: Path) -> None:
    told = found(tmp_path, "gan-clamped-critic")
    assert told.verdict == "bit for bit"
    assert "clamp_" in told.says
    assert told.is_data


@pytest.mark.exhaustive
@pytest.mark.slow
def test_a_loss_scale_by_hand_is_known_from_a_second_run(tmp_path: Path) -> None:
    told = found(tmp_path, "regression-hand-written-scaler")
    assert told.verdict == "bit for bit"
    assert told.is_data


@pytest.mark.slow
def test_weights_that_the_script_scales_are_the_cause(tmp_path: Path) -> None:
    told = found(tmp_path, "regression-scaled-by-hand")
    assert told.verdict == "bit for bit"
    assert told.about.edited == ("2.weight",)
    assert told.proven_cure is not None
    assert told.proven_cure.name == "edits of weights left out"


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "name",
    ["tabular-renormalised-head", "regression-averaged-weights", "regression-cycled-momentum"],
)
def test_what_lies_outside_the_step_is_replayed(tmp_path: Path, name: str) -> None:
    told = found(tmp_path, name)
    assert told.verdict == "bit for bit"
    assert told.is_data


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("regression-equal-row-in-worker", "zero by zero"),
        ("regression-cancelled-variance", "division by zero"),
    ],
)
def test_a_safe_form_comes_before_a_step_that_is_left_out(
    tmp_path: Path, name: str, kind: str
) -> None:
    told = found(tmp_path, name)
    assert told.birth is not None
    assert told.birth.kind == kind
    assert told.minimal_cure is not None
    assert told.minimal_cure.name == "guarded div"
