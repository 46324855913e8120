"""The same small training in every framework: the readings and the diagnosis of a loop by hand."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import holter
from holter import Run
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
history = model.fit(inputs, labels, batch_size=16, shuffle=False, verbose=0,
                    callbacks=[HolterCallback(sys.argv[1], show=False, quiet=True)])
print(history.history["loss"][0])
"""


@pytest.mark.parametrize("kind", ["healthy", "broken"])
def test_keras(kind: str, tmp_path: Path) -> None:
    import subprocess
    import sys

    ended = subprocess.run(
        [sys.executable, "-c", KERAS, str(tmp_path / "run"), kind],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
    )
    run = Run.load(tmp_path / "run")
    assert run.steps == STEPS
    losses = only(run, LOSS)
    if kind == "healthy":
        assert float(losses.mean()) == pytest.approx(float(ended.stdout), rel=1e-3)
        assert holter.check(run).findings == ()
    else:
        leading = holter.diagnose(holter.check(run)).leading
        assert leading is not None
        assert leading.rule == "nonfinite-inputs"


def test_a_training_that_fails_has_a_run_that_says_so(tmp_path: Path) -> None:
    def fail(model: nn.Module, train: DataLoader, valid: DataLoader, out: Path) -> Path:
        class Broken(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.inner, self.calls = model, 0

            def forward(self, x: Tensor) -> Tensor:
                self.calls += 1
                if self.calls == 7:
                    raise ValueError("no seventh batch")
                return self.inner(x)

        with pytest.raises(ValueError, match="seventh"):
            with_lightning(Broken(), train, valid, out)
        return out

    run = Run.load(fail(net(), *data(), tmp_path / "run"))
    assert run.meta.status == "failed"
    assert run.steps == 6
