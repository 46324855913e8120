"""Logs of real tools give the run that holter recorded beside them, as far as they reach."""

import json
from pathlib import Path

import numpy as np
import pytest

import holter
from holter import OutcomeState, Run
from holter.imports import import_log
from holter.record.signals import ACCURACY, GRAD_TOTAL_NORM, LOSS, LR, VAL_LOSS

TRAININGS = ("learns", "overfits", "breaks")
TOOLS = {
    "tensorboard": "TensorBoard event file",
    "wandb": "W&B offline run",
    "mlruns": "MLflow store",
    "lightning_logs": "CSV table",
    "metrics.jsonl": "JSON log",
    "train.log": "text log",
    "exported.csv": "CSV table",
}
LESS = ("train.log", "exported.csv")  # do not log all numbers, or not all digits


@pytest.mark.parametrize("tool", TOOLS)
def test_readings_are_those_that_were_recorded(logs: Path, tool: str) -> None:
    for training in TRAININGS:
        recorded, run = Run.load(logs / training / "run"), import_log(logs / training / tool)
        assert run.meta.source is not None
        assert run.meta.source.kind == TOOLS[tool]
        assert run.steps == recorded.steps
        (loss,) = recorded[LOSS].values()
        assert run[LOSS][""].steps.tolist() == loss.steps.tolist()
        np.testing.assert_allclose(run[LOSS][""].values, loss.values, atol=1e-6)
        if tool == "exported.csv":
            continue
        (validation,) = recorded[VAL_LOSS].values()
        assert run[VAL_LOSS][""].steps.tolist() == validation.steps.tolist()
        np.testing.assert_allclose(run[VAL_LOSS][""].values, validation.values, atol=1e-5)
        if tool not in LESS:
            (norm,) = recorded[GRAD_TOTAL_NORM].values()
            np.testing.assert_allclose(run[GRAD_TOTAL_NORM][""].values, norm.values, rtol=1e-4)
            assert {LR, ACCURACY} <= {signal for signal in (LR, ACCURACY) if signal in run}
            assert "time/forward" in run.meta.source.ignored


@pytest.mark.parametrize("tool", TOOLS)
def test_the_diagnosis_is_that_of_the_recorded_run(logs: Path, tool: str) -> None:
    for training in TRAININGS:
        run = import_log(logs / training / tool)
        told = holter.check(run)
        direct = holter.check(Run.load(logs / training / "run"))
        examined = {verdict.rule for verdict in (*told.clear, *told.normal, *told.findings)}
        there = {finding.rule for finding in direct.findings} & examined
        assert {finding.rule for finding in told.findings} == there, training
        if training != "overfits" or VAL_LOSS in run:
            assert told.outcome.state is direct.outcome.state
        assert len(told.not_examined) > len(direct.not_examined)
        assert not told.failures


def test_what_happened_is_found(logs: Path) -> None:
    expected = {
        "learns": (OutcomeState.LEARNED, set()),
        "overfits": (OutcomeState.OVERFITS, {"overfitting"}),
        "breaks": (OutcomeState.BROKE, {"nonfinite-loss", "nonfinite-gradient"}),
    }
    for training, (state, rules) in expected.items():
        checkup = holter.check(import_log(logs / training / "tensorboard"))
        assert checkup.outcome.state is state
        assert {finding.rule for finding in checkup.findings} == rules


def test_the_state_of_trainer(logs: Path) -> None:
    run = import_log(logs / "trainer")
    history = json.loads((logs / "trainer-history.json").read_text())
    losses = {row["step"]: row["loss"] for row in history if "loss" in row}
    assert dict(zip(run[LOSS][""].steps.tolist(), run[LOSS][""].values, strict=True)) == (
        pytest.approx(losses)
    )
    assert len(run[VAL_LOSS][""]) == 6
    assert holter.check(run).outcome.state is OutcomeState.LEARNED
    printed = import_log(logs / "trainer.log")
    np.testing.assert_allclose(printed[LOSS][""].values, run[LOSS][""].values, atol=1e-3)


def test_epochs_of_keras(logs: Path) -> None:
    run = import_log(logs / "keras.csv")
    assert run.steps == 24
    assert any("a step of this run is an epoch" in note for note in run.meta.notes)
    checkup = holter.check(run)
    assert checkup.outcome.state is OutcomeState.LEARNED
    assert not checkup.findings
