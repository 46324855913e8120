"""The same small training in every framework: the readings and the diagnosis of a loop by hand."""

import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import holter
from holter import Run
from holter.lab.running import run as run_experiment
from holter.record.events import ExceptionRaised, NotApplicable
from holter.record.signals import GRAD_TOTAL_NORM, LOSS, LR, VAL_LOSS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # of the frameworks
]

STEPS, RATE, CLIP = 40, 0.1, 0.5
Train = Callable[[nn.Module, DataLoader, DataLoader, Path], Path]


def data(*, broken: bool = False) -> tuple[DataLoader, DataLoader]:
    torch.manual_seed(0)
    inputs = torch.randn(16 * STEPS + 64, 6)
    labels = inputs[:, :3].argmax(1)
    if broken:
        inputs[16 * 20, 2] = float("nan")
    train = TensorDataset(inputs[:-64], labels[:-64])
    return DataLoader(train, 16), DataLoader(
        TensorDataset(inputs[-64:].nan_to_num(), labels[-64:]), 64
    )


def net() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))


def by_hand(model: nn.Module, train: DataLoader, valid: DataLoader, out: Path) -> Path:
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    with holter.watch(model, optimizer, out, quiet=True):
        for x, y in train:
            optimizer.zero_grad()
            functional.cross_entropy(model(x), y).backward()
            nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimizer.step()
        with torch.no_grad():
            for x, y in valid:
                functional.cross_entropy(model(x), y)
    return out


def with_lightning(model: nn.Module, train: DataLoader, valid: DataLoader, out: Path) -> Path:
    import lightning

    from holter.integrations.lightning import HolterCallback

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = model

        def training_step(self, batch: list[Tensor], _: int) -> Tensor:
            return functional.cross_entropy(self.net(batch[0]), batch[1])

        def validation_step(self, batch: list[Tensor], _: int) -> None:
            functional.cross_entropy(self.net(batch[0]), batch[1])

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=RATE)

    trainer = lightning.Trainer(
        max_epochs=1,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        gradient_clip_val=CLIP,
        num_sanity_val_steps=0,
        callbacks=[HolterCallback(out, show=False, quiet=True)],
    )
    trainer.fit(Module(), train, valid)
    return out


def with_transformers(model: nn.Module, train: DataLoader, valid: DataLoader, out: Path) -> Path:
    import transformers

    from holter.integrations.transformers import HolterCallback

    class Classifier(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = model

        def forward(self, x: Tensor, labels: Tensor) -> dict[str, Tensor]:
            logits = self.net(x)
            return {"loss": functional.cross_entropy(logits, labels), "logits": logits}

    def rows(loader: DataLoader) -> list[dict[str, Tensor]]:
        return [{"x": x, "labels": y} for x, y in loader.dataset]

    class InOrder(transformers.Trainer):
        def _get_train_sampler(self, *_: object) -> torch.utils.data.Sampler:
            return torch.utils.data.SequentialSampler(self.train_dataset)

    arguments = transformers.TrainingArguments(
        output_dir=str(out) + "-trainer",
        num_train_epochs=1,
        per_device_train_batch_size=16,
        per_device_eval_batch_size=64,
        learning_rate=RATE,
        lr_scheduler_type="constant",
        max_grad_norm=CLIP,
        optim="sgd",
        save_strategy="no",
        eval_strategy="epoch",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    trainer = InOrder(
        Classifier(),
        arguments,
        train_dataset=rows(train),
        eval_dataset=rows(valid),
        callbacks=[HolterCallback(out, show=False, quiet=True)],
    )
    trainer.train()
    return out


def with_accelerate(model: nn.Module, train: DataLoader, valid: DataLoader, out: Path) -> Path:
    from accelerate import Accelerator

    from holter.integrations import accelerate

    accelerator = Accelerator(cpu=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    prepared, optimizer, train, valid = accelerator.prepare(model, optimizer, train, valid)
    with accelerate.watch(accelerator, prepared, optimizer, out=out, quiet=True):
        for x, y in train:
            optimizer.zero_grad()
            accelerator.backward(functional.cross_entropy(prepared(x), y))
            accelerator.clip_grad_norm_(prepared.parameters(), CLIP)
            optimizer.step()
        with torch.no_grad():
            for x, y in valid:
                functional.cross_entropy(prepared(x), y)
    return out


def with_ignite(model: nn.Module, train: DataLoader, valid: DataLoader, out: Path) -> Path:
    from ignite.engine import Engine, Events

    from holter.integrations.ignite import attach

    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)

    def update(_: Engine, batch: list[Tensor]) -> None:
        optimizer.zero_grad()
        functional.cross_entropy(model(batch[0]), batch[1]).backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()

    def evaluate(_: Engine, batch: list[Tensor]) -> None:
        with torch.no_grad():
            functional.cross_entropy(model(batch[0]), batch[1])

    trainer, evaluator = Engine(update), Engine(evaluate)
    trainer.add_event_handler(Events.EPOCH_COMPLETED, lambda: evaluator.run(valid))
    attach(trainer, model, optimizer, out=out, show=False, quiet=True)
    trainer.run(train, max_epochs=1)
    return out


FRAMEWORKS = {
    "lightning": with_lightning,
    "transformers": with_transformers,
    "accelerate": with_accelerate,
    "ignite": with_ignite,
}
frameworks = pytest.mark.parametrize("train", FRAMEWORKS.values(), ids=FRAMEWORKS)


def only(run: Run, signal: object) -> np.ndarray:
    (series,) = run[signal].values()  # type: ignore[index]
    return series.values


@frameworks
def test_readings_are_those_of_a_loop_by_hand(train: Train, tmp_path: Path) -> None:
    expected = Run.load(by_hand(net(), *data(), tmp_path / "hand"))
    run = Run.load(train(net(), *data(), tmp_path / "framework"))
    assert run.steps == expected.steps == STEPS
    assert run.meta.status == "finished"
    for signal in (LOSS, VAL_LOSS):
        assert only(run, signal) == pytest.approx(only(expected, signal), rel=1e-5)
    assert all((rate.values == np.float32(RATE)).all() for rate in run[LR].values())
    norms, wanted = only(run, GRAD_TOTAL_NORM), only(expected, GRAD_TOTAL_NORM)
    assert norms == pytest.approx(wanted, rel=1e-4)  # before clipping
    assert wanted.max() > CLIP


@frameworks
def test_the_same_fault_has_the_same_diagnosis(train: Train, tmp_path: Path) -> None:
    expected = holter.check(Run.load(by_hand(net(), *data(broken=True), tmp_path / "hand")))
    checkup = holter.check(Run.load(train(net(), *data(broken=True), tmp_path / "framework")))
    leading, wanted = holter.diagnose(checkup).leading, holter.diagnose(expected).leading
    assert leading is not None
    assert wanted is not None
    assert (leading.rule, leading.onset) == (wanted.rule, wanted.onset)
    assert leading.rule == "nonfinite-inputs"


KERAS = """\
import os, sys
os.environ["KERAS_BACKEND"] = "torch"
import keras, numpy as np
from holter.integrations.keras import HolterCallback
keras.utils.set_random_seed(0)
inputs = np.random.randn(640, 6).astype("float32")
labels = inputs[:, :3].argmax(1)
if sys.argv[2] == "broken":
    inputs[320, 2] = float("nan")
model = keras.Sequential([keras.layers.Dense(16, activation="relu"), keras.layers.Dense(3)])
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
class Ending(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch == 6 and sys.argv[2] == "interrupted":
            raise KeyboardInterrupt
history = model.fit(inputs, labels, batch_size=16, shuffle=False, verbose=0,
                    callbacks=[HolterCallback(sys.argv[1], show=False, quiet=True), Ending()])
print(history.history["loss"][0])
"""


@pytest.mark.parametrize("kind", ["healthy", "broken", "interrupted"])
def test_keras(kind: str, tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", KERAS, str(tmp_path / "run"), kind],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
    )
    run = Run.load(tmp_path / "run")
    if kind == "interrupted":
        assert "KeyboardInterrupt" in ended.stderr
        assert (run.meta.status, run.steps) == ("interrupted", 7)
        return
    assert ended.returncode == 0, ended.stderr
    assert run.steps == STEPS
    losses = only(run, LOSS)
    if kind == "healthy":
        assert float(losses.mean()) == pytest.approx(float(ended.stdout), rel=1e-3)
        assert holter.check(run).findings == ()
    else:
        leading = holter.diagnose(holter.check(run)).leading
        assert leading is not None
        assert leading.rule == "nonfinite-inputs"


class Ending(nn.Module):
    """Ends the training in its seventh forward pass."""

    def __init__(self, inner: nn.Module, error: type[BaseException]) -> None:
        super().__init__()
        self.inner, self.error, self.calls = inner, error, 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        if self.calls == 7:
            raise self.error("no seventh batch")
        return self.inner(x)


ENDS = {"failed": ValueError, "interrupted": KeyboardInterrupt}


@pytest.mark.parametrize("status", ENDS)
@frameworks
def test_a_training_that_breaks_off_has_a_run_that_says_so(
    train: Train, status: str, tmp_path: Path
) -> None:
    error = ENDS[status]
    with pytest.raises((error, SystemExit)):  # Lightning exits at Ctrl-C
        train(Ending(net(), error), *data(), tmp_path / "run")
    run = Run.load(tmp_path / "run")
    assert run.meta.status == status
    assert run.steps == 6
    assert [event.what.type for event in run.events_of(ExceptionRaised)] == [error.__name__]


def test_a_user_decides_whether_an_exception_leaves_the_engine(tmp_path: Path) -> None:
    from ignite.engine import Engine, Events

    from holter.integrations.ignite import attach

    model = Ending(net(), ENDS["failed"])
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    seen: list[BaseException] = []

    def update(_: Engine, batch: list[Tensor]) -> None:
        functional.cross_entropy(model(batch[0]), batch[1]).backward()
        optimizer.step()

    def keep(_: Engine, error: BaseException) -> None:
        seen.append(error)

    trainer = Engine(update)
    trainer.add_event_handler(Events.EXCEPTION_RAISED, keep)
    session = attach(trainer, model, optimizer, out=tmp_path / "run", show=False, quiet=True)
    trainer.run(data()[0], max_epochs=1)
    assert [str(error) for error in seen] == ["no seventh batch"]
    assert Run.load(session.path).meta.status == "finished"


def lightning_setup() -> holter.Setup:
    import lightning

    from holter.integrations.lightning import setup_of

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = net()

        def training_step(self, batch: list[Tensor], _: int) -> dict[str, Tensor]:
            loss = functional.cross_entropy(self.net(batch[0]), batch[1])
            self.log("loss", loss)
            return {"loss": loss}

        def configure_optimizers(self) -> dict[str, Any]:
            optimizer = torch.optim.SGD(self.parameters(), lr=RATE)
            schedule = torch.optim.lr_scheduler.ConstantLR(optimizer, 1.0)
            return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule}}

    made = setup_of(Module(), *data(), max_norm=CLIP)
    assert len(made.schedulers) == 1
    return made


def trainer_setup() -> holter.Setup:
    import transformers

    from holter.integrations.transformers import setup_of

    class Classifier(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net()

        def forward(self, x: Tensor) -> Tensor:
            return self.net(x)

    class OwnLoss(transformers.Trainer):
        def compute_loss(self, model: nn.Module, inputs: dict[str, Tensor], **_: Any) -> Tensor:
            return functional.cross_entropy(model(inputs["x"]), inputs.pop("labels"))

        def _get_train_sampler(self, *_: object) -> torch.utils.data.Sampler:
            return torch.utils.data.SequentialSampler(self.train_dataset)

    arguments = transformers.TrainingArguments(
        output_dir=tempfile.mkdtemp(),  # which it makes
        per_device_train_batch_size=16,
        learning_rate=RATE,
        max_grad_norm=CLIP,
        optim="sgd",
        report_to=[],
        use_cpu=True,
        remove_unused_columns=False,
    )
    rows = [{"x": x, "labels": y} for x, y in data()[0].dataset]
    return setup_of(OwnLoss(Classifier(), arguments, train_dataset=rows))


@pytest.mark.parametrize("made", [lightning_setup, trainer_setup])
def test_a_setup_takes_the_steps_of_a_loop_by_hand(
    made: Callable[[], holter.Setup], tmp_path: Path
) -> None:
    """Where the step of a script cannot be extracted, the integration gives it to experiments."""
    setup = made()
    expected = only(Run.load(by_hand(net(), *data(), tmp_path / "hand")), LOSS)
    losses = [setup.step(batch) for batch in setup.batches(10)]
    assert losses == pytest.approx(expected[:10], rel=1e-5)
    run = run_experiment("input-control", made(), tmp_path / "run")
    assert run.events_of(NotApplicable) == []
    assert holter.check(run).findings == ()


@pytest.mark.parametrize("framework", ["lightning", "transformers"])
def test_a_callback_knows_the_setup(
    framework: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    integration = importlib.import_module(f"holter.integrations.{framework}")
    asked: list[tuple[holter.Setup, float]] = []

    class Asking(integration.HolterCallback):
        def on_train_end(self, *args: Any, **objects: Any) -> None:
            setup = self.training_setup()
            asked.append((setup, float(setup.loss(setup.batches(1)[0]).detach())))
            super().on_train_end(*args, **objects)

    monkeypatch.setattr(integration, "HolterCallback", Asking)
    out = FRAMEWORKS[framework](net(), *data(), tmp_path / "run")
    ((setup, loss),) = asked
    assert 0 < loss < only(Run.load(out), LOSS)[0]  # of the trained model
    assert setup.valid is not None
    assert (setup.phases[0].max_norm, setup.accumulation) == (CLIP, 1)


LIGHTNING = """\
import sys, lightning, torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

lightning.seed_everything(0)
x = torch.randn(1280, 6)
y = x[:, :3].argmax(1)
if "broken" in sys.argv:
    x[320, 2] = float("nan")
train, valid = TensorDataset(x[:1024], y[:1024]), TensorDataset(x[1024:], y[1024:])

class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 3))

    def training_step(self, batch, _):
        loss = nn.functional.cross_entropy(self.net(batch[0]), batch[1])
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, _):
        self.log("val_loss", nn.functional.cross_entropy(self.net(batch[0]), batch[1]))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-2)

trainer = lightning.Trainer(
    max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False)
trainer.fit(Classifier(), DataLoader(train, 32, shuffle=True), DataLoader(valid, 256))
"""
TRAINER = """\
import sys, torch, transformers
from torch import nn

transformers.set_seed(0)
x = torch.randn(1280, 6)
y = x[:, :3].argmax(1)
if "broken" in sys.argv:
    x[320, 2] = float("nan")
rows = [{"x": a, "labels": b} for a, b in zip(x, y)]

class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 3))

    def forward(self, x, labels):
        logits = self.net(x)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}

arguments = transformers.TrainingArguments(
    "results", num_train_epochs=2, per_device_train_batch_size=32, per_device_eval_batch_size=256,
    learning_rate=1e-2, save_strategy="no", eval_strategy="epoch", report_to=[], use_cpu=True,
    disable_tqdm=True)
trainer = transformers.Trainer(
    Classifier(), arguments, train_dataset=rows[:1024], eval_dataset=rows[1024:])
trainer.train()
"""
scripts = pytest.mark.parametrize("script", [LIGHTNING, TRAINER], ids=["lightning", "transformers"])


def examined(script: str, folder: Path, *words: str, broken: bool = False) -> dict[str, Any]:
    """What a command says of an unmodified script, as JSON; the script leaves no files."""
    (folder / "train.py").write_text(script)
    done = subprocess.run(
        [sys.executable, "-m", "holter", *words, "--json", "train.py", *["broken"] * broken],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
    )
    assert done.returncode == int(broken), done.stderr
    assert {path.name for path in folder.iterdir()} <= {"train.py", "holter-runs", "__pycache__"}
    return json.loads(done.stdout)


@scripts
def test_preflight_of_an_unmodified_script(script: str, tmp_path: Path) -> None:
    checks = "samples,inputs-matter,eval-gap,data-finite,splits"  # the last needs validation data
    shown = examined(script, tmp_path, "try", "preflight", "--only", checks)
    states = {check["check"]: check["status"] for check in shown["checklist"]}
    assert {states[name] for name in checks.split(",")} == {"PASS"}, states


@pytest.mark.exhaustive
@scripts
def test_doctor_of_an_unmodified_script(script: str, tmp_path: Path) -> None:
    # By default it takes at most ten times as long as the script itself, on a loaded machine, too.
    shown = examined(script, tmp_path, "doctor", broken=True)
    # That may not suffice to look at the samples one by one.
    assert shown["diagnosis"]["leading"]["rule"] in ("nonfinite-samples", "nonfinite-inputs")
