"""The gallery of loss-curve shapes: `python -m zoo.gallery --write` records them again.

Each picture is a case of a rule, recorded by `holter run`, beside its healthy twin.
"""

import argparse
import ast
import json
from pathlib import Path
from typing import Any

from holter.dashboard.encoding import numbers
from holter.diagnosis.differential import diagnose
from holter.diagnosis.engine import check
from holter.record import Run, Series
from holter.record.signals import VAL_LOSS
from holter.reports._outcome import headline
from holter.reports.html._sampling import thinned
from zoo.recording import recording
from zoo.specimens import CASES, Specimen

FILE = Path(__file__).parent.parent / "src/holter/dashboard/playground/gallery.json"
_POINTS = 240  # of a curve

# What the curve looks like, and the case that shows it.
SHAPES = (
    ("Flat from the first step", "parameters-outside-model"),
    ("Flat at the loss of guessing", "doubled-softmax"),
    ("Flat: the first layers get no gradient", "vanishing-gradients"),
    ("Falls, then level too early", "loss-plateau"),
    ("Stops when the learning rate has decayed", "rushed-schedule"),
    ("Still falling at the end", "underfitting"),
    ("Validation turns up", "overfitting"),
    ("Validation never improves", "validation-mismatch"),
    ("Validation jumps", "erratic-validation"),
    ("Rises", "diverging-loss"),
    ("Oscillates", "oscillating-loss"),
    ("Jumps and stays", "loss-spike"),
    ("Becomes NaN", "nonfinite-loss"),
    ("Saw-tooth of sorted batches", "sorted-batches"),
    ("Gradients add up", "uncleared-gradients"),
    ("Starts far above guessing", "large-initial-loss"),
    ("Falls without bound", "unbounded-loss"),
)


def main() -> None:
    """Record every shape and write the gallery."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {FILE.name}")
    args = parser.parse_args()
    pictures = [picture(shape, rule) for shape, rule in SHAPES]
    for each in pictures:
        print(f"{each['rule']:<28}{each['leading']:<28}{each['state']}")
    text = json.dumps(pictures, separators=(",", ":"), ensure_ascii=False) + "\n"
    print(f"{len(text) / 1000:.0f} kB")
    if args.write:
        FILE.write_text(text, encoding="utf-8")


def picture(shape: str, rule: str) -> dict[str, Any]:
    """Return the curves of a case and its twin, and the diagnosis of the case."""
    sick = Run.load(recording(Specimen(f"{rule}-sick", f"{rule}/sick", (), "a case")))
    healthy = Run.load(recording(Specimen(f"{rule}-healthy", f"{rule}/healthy", (), "a case")))
    checkup = check(sick)
    line, leading = headline(sick, checkup), diagnose(checkup).leading
    assert leading is not None, f"{rule}: nothing was found"
    return {
        "shape": shape,
        "rule": rule,
        "story": ast.get_docstring(ast.parse((CASES / rule / "sick.py").read_text())) or "",
        "state": line.state,
        "bad": checkup.outcome.bad,
        "numbers": line.says,
        "leading": leading.rule,
        "summary": leading.summary,
        "fix": leading.fix,
        "onset": leading.onset,
        "train": _curve(_loss(sick)),
        "validation": None if (series := _validation(sick)) is None else _curve(series),
        "twin": _curve(_loss(healthy)),
    }


def _loss(run: Run) -> Series:
    outcome = check(run).outcome
    return run[outcome.signal][outcome.owner]


def _validation(run: Run) -> Series | None:
    return next(iter(run[VAL_LOSS].values()), None) if VAL_LOSS in run else None


def _curve(series: Series) -> dict[str, Any]:
    curve = thinned(series, most=_POINTS)
    return {"steps": curve.steps.tolist(), "values": [_short(v) for v in numbers(curve.values)]}


def _short(value: float | str) -> float | str:
    return value if isinstance(value, str) else float(f"{value:.4g}")


if __name__ == "__main__":
    main()
