"""The output range cannot reach the targets."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import last, readings
from holter.diagnosis.facts.robust import Values
from holter.diagnosis.rule import exception, rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import OUTPUT_MAX, OUTPUT_MIN, TARGET_MAX, TARGET_MIN, TARGET_STD

_NUMERIC = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
_BOUNDS = {"sigmoid": (0.0, 1.0), "tanh": (-1.0, 1.0), "ReLU": (0.0, np.inf)}
_FIRST = 5  # readings before a model has learned


@dataclass(frozen=True, slots=True)
class Range:
    """The smallest and the largest number of each sampled step."""

    low: Values
    high: Values

    def __len__(self) -> int:
        return min(len(self.low), len(self.high))

    @property
    def change(self) -> float:
        """The logarithm of the final width over the first one, without its sign."""
        widths = self.high[: len(self)] - self.low[: len(self)]
        first, final = np.median(widths[:_FIRST]), np.median(widths[-max(len(widths) // 10, 1) :])
        return abs(float(np.log(max(final, 1e-30) / max(first, 1e-30))))


@exception
def swapped_arguments(outputs: Range, targets: Range, change: float) -> str | None:
    """The arguments of the loss are swapped: the labels are bounded by 0 and 1, not the outputs."""
    if targets.change <= outputs.change + change:
        return None
    return (
        f"the range of the targets argument changed {np.exp(targets.change):.2g} times during"
        f" training, that of the outputs {np.exp(outputs.change):.2g} times: the arguments are"
        " swapped"
    )


@rule(
    severity=Severity.WARNING,
    level=Level.ARCHITECTURE,
    needs=(
        OUTPUT_MIN,
        OUTPUT_MAX,
        TARGET_MIN,
        TARGET_MAX,
    ),
    exceptions=(swapped_arguments,),
)
def limited_outputs(
    facts: Facts,
    *,
    min_steps: Annotated[int, "sampled steps needed"] = 20,
    beyond: Annotated[float, "distance of targets beyond a bound, in standard deviations"] = 0.5,
    margin: Annotated[float, "largest distance of outputs from the bound"] = 0.02,
    often: Annotated[float, "share of the later steps with outputs at the bound"] = 0.5,
    change: Annotated[
        float, "log ratio by which the range of targets changes more than that of outputs"
    ] = 0.4,
) -> Iterator[Verdict]:
    """The output range cannot reach the targets.

    ## What it does
    For regression losses, compares the range of all outputs with the range of all targets. It
    reports targets beyond the bound of an activation (0 for a ReLU, 0 and 1 for a sigmoid, -1 and 1
    for a tanh) if outputs reach that bound and never exceed it.

    ## Why it matters
    A ReLU cannot return a negative number, a sigmoid nothing above 1. The error on unreachable
    targets remains, and outputs at the bound get no gradient.

    ## Example
    ```python
    model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1), nn.ReLU())   # bad
    model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))              # good
    ```

    ## What to do
    Remove the activation after the last layer, or scale the targets into its range.

    ## When it is wrong
    Targets beyond the bound that are clipped on purpose, such as some rewards.

    ## How to confirm
    - Compare the largest and smallest prediction over an epoch with those of the targets.
    """
    for function, series in facts.run[OUTPUT_MIN].items():
        if function not in _NUMERIC or not len(series):
            continue
        outputs = Range(
            readings(facts, OUTPUT_MIN, function), readings(facts, OUTPUT_MAX, function)
        )
        targets = Range(
            readings(facts, TARGET_MIN, function), readings(facts, TARGET_MAX, function)
        )
        width = last(facts, TARGET_STD, function)
        if min(len(outputs), len(targets)) < min_steps or width is None:
            yield limited_outputs.not_examined(f"{len(outputs)} of the {min_steps} steps needed")
            continue
        low, high = float(outputs.low.min()), float(outputs.high.max())
        least, most = float(np.median(targets.low)), float(np.median(targets.high))
        measured = (
            f"outputs range from {low:.3g} to {high:.3g}, targets from {least:.3g} to {most:.3g}"
        )
        unreached = least + beyond * width, most - beyond * width
        name = _activation(outputs, unreached, margin, often)
        if name is None:
            yield limited_outputs.clear(measured)
            continue
        excuse = limited_outputs.excused(outputs, targets, change)
        if excuse is not None:
            yield excuse
            continue
        span = (series.first, series.last)
        yield limited_outputs.finding(
            f"{measured}: outputs stop at the bounds of a {name}",
            confidence=Confidence.LIKELY,
            onset=series.first,
            evidence=(
                Evidence(OUTPUT_MIN, span, f"never below {low:.3g}", function),
                Evidence(OUTPUT_MAX, span, f"never above {high:.3g}", function),
                Evidence(TARGET_MIN, span, f"median {least:.3g}", function),
                Evidence(TARGET_MAX, span, f"median {most:.3g}", function),
            ),
            fix=f"remove the {name} after the last layer, or scale the targets into its range",
        )


def _activation(
    outputs: Range, targets: tuple[float, float], margin: float, often: float
) -> str | None:
    """Return the activation on whose bound outputs press, with targets beyond it, or None."""
    low, high = outputs.low, outputs.high
    later = slice(len(low) // 2, None)
    for name, (bottom, top) in _BOUNDS.items():
        if low.min() < bottom or high.max() > top:
            continue
        near = 0.0 if name == "ReLU" else margin  # a ReLU reaches its bound, others come close
        below = np.mean(low[later] <= bottom + near) > often and targets[0] < bottom
        above = np.mean(high[later] >= top - near) > often and targets[1] > top
        if (below or above) and high.max() > low.min():
            return name
    return None
