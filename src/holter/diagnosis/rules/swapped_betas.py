"""Adam's beta1 is too large for its beta2, so updates are unbounded."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import number, of
from holter.record.events import OptimizerSeen
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import BETA1, BETA2

_DIGITS = 5  # of a beta: 0.99999 is not 1


@rule(
    severity=Severity.WARNING,
    level=Level.HYPERPARAMETER,
    needs=(BETA1, BETA2),
    preview=True,
)
def swapped_betas(
    facts: Facts,
    *,
    min_share: Annotated[float, "share of the sampled steps at which there is no bound"] = 0.5,
) -> Iterator[Verdict]:
    """Adam's beta1 is too large for its beta2, so updates are unbounded.

    ## What it does
    Compares beta1 with the square root of beta2 in every parameter group of an Adam-like optimizer.
    It reports a group whose beta1 reaches it on half of the sampled steps or more; it is a hint if
    the run did not fail. Steps at which either beta is 0 are excluded.

    ## Why it matters
    Adam divides the momentum by the root of the second moment. Without a gradient the momentum
    decays by beta1 per step and the root by the square root of beta2. If the root decays faster,
    their quotient grows at each step until epsilon limits it: by 5 % for `betas=(0.999, 0.9)`,
    which is 175 times after 100 steps. Embedding rows without a gradient for a while, and inactive
    units, then take steps of many learning rates.

    ## Example
    ```python
    optimizer = Adam(model.parameters(), lr=1e-3, betas=(0.999, 0.9))   # bad
    optimizer = Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.999))   # good
    ```

    ## What to do
    Set `betas=(0.9, 0.999)`. With other values, keep beta1 below the square root of beta2.

    ## When it is wrong
    With `amsgrad=True` the second moment never shrinks, and some variants of Adam clip their
    updates. If beta1 is barely above the root and every gradient is dense, the updates stay small.

    ## How to confirm
    - Swap the two betas and repeat the run: the loss should fall without rising again.
    """
    groups = _groups(facts)
    if not groups:
        yield swapped_betas.not_examined("no Adam-like optimizer has two betas above 0")
        return
    unbounded: dict[str, list[_Group]] = {}
    for group in groups:
        if group.unbounded.mean() >= min_share:
            unbounded.setdefault(group.optimizer, []).append(group)
    if not unbounded:
        nearest = max(groups, key=lambda group: float(np.median(group.excess)))
        index = int(np.argsort(nearest.excess)[len(nearest.excess) // 2])
        yield swapped_betas.clear(
            f"{nearest.betas(index)}{of(nearest.optimizer)}: beta1 is below the square root of"
            f" beta2, {number(float(np.sqrt(nearest.beta2[index])), 4)}"
        )
    outcome = facts.outcome
    is_bad = outcome is not None and outcome.bad
    for optimizer, found in unbounded.items():
        yield _finding(optimizer, found, Confidence.LIKELY if is_bad else Confidence.HINT)


@dataclass(frozen=True, slots=True)
class _Group:
    """The betas of a parameter group at the steps at which both are above 0."""

    name: str
    optimizer: str
    steps: npt.NDArray[np.int64]
    beta1: npt.NDArray[np.float64]
    beta2: npt.NDArray[np.float64]

    @property
    def excess(self) -> npt.NDArray[np.float64]:
        """How far beta1 is above the square root of beta2."""
        return self.beta1 - np.sqrt(self.beta2)

    @property
    def unbounded(self) -> npt.NDArray[np.bool_]:
        """At which steps the update has no bound; beta1 is larger than beta2 there."""
        return self.excess >= 0

    def betas(self, index: int) -> str:
        """The setting as a script has it."""
        first, second = float(self.beta1[index]), float(self.beta2[index])
        return f"betas=({number(first, _DIGITS)}, {number(second, _DIGITS)})"


def _groups(facts: Facts) -> list[_Group]:
    """Return the betas of all groups of Adam-like optimizers, and of optimizers of unknown type."""
    types = {event.what.optimizer: event.what.type for event in facts.run.events_of(OptimizerSeen)}
    seconds = facts.run[BETA2]
    groups = []
    for name, first in facts.run[BETA1].items():
        optimizer = name.rpartition(" group ")[0]
        second = seconds.get(name)
        if second is None or "adam" not in types.get(optimizer, "adam").lower():
            continue
        steps, own, other = np.intersect1d(first.steps, second.steps, return_indices=True)
        beta1 = first.values[own].astype(np.float64)
        beta2 = second.values[other].astype(np.float64)
        judged = (beta1 > 0) & (beta2 > 0) & np.isfinite(beta1) & np.isfinite(beta2)
        if judged.any():
            groups.append(_Group(name, optimizer, steps[judged], beta1[judged], beta2[judged]))
    return groups


def _finding(optimizer: str, groups: list[_Group], confidence: Confidence) -> Verdict:
    group = min(groups, key=lambda group: int(group.steps[group.unbounded.argmax()]))
    index = int(group.unbounded.argmax())
    onset, last = int(group.steps[index]), int(group.steps[-1])
    count = f" in {len(groups)} parameter groups" if len(groups) > 1 else ""
    root = float(np.sqrt(group.beta2[index]))
    return swapped_betas.finding(
        f"{group.betas(index)}{of(optimizer)}{count}: beta1 is larger than beta2, so the first"
        " moment decays more slowly than the second, which divides it, and updates are unbounded",
        confidence=confidence,
        onset=onset,
        evidence=(
            Evidence(
                BETA1,
                (onset, last),
                f"beta1 is {number(float(group.beta1[index]), _DIGITS)}, the square root of beta2"
                f" is {number(root, 4)}, at {int(group.unbounded.sum())} of"
                f" {len(group.steps)} sampled steps",
                group.name,
            ),
            Evidence(
                BETA2,
                (onset, last),
                f"beta2 is {number(float(group.beta2[index]), _DIGITS)}",
                group.name,
            ),
        ),
        fix=f"set `betas=(0.9, 0.999)` (now {group.betas(index).removeprefix('betas=')})",
    )
