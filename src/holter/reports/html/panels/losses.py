"""Training and validation loss, and accuracy, with the evidence of findings on the curves."""

from collections.abc import Mapping

from holter.record.signals import ACCURACY, LOSS, VAL_ACCURACY, VAL_LOSS, Signal
from holter.record.table import Series
from holter.reports._numbers import number, percent
from holter.reports.html._drawings import curves, present
from holter.reports.html._view import Mark, Panel, View

TITLE = "Loss and validation"


def panel(view: View) -> Panel | None:
    """Return both losses in one chart, and both accuracies in another."""
    outcome = view.checkup.outcome
    constant = outcome.constant
    losses = curves(
        _both(view, LOSS, "training loss", VAL_LOSS, "validation loss"),
        title="Loss",
        unit="loss",
        marks=[*_marks(view, LOSS, VAL_LOSS), *view.onsets()],
        references=[]
        if constant is None
        else [(constant, f"best constant prediction {number(constant)}")],
        is_wide=True,
        height=300,
    )
    chance = outcome.chance_accuracy
    accuracies = curves(
        _both(view, ACCURACY, "training accuracy", VAL_ACCURACY, "validation accuracy"),
        title="Accuracy",
        unit="share of correct predictions",
        marks=_marks(view, ACCURACY, VAL_ACCURACY),
        references=[] if chance is None else [(chance, f"most frequent class {percent(chance)}")],
        log=False,
        is_wide=True,
    )
    drawings = present(losses, accuracies)
    return Panel(drawings) if drawings else None


def _both(
    view: View, training: Signal, name: str, validation: Signal, validation_name: str
) -> Mapping[str, Series]:
    series: dict[str, Series] = {}
    for signal, title in ((training, name), (validation, validation_name)):
        if signal in view.run:
            table = view.run[signal]
            for owner in table:
                shown = title if len(table) == 1 or not owner else f"{title}, {owner}"
                series[shown] = table[owner]
    return series


def _marks(view: View, *signals: Signal) -> list[Mark]:
    return [mark for signal in signals for mark in view.marks(signal)]
