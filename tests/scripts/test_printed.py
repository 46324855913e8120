"""Metrics that a script prints, as text of any form."""

import logging

import numpy as np
import pytest
import torch

from holter.scripts.printed import logging_metrics, metrics
from holter.scripts.printing import Printing


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("loss 0.252 acc 0.838 | val loss 0.312 acc 0.730", {"val_loss": 0.312, "val_acc": 0.73}),
        ("train_loss=0.49 val_loss=0.38 val_acc=0.839", {"val_loss": 0.38, "val_acc": 0.839}),
        ("train rmse 0.834  val rmse 0.780", {"val_rmse": 0.78}),
        ("epoch 10  train 0.031  val 0.058  best 0.051", {"val_loss": 0.058}),
        (
            "Test set: Average loss: 0.03, Accuracy: 99/100 (99%)",
            {"test_loss": 0.03, "test_accuracy": 0.99},
        ),
        ("Train Loss: 0.2 | Val Acc: 93.2%", {"val_acc": pytest.approx(0.932)}),
        ("val balanced acc 0.56 auc 0.4", {"val_balanced_acc": 0.56, "val_auc": 0.4}),
        ("train acc 0.9", {}),
        ("best val acc 0.9", {}),
        ("value 3, evaluating 5 samples", {}),
    ],
)
def test_lines(line: str, expected: dict[str, float]) -> None:
    assert dict(metrics(line)) == {f"printed {name}": value for name, value in expected.items()}


class Unprintable:
    ndim = 0

    def __float__(self) -> float:
        raise RuntimeError

    def __str__(self) -> str:
        return "?"


def test_what_is_printed_and_logged_is_heard(capsys: pytest.CaptureFixture[str]) -> None:
    heard: list[dict[str, float]] = []
    printing = Printing(logging_metrics(heard.append))
    try:
        print("val acc", torch.tensor(0.5), "val loss", np.float32(0.25))
        logging.getLogger("some script").warning("val acc: %.2f", 0.75)
        print("val acc", Unprintable())
        print("nothing of interest", 3)
    finally:
        printing.stop()
    print("val acc 0.9")
    assert heard == [{"printed val_acc": 0.5, "printed val_loss": 0.25}, {"printed val_acc": 0.75}]
    assert capsys.readouterr().out.splitlines()[0].startswith("val acc tensor(0.5")
