"""One small training, recorded by holter and logged by the tools that people use.

Run as a script with a folder; the tools are imported here, in a process
of its own, because they change logging, threads and signals.
"""

import csv
import json
import logging
import os
import sys
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
os.environ.update(
    WANDB_MODE="offline",
    WANDB_SILENT="true",
    MLFLOW_ALLOW_FILE_STORE="true",
    KERAS_BACKEND="torch",
    HF_HUB_OFFLINE="1",
    TQDM_DISABLE="1",
)

import torch  # noqa: E402
from torch import nn  # noqa: E402

import holter  # noqa: E402

STEPS, EVERY = 240, 12
RATES = {"learns": 0.1, "overfits": 1.0, "breaks": 0.1}
Numbers = dict[str, float]
Tool = Callable[[int, Numbers], None]


def data(samples: int, seed: int, noise: float) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(samples, 10, generator=generator)
    labels = (inputs[:, 0] + inputs[:, 1] > 0).long()
    flipped = torch.rand(samples, generator=generator) < noise
    return inputs, torch.where(flipped, 1 - labels, labels)


def train(name: str, tools: list[Tool], run: Path) -> None:
    torch.manual_seed(0)
    noise = 0.1 if name == "overfits" else 0.0
    train_set = data(96 if name == "overfits" else 512, 1, noise)
    valid_set = data(256, 2, noise)
    model = nn.Sequential(nn.Linear(10, 64), nn.Tanh(), nn.Linear(64, 2))
    rate = RATES[name]
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    with holter.watch(model, optimizer, run, quiet=True, black_box=False):
        for step in range(STEPS):
            model.train()
            inputs, labels = train_set
            if name != "overfits":
                some = torch.randint(512, (64,))
                inputs, labels = inputs[some], labels[some]
            if name == "breaks" and step == 150:
                inputs = inputs * torch.nan
            optimizer.zero_grad()
            logits = model(inputs)
            loss = nn.functional.cross_entropy(logits, labels)
            loss.backward()
            norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
            optimizer.step()
            numbers = {"train/loss": loss.item(), "train/grad_norm": norm.item(), "lr": rate}
            numbers["train/acc"] = (logits.argmax(1) == labels).float().mean().item()
            numbers["time/forward"] = 0.1
            if step % EVERY == EVERY - 1:
                model.eval()
                with torch.no_grad():
                    numbers["val/loss"] = nn.functional.cross_entropy(
                        model(valid_set[0]), valid_set[1]
                    ).item()
            for tool in tools:
                tool(step, numbers)


def tensorboard(folder: Path) -> tuple[Tool, Callable[[], None]]:
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(folder / "tensorboard"))
    writer.add_text("note", "a text, which is no scalar")
    writer.add_histogram("weights", torch.randn(1000), 0)

    def log(step: int, numbers: Numbers) -> None:
        for name, value in numbers.items():
            writer.add_scalar(name, value, step)

    return log, writer.close


def wandb(folder: Path) -> tuple[Tool, Callable[[], None]]:
    import wandb as tool

    run = tool.init(project="test", dir=str(folder))
    return lambda step, numbers: run.log(numbers, step=step), run.finish


def mlflow(folder: Path) -> tuple[Tool, Callable[[], None]]:
    import mlflow as tool

    tool.set_tracking_uri((folder / "mlruns").as_uri())
    tool.start_run()
    return lambda step, numbers: tool.log_metrics(numbers, step=step), tool.end_run


def lightning(folder: Path) -> tuple[Tool, Callable[[], None]]:
    from lightning.pytorch.loggers import CSVLogger

    logger = CSVLogger(str(folder), name="lightning_logs")
    return lambda step, numbers: logger.log_metrics(numbers, step), logger.save


def json_lines(folder: Path) -> tuple[Tool, Callable[[], None]]:
    file = (folder / "metrics.jsonl").open("w")
    return lambda step, numbers: print(json.dumps({"step": step, **numbers}), file=file), file.close


def printed(folder: Path) -> tuple[Tool, Callable[[], None]]:
    file = (folder / "train.log").open("w")

    def log(step: int, numbers: Numbers) -> None:
        with redirect_stdout(file):
            print(f"[train] step {step:4d} | loss {numbers['train/loss']:.6f} | lr 1e-1 | 12ms/it")
            if "val/loss" in numbers:
                print(f"Validation: average loss: {numbers['val/loss']:.6f}, took 0.1s")

    return log, file.close


def table(folder: Path) -> tuple[Tool, Callable[[], None]]:
    """An export of W&B: a column for the run, and two for the bounds of each reading."""
    file = (folder / "exported.csv").open("w", newline="")
    rows = csv.writer(file)
    rows.writerow(["Step", *(f"brave-sun-7 - train/loss{end}" for end in ("", "__MIN", "__MAX"))])
    return lambda step, numbers: rows.writerow([step, *[numbers["train/loss"]] * 3]), file.close


def trainer(folder: Path) -> None:
    """Train by Trainer of Transformers, which saves its state."""
    import transformers

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 2))

        def forward(self, inputs: Any, labels: Any) -> Any:
            logits = self.layers(inputs)
            return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}

    def rows(split: tuple[torch.Tensor, torch.Tensor]) -> list[dict[str, Any]]:
        return [{"inputs": x, "labels": y} for x, y in zip(*split, strict=True)]

    transformers.set_seed(0)
    arguments = transformers.TrainingArguments(
        output_dir=str(folder / "trainer"),
        max_steps=120,
        logging_steps=2,
        eval_strategy="steps",
        eval_steps=20,
        save_steps=60,
        learning_rate=1e-2,
        per_device_train_batch_size=32,
        report_to=[],
        use_cpu=True,
    )
    made = transformers.Trainer(
        Net(), arguments, train_dataset=rows(data(512, 1, 0)), eval_dataset=rows(data(128, 2, 0))
    )
    with redirect_stdout((folder / "trainer.log").open("w")):
        made.train()
    (folder / "trainer-history.json").write_text(json.dumps(made.state.log_history))


def keras(folder: Path) -> None:
    """Train by Keras on the torch backend, with its CSVLogger."""
    import keras as tool

    tool.utils.set_random_seed(0)
    model = tool.Sequential(
        [tool.layers.Dense(32, activation="tanh"), tool.layers.Dense(2, activation="softmax")]
    )
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    (x, y), (u, v) = data(256, 1, 0), data(128, 2, 0)
    logger = tool.callbacks.CSVLogger(str(folder / "keras.csv"))
    model.fit(
        x.numpy(),
        y.numpy(),
        validation_data=(u.numpy(), v.numpy()),
        epochs=24,
        batch_size=64,
        verbose=0,
        callbacks=[logger],
    )


def main(folder: Path) -> None:
    makers = [tensorboard, wandb, mlflow, lightning, json_lines, printed, table]
    for name in RATES:
        (folder / name).mkdir(parents=True)
        tools = [maker(folder / name) for maker in makers]
        train(name, [log for log, _ in tools], folder / name / "run")
        for _, close in tools:
            close()
    trainer(folder)
    keras(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
