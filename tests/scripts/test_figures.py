"""The numbers that a script prints."""

import logging

import numpy as np
import pytest
import torch

from holter.scripts.figures import Figures, figures_in
from holter.scripts.printing import Printing

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
    """An object that counts how often its text is asked for."""

    asked = 0

    def __repr__(self) -> str:
        self.asked += 1
        return "loud"


def test_what_is_printed_is_read_and_stays_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    before = print
    steps = iter(range(10_000))
    figures = Figures(lambda: next(steps))
    printing = Printing(figures.hear)
    for count in range(400):
        print("acc", count / 400, sep=": ")
    print("once", 3)
    printing.stop()
    taken = figures.series()
    print("acc", 7)
    assert print is before
    assert capsys.readouterr().out.splitlines()[:2] == ["acc: 0.0", "acc: 0.0025"]
    acc, once = taken
    assert (once.name, once.values) == ("once", (3.0,))
    assert acc.name == "acc"
    assert len(acc.steps) == len(acc.values) <= 128
    assert (acc.values[0], acc.values[-1]) == (0.0, 399 / 400)
    assert list(acc.steps) == sorted(acc.steps)


def test_only_plain_values_are_turned_into_text() -> None:
    loud, figures = Loud(), Figures(lambda: 0)
    printing = Printing(figures.hear)
    print(loud, "acc", 0.5, {"loss": torch.tensor(2.0), "model": loud})
    print(loud, "acc", torch.tensor(0.75), {"loss": np.float32(1.0)})
    printing.stop()
    acc, loss = figures.series()
    assert (acc.values, loss.values) == ((0.5, 0.75), (2.0, 1.0))
    assert loud.asked == 3  # by `print` alone


def test_loggers_are_read(caplog: pytest.LogCaptureFixture) -> None:
    figures = Figures(lambda: 0)
    printing = Printing(figures.hear)
    with caplog.at_level(logging.INFO):
        for acc in (0.5, 0.75):
            logging.getLogger("train").info("acc %.2f", acc)
    printing.stop()
    (acc,) = figures.series()
    assert acc.values == (0.5, 0.75)
    assert caplog.messages == ["acc 0.50", "acc 0.75"]


def test_an_aside_between_a_name_and_its_number_is_no_figure():
    assert figures_in("loss -9.7  mean return (last 20) -1.169") == [
        ("loss", -9.7),
        ("mean return", -1.169),
    ]
    assert figures_in("acc (top 5): 0.4") == [("acc", 0.4)]
    assert figures_in("epoch 3 (step 120) loss 0.5")[1] == ("step", 120.0)
