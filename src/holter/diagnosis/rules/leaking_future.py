"""Outputs depend on later inputs although the targets are the next inputs."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    CAUSALITY_CHANGE,
    CAUSALITY_LATER,
    CAUSALITY_MODULES,
    CAUSALITY_ROUNDING,
    Signal,
)


@rule(
    severity=Severity.ERROR,
    level=Level.ARCHITECTURE,
    needs=(CAUSALITY_CHANGE, CAUSALITY_LATER, CAUSALITY_ROUNDING),
)
def leaking_future(
    facts: Facts,
    *,
    min_change: Annotated[float, "change of an output in standard deviations"] = 1e-5,
) -> Iterator[Verdict]:
    """Outputs depend on later inputs although the targets are the next inputs.

    ## What it does
    Uses the experiment `causality`, which runs if the targets are the inputs shifted by one: in
    eval mode, it replaces all inputs from one position on; the outputs before that position must
    not change. Positions without a target, such as the prompt of a prefix model, do not count.

    ## Why it matters
    The inputs contain the answer: the loss falls to nearly zero within a few hundred steps, in
    training and validation alike, and the model learns to copy. During generation there is no next
    element to copy, and the model is useless.

    ## Example
    ```python
    scaled_dot_product_attention(q, k, v)                    # bad
    scaled_dot_product_attention(q, k, v, is_causal=True)    # good
    ```

    ## What to do
    Give attention a causal mask (`is_causal=True`, or `triu(diagonal=1)` where True means hidden);
    remove `bidirectional=True` from recurrent layers; pad convolutions on the left only; normalise
    over features, not over time. The named module is the first that leaks.

    ## When it is wrong
    A model that is allowed to see later inputs and whose targets happen to be its inputs shifted by
    one.

    ## How to confirm
    - Change the last token of a sequence and compare the outputs before it, in eval mode: they must
      be equal.
    """
    rounding = _largest(facts, CAUSALITY_ROUNDING)
    limit = max(rounding, min_change)
    changes = facts.run[CAUSALITY_CHANGE]
    leaks = {name: series for name, series in changes.items() if series.values.max() > limit}
    later = _largest(facts, CAUSALITY_LATER)
    if not leaks and later <= limit:
        yield leaking_future.not_examined("no output changes when inputs are replaced")
        return
    if not leaks:
        yield leaking_future.clear(
            f"none of {_positions(facts)} outputs changes when all later inputs are replaced"
        )
        return
    worst = max(leaks, key=lambda name: float(leaks[name].values.max()))
    positions = {
        int(step) for series in leaks.values() for step in series.steps[series.values > limit]
    }
    largest = float(leaks[worst].values.max())
    module = _module(facts)
    yield leaking_future.finding(
        f"{len(positions)} of {_positions(facts)} outputs depend on later inputs, by up to"
        f" {largest:.2g} standard deviations{_example(facts, limit)}"
        + (f"; first in {module}" if module else ""),
        confidence=Confidence.CERTAIN,
        onset=0,
        evidence=(
            Evidence(
                CAUSALITY_CHANGE,
                (leaks[worst].first, leaks[worst].last),
                f"up to {largest:.2g} (rounding: {limit:.1g})",
                worst,
            ),
            *_module_evidence(facts, module),
        ),
        fix=f"mask later positions in {module or 'the model'}, for example with `is_causal=True`",
    )


def _largest(facts: Facts, signal: Signal) -> float:
    return max(float(series.values.max()) for series in facts.run[signal].values())


def _positions(facts: Facts) -> int:
    """Return how many outputs have an input after them."""
    return max(series.last + 1 for series in facts.run[CAUSALITY_CHANGE].values())


def _example(facts: Facts, limit: float) -> str:
    """Return the later inputs that one output in the middle depends on, in words."""
    single = {
        int(name.split()[1]): series
        for name, series in facts.run[CAUSALITY_CHANGE].items()
        if name.startswith("input ") and series.values.max() > limit
    }
    if not single:
        return ""
    inputs_of: dict[int, list[int]] = {}
    for position, series in sorted(single.items()):
        for output in series.steps[series.values > limit]:
            inputs_of.setdefault(int(output), []).append(position)
    outputs = sorted(inputs_of)
    middle = outputs[int(np.searchsorted(outputs, _positions(facts) // 2, "left")) - 1]
    inputs = inputs_of[middle]
    reach = f"inputs {inputs[0]} to {inputs[-1]}" if len(inputs) > 1 else f"input {inputs[0]}"
    return f" (output {middle} on {reach})"


def _module(facts: Facts) -> str:
    if CAUSALITY_MODULES not in facts.run:
        return ""
    return min(
        facts.run[CAUSALITY_MODULES], key=lambda name: facts.run[CAUSALITY_MODULES][name].first
    )


def _module_evidence(facts: Facts, module: str) -> Iterator[Evidence]:
    if module:
        series = facts.run[CAUSALITY_MODULES][module]
        says = f"changes by {float(series.values.max()):.2g} at earlier positions"
        yield Evidence(CAUSALITY_MODULES, (series.first, series.last), says, module)
