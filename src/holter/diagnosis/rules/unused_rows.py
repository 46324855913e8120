"""Only one row of a table of parameters is used."""

from collections.abc import Iterator, Sequence
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import GRAD_ZERO_FRACTION

_OF_LAYERS = ("weight", "bias", "weight_", "bias_")  # of layers of torch, whose rows are units
_EXACT = 1e-4


@rule(
    severity=Severity.WARNING, level=Level.ARCHITECTURE, needs=(GRAD_ZERO_FRACTION,), preview=True
)
def unused_rows(
    facts: Facts,
    *,
    min_rows: Annotated[int, "rows of a table"] = 4,
    min_steps: Annotated[int, "sampled steps needed"] = 5,
) -> Iterator[Verdict]:
    """Only one row of a table of parameters is used.

    ## What it does
    Looks at tables that a model holds as `nn.Parameter`, such as position embeddings. It reports a
    table of which exactly one row has a gradient on all sampled steps.

    ## Why it matters
    Broadcasting hides it: one position vector that is added to every token says nothing about the
    position, and there is no error. The other rows keep their initial values.

    ## Example
    ```python
    x = tokens + self.positions[:, :1]                 # bad
    x = tokens + self.positions[:, : tokens.shape[1]]  # good
    ```

    ## What to do
    Index the table with all positions (or tasks, or queries), and check that the shapes agree
    before they are added.

    ## When it is wrong
    The table has a row for each task or domain, and the run trains one of them.

    ## How to confirm
    - Print `model.positions.grad.abs().sum(-1)` after `backward()`.
    """
    tables = _tables(facts, min_rows)
    if not tables:
        yield unused_rows.not_examined("the model holds no table as `nn.Parameter`")
        return
    found = False
    for name, rows in tables.items():
        zero = facts.run[GRAD_ZERO_FRACTION][name]
        values = zero.values[np.isfinite(zero.values)]
        if len(values) < min_steps or np.abs(values - (1 - 1 / rows)).max() > _EXACT:
            continue
        found = True
        yield unused_rows.finding(
            f"one of the {rows} rows of {name} has a gradient, the others never do",
            confidence=Confidence.HINT,
            onset=zero.first,
            evidence=(
                Evidence(
                    GRAD_ZERO_FRACTION,
                    (zero.first, zero.last),
                    f"{values.mean():.4g} on all {len(values)} sampled steps",
                    name,
                ),
            ),
            fix=f"use all rows of {name}: look for an index or slice that selects a single row,"
            " which is then broadcast",
        )
    if not found:
        yield unused_rows.clear(f"more than one row of each of {len(tables)} tables has a gradient")


def _tables(facts: Facts, min_rows: int) -> dict[str, int]:
    """Return the rows of each table that was read and is no weight of a layer."""
    shapes = facts.run.meta.parameters
    found = {}
    for name in facts.run[GRAD_ZERO_FRACTION]:
        shape = _without_ones(shapes[name].shape) if name in shapes else ()
        own = name.rpartition(".")[2]
        if own.startswith(_OF_LAYERS) or len(shape) < 2 or shape[0] < min_rows:
            continue
        found[name] = shape[0]
    return found


def _without_ones(shape: Sequence[int]) -> tuple[int, ...]:
    """Leave out leading dimensions of size 1, which are there to be broadcast."""
    kept = tuple(shape)
    while kept and kept[0] == 1:
        kept = kept[1:]
    return kept
