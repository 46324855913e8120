"""Runs that are sent to the real trackers, and read back by their own readers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import holter
from holter import HolterError, Run
from holter.integrations.trackers import Sendable, sender
from holter.record.signals import LOSS

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

STEPS = 30


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose loss becomes NaN at step 20."""
    torch.manual_seed(0)
    out = tmp_path_factory.mktemp("runs") / "run"
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with holter.watch(model, optimizer, out, quiet=True):
        for step in range(STEPS):
            loss = model(torch.randn(8, 4)).pow(2).mean() * (float("nan") if step == 20 else 1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return out


def test_all_readings_of_steps_are_sent_and_none_of_parameters(path: Path) -> None:
    run = Run.load(path)
    what = Sendable(run, holter.check(run))
    names = {name for name, _, _ in what.scalars()}
    assert {"holter/loss", "holter/grad.total_norm"} <= {name.split("/Linear")[0] for name in names}
    assert not any(name.endswith(".weight") for name in names)
    assert len(list(what.by_step())) == STEPS
    assert "nonfinite" in what.summary


def test_tensorboard(path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    sender("tensorboard")(path)
    events = EventAccumulator(str(path / "tensorboard")).Reload()
    name = next(tag for tag in events.Tags()["scalars"] if _is_loss(tag))
    values = events.Scalars(name)
    assert [each.step for each in values] == list(range(STEPS))
    assert any(each.value != each.value for each in values)  # NaN
    assert any("diagnosis" in tag for tag in events.Tags()["tensors"])


def test_mlflow(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import mlflow

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri(f"file:{tmp_path / 'mlruns'}")
    sender("mlflow")(path)
    client = mlflow.MlflowClient()
    (run,) = client.search_runs(["0"])
    assert "nonfinite" in run.data.tags["holter.diagnosis"]
    name = next(each for each in run.data.metrics if _is_loss(each))
    assert len(client.get_metric_history(run.info.run_id, name)) == STEPS
    assert [each.path for each in client.list_artifacts(run.info.run_id)] == ["holter.html"]


def test_a_tracker_that_fails_is_one_sentence(
    path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    import mlflow

    monkeypatch.delenv("MLFLOW_ALLOW_FILE_STORE", raising=False)
    mlflow.set_tracking_uri("nowhere://at-all")
    sender("mlflow")(path)
    assert "sending the run to mlflow failed" in capfd.readouterr().err


OFFLINE = """\
import sys
from pathlib import Path
from holter.integrations.trackers import sender
sender("wandb")(Path(sys.argv[1]))
"""


def test_wandb_offline(path: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "WANDB_MODE": "offline", "WANDB_DIR": str(tmp_path)}
    subprocess.run(
        [sys.executable, "-c", OFFLINE, str(path)],
        env=environment,
        check=True,
        capture_output=True,
        timeout=120,
    )
    (log,) = tmp_path.rglob("*.wandb")
    checkup = holter.check(holter.import_log(log, {_loss_of(path): LOSS}))
    assert "nonfinite-loss" in {finding.rule for finding in checkup.findings}


def _loss_of(path: Path) -> str:
    run = Run.load(path)
    what = Sendable(run, holter.check(run))
    return next(name for name, _, _ in what.scalars() if _is_loss(name))


def _is_loss(name: str) -> bool:
    return name == "holter/loss" or name.startswith("holter/loss/")


def test_one_option_of_watch_turns_it_on(tmp_path: Path) -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with holter.watch(model, optimizer, tmp_path / "run", quiet=True, to="tensorboard"):
        for _ in range(3):
            model(torch.randn(4, 2)).pow(2).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    assert list((tmp_path / "run" / "tensorboard").iterdir())


def test_an_unknown_tracker_is_one_sentence() -> None:
    with pytest.raises(HolterError, match="There is no tracker 'comet'; there are tensorboard"):
        sender("comet")
