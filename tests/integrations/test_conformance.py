"""The same small training in every framework: the readings and the diagnosis of a loop by hand."""

import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
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
from holter.record.signals import (
    GRAD_TOTAL_NORM,
    LOSS,
    LOSS_LOGGED,
    LR,
    MODE_TRAINING,
    VAL_LOSS,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # of the frameworks
]

STEPS, RATE, CLIP = 40, 0.1, 0.5  # batches of the epoch
Train = Callable[..., Path]


@dataclass(frozen=True)
class Way:
    """How the same batches are trained on."""

    accumulation: int = 1
    bfloat16: bool = False
    decay: bool = False  # the learning rate falls linearly to 0, update by update

    @property
    def steps(self) -> int:
        return STEPS // self.accumulation

    def rate(self, step: int) -> float:
        return 1 - step / self.steps if self.decay else 1.0

    def schedule(self, optimizer: torch.optim.Optimizer) -> torch.optim.lr_scheduler.LambdaLR:
        return torch.optim.lr_scheduler.LambdaLR(optimizer, self.rate)

    def autocast(self) -> torch.autocast:
        return torch.autocast("cpu", torch.bfloat16, enabled=self.bfloat16)


PLAIN, FULL = Way(), Way(accumulation=2, bfloat16=True, decay=True)


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


def by_hand(
    model: nn.Module, train: DataLoader, valid: DataLoader, out: Path, way: Way = PLAIN
) -> Path:
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    schedule = way.schedule(optimizer)
    with holter.watch(model, optimizer, out, quiet=True):
        for number, (x, y) in enumerate(train, 1):
            with way.autocast():
                loss = functional.cross_entropy(model(x), y)
            (loss / way.accumulation).backward()
            if number % way.accumulation:
                continue
            nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        model.eval()
        with torch.no_grad(), way.autocast():
            for x, y in valid:
                functional.cross_entropy(model(x), y)
    return out


def with_lightning(
    model: nn.Module, train: DataLoader, valid: DataLoader, out: Path, way: Way = PLAIN
) -> Path:
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

        def configure_optimizers(self) -> dict[str, Any]:
            optimizer = torch.optim.SGD(self.parameters(), lr=RATE)
            schedule = {"scheduler": way.schedule(optimizer), "interval": "step"}
            return {"optimizer": optimizer, "lr_scheduler": schedule}

    trainer = lightning.Trainer(
        max_epochs=1,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        gradient_clip_val=CLIP,
        accumulate_grad_batches=way.accumulation,
        precision="bf16-mixed" if way.bfloat16 else "32-true",
        num_sanity_val_steps=0,
        callbacks=[HolterCallback(out, show=False, quiet=True)],
    )
    trainer.fit(Module(), train, valid)
    return out


def with_transformers(
    model: nn.Module,
    train: DataLoader,
    valid: DataLoader,
    out: Path,
    way: Way = PLAIN,
    *,
    logging_steps: int = 500,
) -> Path:
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
        lr_scheduler_type="linear" if way.decay else "constant",
        gradient_accumulation_steps=way.accumulation,
        bf16=way.bfloat16,
        max_grad_norm=CLIP,
        optim="sgd",
        logging_steps=logging_steps,
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


def with_accelerate(
    model: nn.Module, train: DataLoader, valid: DataLoader, out: Path, way: Way = PLAIN
) -> Path:
    from accelerate import Accelerator

    from holter.integrations import accelerate

    accelerator = Accelerator(
        cpu=True,
        mixed_precision="bf16" if way.bfloat16 else "no",
        gradient_accumulation_steps=way.accumulation,
    )
    plain = torch.optim.SGD(model.parameters(), lr=RATE)
    prepared, optimizer, schedule, train, valid = accelerator.prepare(
        model, plain, way.schedule(plain), train, valid
    )
    with accelerate.watch(accelerator, prepared, optimizer, out=out, quiet=True):
        for x, y in train:
            with accelerator.accumulate(prepared):
                accelerator.backward(functional.cross_entropy(prepared(x), y))
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(prepared.parameters(), CLIP)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
        prepared.eval()
        with torch.no_grad():
            for x, y in valid:
                functional.cross_entropy(prepared(x), y)
    return out


def with_ignite(
    model: nn.Module, train: DataLoader, valid: DataLoader, out: Path, way: Way = PLAIN
) -> Path:
    from ignite.engine import Engine, Events

    from holter.integrations.ignite import attach

    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)

    schedule = way.schedule(optimizer)

    def update(engine: Engine, batch: list[Tensor]) -> None:
        with way.autocast():
            loss = functional.cross_entropy(model(batch[0]), batch[1])
        (loss / way.accumulation).backward()
        if engine.state.iteration % way.accumulation:
            return
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()

    def evaluate(_: Engine, batch: list[Tensor]) -> None:
        model.eval()
        with torch.no_grad(), way.autocast():
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


@pytest.fixture
def fresh_accelerator() -> Iterator[None]:
    """Accelerate keeps the precision of a process in a state that all accelerators share."""
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(reset_partial_state=True)
    yield
    AcceleratorState._reset_state(reset_partial_state=True)


@pytest.mark.usefixtures("fresh_accelerator")
@pytest.mark.parametrize("way", [PLAIN, FULL], ids=["plain", "accumulation-bfloat16-schedule"])
@frameworks
def test_readings_are_those_of_a_loop_by_hand(train: Train, way: Way, tmp_path: Path) -> None:
    expected = Run.load(by_hand(net(), *data(), tmp_path / "hand", way))
    run = Run.load(train(net(), *data(), tmp_path / "framework", way))
    assert run.steps == expected.steps == way.steps
    assert run.meta.status == "finished"
    precision = 0.02 if way.bfloat16 else 1e-5
    for signal in (LOSS, VAL_LOSS):
        assert only(run, signal) == pytest.approx(only(expected, signal), rel=precision)
    rates = [RATE * way.rate(step) for step in range(way.steps)]
    assert all(rate.values == pytest.approx(rates, rel=1e-5) for rate in run[LR].values())
    norms, wanted = only(run, GRAD_TOTAL_NORM), only(expected, GRAD_TOTAL_NORM)
    assert norms == pytest.approx(wanted, rel=10 * precision)  # before clipping
    assert wanted.max() > CLIP
    assert (only(run, MODE_TRAINING) == 1).all()  # the mode of the model in every step


@frameworks
def test_the_same_fault_has_the_same_diagnosis(train: Train, tmp_path: Path) -> None:
    expected = holter.check(Run.load(by_hand(net(), *data(broken=True), tmp_path / "hand")))
    checkup = holter.check(Run.load(train(net(), *data(broken=True), tmp_path / "framework")))
    leading, wanted = holter.diagnose(checkup).leading, holter.diagnose(expected).leading
    assert leading is not None
    assert wanted is not None
    assert (leading.rule, leading.onset) == (wanted.rule, wanted.onset)
    assert leading.rule == "nonfinite-inputs"


def test_the_nan_that_a_trainer_does_not_log_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = with_transformers(net(), *data(broken=True), tmp_path / "run", logging_steps=5)
    assert "{'loss': '0'" in capsys.readouterr().out  # logging_nan_inf_filter
    run = Run.load(path)
    assert np.isnan(only(run, LOSS)[20:]).all()
    assert only(run, LOSS_LOGGED)[-1] == 0
    checkup = holter.check(run)
    (hidden,) = (finding for finding in checkup.findings if finding.rule == "misreported-loss")
    assert hidden.summary.startswith("the log hides 20 losses")
    assert hidden.summary.endswith("last finite loss at step 19")
    leading = holter.diagnose(checkup).leading
    assert leading is not None
    assert leading.rule == "nonfinite-inputs"


KERAS = """\
import os, sys
os.environ["KERAS_BACKEND"] = "torch"
import keras, numpy as np
from holter.integrations.keras import HolterCallback
given = np.load(sys.argv[2])
model = keras.Sequential([keras.layers.Dense(16, activation="relu"), keras.layers.Dense(3)])
model.build((None, 6))
model.set_weights([given[name].T for name in ("0.weight", "0.bias", "2.weight", "2.bias")])
model.compile(keras.optimizers.SGD(float(given["rate"]), global_clipnorm=float(given["clip"])),
              keras.losses.SparseCategoricalCrossentropy(from_logits=True))
class Ending(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch == 6 and sys.argv[3] == "interrupted":
            raise KeyboardInterrupt
history = model.fit(given["inputs"], given["labels"], batch_size=16, shuffle=False, verbose=0,
                    validation_data=(given["valid_inputs"], given["valid_labels"]),
                    validation_batch_size=64,
                    callbacks=[HolterCallback(sys.argv[1], show=False, quiet=True), Ending()])
print(history.history["loss"][0])
"""


@pytest.mark.parametrize("kind", ["healthy", "broken", "interrupted"])
def test_keras(kind: str, tmp_path: Path) -> None:
    """The same in Keras, which has no accumulation, schedule or autocast of torch."""
    loaders, model = data(broken=kind == "broken"), net()
    (inputs, labels), (valid_inputs, valid_labels) = (each.dataset.tensors for each in loaders)
    np.savez(
        tmp_path / "given.npz",
        **{name: value.numpy() for name, value in model.state_dict().items()},
        inputs=inputs.numpy(),
        labels=labels.numpy(),
        valid_inputs=valid_inputs.numpy(),
        valid_labels=valid_labels.numpy(),
        rate=RATE,
        clip=CLIP,
    )
    ended = subprocess.run(
        [sys.executable, "-c", KERAS, tmp_path / "run", tmp_path / "given.npz", kind],
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
    expected = Run.load(by_hand(model, *loaders, tmp_path / "hand"))
    checkup, wanted = holter.check(run), holter.check(expected)
    if kind == "healthy":
        losses = only(run, LOSS)
        assert float(losses.mean()) == pytest.approx(float(ended.stdout), rel=1e-3)
        for signal in (LOSS, VAL_LOSS, GRAD_TOTAL_NORM):  # the norm before clipping
            assert only(run, signal) == pytest.approx(only(expected, signal), rel=1e-3)
        assert only(run, GRAD_TOTAL_NORM).max() > CLIP
        assert checkup.findings == wanted.findings == ()
    else:
        leading, named = holter.diagnose(checkup).leading, holter.diagnose(wanted).leading
        assert leading is not None
        assert named is not None
        assert (leading.rule, leading.onset) == (named.rule, named.onset)
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


def called(script: str, folder: Path, *words: str, broken: bool = False) -> tuple[str, str]:
    """What a command prints on a script, to both streams."""
    (folder / "train.py").write_text(script)
    done = subprocess.run(
        [sys.executable, "-m", "holter", *words, "train.py", *["broken"] * broken],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
    )
    assert done.returncode == int(broken), done.stderr
    assert len(list((folder / "holter-runs").iterdir())) == 1  # a callback records none of its own
    return done.stdout, done.stderr


def examined(
    script: str, folder: Path, *words: str, broken: bool = False
) -> tuple[dict[str, Any], str]:
    """What a command says of a script, as JSON and to people; the script leaves no files."""
    printed, said = called(script, folder, *words, "--json", broken=broken)
    assert {path.name for path in folder.iterdir()} <= {"train.py", "holter-runs", "__pycache__"}
    return json.loads(printed), said


# The samples, where holter has read them one by one; what the model was given, where it has not.
NAN_IN_THE_DATA = ("nonfinite-samples", "nonfinite-inputs")


@scripts
def test_a_run_of_an_unmodified_script(script: str, tmp_path: Path) -> None:
    called(script, tmp_path, "run", broken=True)
    (folder,) = (tmp_path / "holter-runs").iterdir()
    run = Run.load(folder)
    assert run.steps == 64  # two epochs of 1,024 samples in batches of 32
    assert only(run, LOSS).shape == only(run, GRAD_TOTAL_NORM).shape == (64,)
    leading = holter.diagnose(holter.check(run)).leading
    assert leading is not None
    assert leading.rule in NAN_IN_THE_DATA


# What the last one checks needs validation data.
CHECKS = "samples,inputs-matter,eval-gap,data-finite,splits"


def require_passed(shown: dict[str, Any], checks: str) -> None:
    states = {check["check"]: check["status"] for check in shown["checklist"]}
    assert {states[name] for name in checks.split(",")} == {"PASS"}, states


@scripts
def test_preflight_of_an_unmodified_script(script: str, tmp_path: Path) -> None:
    shown, said = examined(script, tmp_path, "try", "preflight", "--only", CHECKS)
    assert "gives the setup" not in said
    require_passed(shown, CHECKS)


def by_the_clock(script: str) -> str:
    """Return a script whose step cannot be extracted: its loss depends on the time of day."""
    loss = "nn.functional.cross_entropy("
    timed = "(1 + self.training * (time.perf_counter() % 1)) * " + loss
    return "import time\n" + script.replace(loss, timed, 1)


def with_callback(framework: str) -> str:
    """Return such a script to which the user has added the callback."""
    name = {"pytorch_lightning": "lightning"}.get(framework, framework)
    script = by_the_clock({"lightning": LIGHTNING, "transformers": TRAINER}[name])
    if framework == "pytorch_lightning":
        script = script.replace(
            "import sys, lightning, torch",
            "import sys, torch\nimport pytorch_lightning as lightning",
        )
    script = script.replace(
        "from torch import nn\n",
        f"from torch import nn\nfrom holter.integrations.{name} import HolterCallback\n",
        1,
    )
    added = "callbacks=[HolterCallback(show=False)]"
    before = {
        "lightning": "enable_model_summary=False",
        "transformers": "eval_dataset=rows[1024:]",
    }[name]
    assert before in script
    return script.replace(before, f"{before}, {added}")


CALLBACKS = ("pytorch_lightning", "transformers")


@pytest.mark.parametrize(
    "framework", [CALLBACKS[0], pytest.param(CALLBACKS[1], marks=pytest.mark.exhaustive)]
)
def test_the_callback_gives_the_setup_of_a_step_that_cannot_be_extracted(
    framework: str, tmp_path: Path
) -> None:
    script, checks = with_callback(framework), "samples,splits"
    shown, said = examined(script, tmp_path, "try", "preflight", "--only", checks)
    assert "HolterCallback gives the setup" in said
    require_passed(shown, checks)


@pytest.mark.exhaustive
@pytest.mark.parametrize("framework", ["lightning", *CALLBACKS])
def test_doctor_uses_the_setup_of_the_callback(framework: str, tmp_path: Path) -> None:
    shown, _ = examined(with_callback(framework), tmp_path, "doctor", broken=True)
    (log,) = tmp_path.glob("holter-runs/*/preflight.txt")
    assert "HolterCallback gives the setup" in log.read_text()
    assert shown["diagnosis"]["leading"]["rule"] in NAN_IN_THE_DATA


@pytest.mark.exhaustive
@scripts
def test_doctor_of_an_unmodified_script(script: str, tmp_path: Path) -> None:
    # By default it takes at most ten times as long as the script itself, on a loaded machine, too.
    shown, _ = examined(script, tmp_path, "doctor", broken=True)
    assert shown["diagnosis"]["leading"]["rule"] in NAN_IN_THE_DATA
