"""Runs that are sent to the real trackers, and read back by their own readers."""

import json
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
    findings = {(name, step): value for name, step, value in what.scalars() if "/finding/" in name}
    assert findings["holter/finding/nonfinite-loss", 20] == 1
    assert len(findings) == len(what.checkup.findings)
    assert "nonfinite" in what.summary


def test_tensorboard(path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    sender("tensorboard")(path)
    events = EventAccumulator(str(path / "tensorboard")).Reload()
    name = next(tag for tag in events.Tags()["scalars"] if _is_loss(tag))
    values = events.Scalars(name)
    assert [each.step for each in values] == list(range(STEPS))
    assert any(each.value != each.value for each in values)  # NaN
    assert [each.step for each in events.Scalars("holter/finding/nonfinite-loss")] == [20]
    assert any("diagnosis" in tag for tag in events.Tags()["tensors"])
    assert "<html" in (path / "tensorboard" / "holter.html").read_text(encoding="utf-8")


def test_mlflow(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import mlflow

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri(f"file:{tmp_path / 'mlruns'}")
    sender("mlflow")(path)
    client = mlflow.MlflowClient()
    (run,) = client.search_runs(["0"])
    assert "nonfinite" in run.data.tags["holter.diagnosis"]
    assert "holter.nonfinite-loss" in run.data.tags
    assert run.data.metrics["holter/finding/nonfinite-loss"] == 1
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
    kept = log.read_bytes()
    assert b"holter: nonfinite-loss" in kept  # the alert
    assert b"holter-report" in kept  # the artifact
    assert b"holter/finding/nonfinite-loss" in kept
    checkup = holter.check(holter.import_log(log, {_loss_of(path): LOSS}))
    assert "nonfinite-loss" in {finding.rule for finding in checkup.findings}


TRACKIO = """\
import json, sys
from pathlib import Path
from holter.integrations.trackers import sender
sender("trackio")(Path(sys.argv[1]))
import trackio
from trackio.sqlite_storage import SQLiteStorage
(run,) = trackio.Api().runs("holter")
rows = SQLiteStorage.get_logs("holter", run.name)
print(json.dumps({
    "diagnosis": run.config["diagnosis"],
    "steps": sorted({row["step"] for row in rows}),
    "names": sorted({name for row in rows for name in row}),
    "alerts": [[alert["title"], alert["level"]] for alert in run.alerts()],
}))
"""


def test_trackio(path: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", TRACKIO, str(path)],
        env={**os.environ, "TRACKIO_DIR": str(tmp_path), "HF_HUB_OFFLINE": "1"},
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    kept = json.loads(done.stdout.splitlines()[-1])
    assert "nonfinite" in kept["diagnosis"]
    assert kept["steps"] == list(range(STEPS))
    assert {_loss_of(path), "holter/finding/nonfinite-loss"} <= set(kept["names"])
    assert ["holter: nonfinite-loss", "error"] in kept["alerts"]
    stored = [file for file in (tmp_path / "artifacts").rglob("*") if file.is_file()]
    assert any(b"<html" in file.read_bytes() for file in stored)


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


SCRIPT = """\
import torch
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    model(torch.randn(4, 2)).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_one_option_of_run_turns_it_on(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)

    def run(tracker: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "holter", "run", "--out", "run", "--to", tracker, "train.py"],
            cwd=tmp_path,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
            check=False,
            capture_output=True,
            text=True,
        )

    refused = run("comet")
    assert refused.returncode == 2
    assert refused.stderr.startswith("holter: There is no tracker 'comet'")
    assert not (tmp_path / "run").exists()  # before the training begins
    done = run("tensorboard")
    assert done.returncode == 0, done.stderr
    assert f"sent to {Path('run', 'tensorboard')}" in done.stderr
    sent = {path.name.split(".")[0] for path in (tmp_path / "run" / "tensorboard").iterdir()}
    assert sent == {"events", "holter"}


def test_an_unknown_tracker_is_one_sentence() -> None:
    with pytest.raises(HolterError, match="There is no tracker 'comet'; there are tensorboard"):
        sender("comet")
