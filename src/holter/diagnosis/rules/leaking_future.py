"""A model that predicts the next element sees it."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    CAUSALITY_CHANGE,
    CAUSALITY_LATER,
    CAUSALITY_MODULES,
    CAUSALITY_ROUNDING,
)


@rule(
    severity=Severity.ERROR,
    level=Level.ARCHITECTURE,
    needs=(CAUSALITY_CHANGE, CAUSALITY_LATER, CAUSALITY_ROUNDING),
)
def leaking_future(facts: Facts, *, min_change: float = 1e-5) -> Iterator[Verdict]:
    """A model that predicts the next element sees it.

    ## What it does
    Reads the experiment causality, which is made where the targets are the inputs moved by one: all
    inputs from one position on are replaced, in eval mode. The rule speaks where an output before
    that position changes by more than rounding, and by `min_change` standard deviations. Positions
    without a target are left out, as the prompt of a prefix model, which may be read both ways.

    ## Why it matters
    The answer is among the inputs: the loss falls to nearly nothing within some hundred steps, in
    training and in validation alike, and what was learned is copying. When text is generated there
    is no next element to copy, and the model is useless.

    ## What to do
    Give the attention a causal mask (`is_causal=True`, or `triu(diagonal=1)` where True means
    hidden); take `bidirectional=True` out of recurrent layers; pad convolutions on the left only;
    normalise over features, not over time. The module that is named is where it happens first.

    ## When it is wrong
    A model that may see later inputs on purpose, while its targets happen to be its inputs moved by
    one.

    ## How to confirm
    - Change the last token of a sequence and compare the outputs before it, in eval mode: they have
      to be equal.
    """
    rounding = max(float(each.values.max()) for each in facts.run[CAUSALITY_ROUNDING].values())
    limit = max(rounding, min_change)
    changes = facts.run[CAUSALITY_CHANGE]
    leaks = {name: each for name, each in changes.items() if each.values.max() > limit}
    later = max(float(each.values.max()) for each in facts.run[CAUSALITY_LATER].values())
    if not leaks and later <= limit:
        yield leaking_future.not_examined("no output changes when inputs are replaced")
        return
    if not leaks:
        yield leaking_future.clear(
            f"none of {_positions(facts)} outputs changes when all later inputs are replaced"
        )
        return
    worst = max(leaks, key=lambda name: float(leaks[name].values.max()))
    positions = {int(step) for each in leaks.values() for step in each.steps[each.values > limit]}
    largest = float(leaks[worst].values.max())
    module = _module(facts)
    yield leaking_future.finding(
        f"{_example(facts, limit)}{len(positions)} of {_positions(facts)} outputs depend on inputs"
        " that"
        f" come after them{f' (first seen in {module})' if module else ''}, by up to {largest:.2g}"
        " standard deviations",
        confidence=Confidence.CERTAIN,
        onset=0,
        evidence=(
            Evidence(
                CAUSALITY_CHANGE,
                (leaks[worst].first, leaks[worst].last),
                f"up to {largest:.2g}, where rounding makes {limit:.1g}",
                worst,
            ),
            *_module_evidence(facts, module),
        ),
        fix=f"mask later positions in {module or 'the model'}, as with is_causal=True",
    )


def _positions(facts: Facts) -> int:
    """Outputs that have something after them."""
    return max(each.last + 1 for each in facts.run[CAUSALITY_CHANGE].values())


def _example(facts: Facts, limit: float) -> str:
    """The inputs that one output in the middle should not depend on and does."""
    single = {
        int(name.split()[1]): each
        for name, each in facts.run[CAUSALITY_CHANGE].items()
        if name.startswith("input ") and each.values.max() > limit
    }
    if not single:
        return ""
    seen: dict[int, list[int]] = {}
    for place, each in sorted(single.items()):
        for step in each.steps[each.values > limit]:
            seen.setdefault(int(step), []).append(place)
    output = sorted(seen)[int(np.searchsorted(sorted(seen), _positions(facts) // 2, "left")) - 1]
    places = seen[output]
    reach = f"{places[0]}..{places[-1]}" if len(places) > 1 else f"{places[0]}"
    return f"output {output} depends on input {reach}; "


def _module(facts: Facts) -> str:
    if CAUSALITY_MODULES not in facts.run:
        return ""
    return min(
        facts.run[CAUSALITY_MODULES], key=lambda name: facts.run[CAUSALITY_MODULES][name].first
    )


def _module_evidence(facts: Facts, module: str) -> Iterator[Evidence]:
    if module:
        series = facts.run[CAUSALITY_MODULES][module]
        said = f"changes by {float(series.values.max()):.2g} at earlier positions"
        yield Evidence(CAUSALITY_MODULES, (series.first, series.last), said, module)
