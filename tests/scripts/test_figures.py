"""The numbers that a script prints."""

from pathlib import Path

import numpy as np
import pytest
import torch
from launched import holter_run

from holter import Run
from holter.record.events import FigurePrinted
from holter.scripts.figures import Figures, figures_in

LINES = {
    "step 320: pair loss 0.14, val pair accuracy 0.069": {
        "step": 320,
        "pair loss": 0.14,
        "val pair accuracy": 0.069,
    },
    "epoch 7 | val mIoU 0.66 (0.92 0.52) | R2 price -0.02": {
        "epoch": 7,
        "val miou": 0.66,
        "r2 price": -0.02,
    },
    "[120/200] loss=6.9e-01 train_acc=24.5% recall@1 0.025": {
        "loss": 0.69,
        "train_acc": 0.245,
        "recall@1": 0.025,
    },
    "{'acc': 0.5, 'val_loss': 1e-3}": {"acc": 0.5, "val_loss": 0.001},
    "Test set: Accuracy: 30/40 (75%)": {"test set accuracy": 0.75},
    "done": {},
}


@pytest.mark.parametrize(("line", "figures"), LINES.items())
def test_the_words_before_a_number_are_its_name(line: str, figures: dict[str, float]) -> None:
    assert dict(figures_in(line)) == pytest.approx(figures)


class Loud:
    """An object whose text is expensive."""

    def __str__(self) -> str:
        raise AssertionError("its text was asked for twice")


def test_what_is_printed_is_read_and_stays_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    before = print
    steps = iter(range(10_000))
    figures = Figures(lambda: next(steps))
    for count in range(400):
        print("acc", count / 400, sep=": ")
    print("once", 3)
    taken = figures.take()
    print("acc", 7)
    assert print is before
    assert capsys.readouterr().out.splitlines()[:2] == ["acc: 0.0", "acc: 0.0025"]
    (acc,) = taken
    assert acc.name == "acc"
    assert len(acc.steps) == len(acc.values) <= 128
    assert (acc.values[0], acc.values[-1]) == (0.0, 399 / 400)
    assert list(acc.steps) == sorted(acc.steps)


def test_only_plain_values_are_turned_into_text() -> None:
    figures = Figures(lambda: 0)
    try:
        figures._hear((Loud(), "acc", 0.5, {"loss": torch.tensor(2.0), "model": Loud()}))
        figures._hear((Loud(), "acc", torch.tensor(0.75), {"loss": np.float32(1.0)}))
    finally:
        acc, loss = figures.take()
    assert (acc.values, loss.values) == ((0.5, 0.75), (2.0, 1.0))


SCRIPT = """\
import torch
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
for step in range(8):
    optimizer.zero_grad()
    model(torch.randn(4, 3)).square().mean().backward()
    optimizer.step()
    print(f"accuracy {step / 8}")
"""


def test_they_are_in_the_run(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    ended = holter_run("--out", "run", "train.py", cwd=tmp_path)
    assert ended.out.decode().split() == [
        word for step in range(8) for word in ("accuracy", f"{step / 8}")
    ]
    (event,) = Run.load(tmp_path / "run").events_of(FigurePrinted)
    assert event.what.values == tuple(step / 8 for step in range(8))
    assert event.what.steps[0] <= 1
    assert event.what.steps[-1] in (7, 8)
