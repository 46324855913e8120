"""Logs of real tools give the run that holter recorded beside them, as far as they reach."""

import json
import subprocess
import sys
from importlib.util import find_spec
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
            shown = run[GRAD_TOTAL_NORM][""]  # of all steps: a slow machine samples what it records
            there = shown.values[np.isin(shown.steps, norm.steps)]
            np.testing.assert_allclose(there, norm.values, rtol=1e-4)
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


DATABASE = """\
import math, sys
import mlflow
mlflow.set_tracking_uri(sys.argv[1])
with mlflow.start_run():
    for step in range(60):
        loss = math.nan if step >= 40 else 2 / (step + 1)
        mlflow.log_metrics({"train/loss": loss, "lr": 0.1, "other": 1.0}, step=step)
"""


def test_a_database_that_mlflow_writes(tmp_path: Path) -> None:
    """The default store of MLflow; the package mlflow-skinny writes it where sqlalchemy is."""
    for name in ("mlflow", "sqlalchemy", "alembic"):
        if find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    path = tmp_path / "mlflow.db"
    words = [sys.executable, "-c", DATABASE, f"sqlite:///{path.as_posix()}"]
    subprocess.run(words, check=True, timeout=280, capture_output=True, cwd=tmp_path)
    run = import_log(path)
    assert run.meta.source is not None
    assert run.meta.source.kind == "MLflow store"
    assert run.meta.source.ignored == ("other",)
    expected = [2 / (step + 1) for step in range(40)] + [np.nan] * 20
    np.testing.assert_allclose(run[LOSS][""].values, expected, rtol=1e-6)
    assert {finding.rule for finding in holter.check(run).findings} == {"nonfinite-loss"}


def test_epochs_of_keras(logs: Path) -> None:
    run = import_log(logs / "keras.csv")
    assert run.steps == 24
    assert any("a step of this run is an epoch" in note for note in run.meta.notes)
    checkup = holter.check(run)
    assert checkup.outcome.state is OutcomeState.LEARNED
    assert not checkup.findings
