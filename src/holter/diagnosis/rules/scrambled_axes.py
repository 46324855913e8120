"""A reshape swaps dimensions without transposing the elements."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.events import AxisMoved
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import RESHAPE_MOVED


@rule(severity=Severity.WARNING, level=Level.ARCHITECTURE, needs=(RESHAPE_MOVED,), preview=True)
def scrambled_axes(facts: Facts) -> Iterator[Verdict]:
    """A reshape swaps dimensions without transposing the elements.

    ## What it does
    Compares the shapes before and after every `view` and `reshape` of the script in the forward
    pass of a few steps. It reports a dimension that keeps its size but receives different elements,
    such as (32, 80, 40) reshaped to (32, 40, 80).

    ## Why it matters
    `reshape` keeps the memory order of the elements. Used in place of a transpose, it mixes the
    elements of both dimensions: time steps with channels, classes with pixels. The model learns
    little or nothing.

    ## Example
    ```python
    x = x.reshape(batch, channels, time)    # of (batch, time, channels)    # bad
    x = x.transpose(1, 2)                                                   # good
    ```

    ## What to do
    Swap dimensions with `transpose`, `permute` or `movedim`; use `reshape` only to merge adjacent
    dimensions or to split one.

    ## When it is wrong
    The regrouping is intended, and a group happens to be as large as another dimension: 64 frames
    of 16 values stacked by four are 16 frames of 64 values.

    ## How to confirm
    - Apply the line to `torch.arange(24).reshape(2, 3, 4)`, and compare the result with
      `transpose`.
    """
    (counts,) = facts.run[RESHAPE_MOVED].values()
    lines = [event.what for event in facts.run.events_of(AxisMoved)]
    if not counts.values.any() or not lines:
        yield scrambled_axes.clear(f"no reshape swaps dimensions on {len(counts)} sampled steps")
        return
    first = lines[0]
    others = f", and {len(lines) - 1} more like it" if len(lines) > 1 else ""
    yield scrambled_axes.finding(
        f"{first.where} reshapes {first.before} to {first.after}: a dimension keeps its size but"
        f" receives different elements{others}",
        confidence=Confidence.LIKELY,
        onset=0,
        evidence=tuple(
            Evidence(
                RESHAPE_MOVED,
                (counts.first, counts.last),
                f"{line.where}: {line.before} to {line.after}",
            )
            for line in lines
        ),
        fix=f"at {first.where}, swap dimensions with `transpose(...)` or `permute(...)` before"
        " `reshape`",
    )
