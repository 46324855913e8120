"""A reshape exchanges dimensions without moving their elements."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.events import AxisMoved
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import RESHAPE_MOVED


@rule(severity=Severity.WARNING, level=Level.ARCHITECTURE, needs=(RESHAPE_MOVED,), preview=True)
def scrambled_axes(facts: Facts) -> Iterator[Verdict]:
    """A reshape exchanges dimensions without moving their elements.

    ## What it does
    Compares the shapes before and after every `view` and `reshape` of the script in the forward
    pass of a few steps. It reports a dimension that keeps its size and gets other elements, such as
    (32, 80, 40) reshaped to (32, 40, 80).

    ## Why it matters
    `reshape` keeps elements in their order and only counts them in another way. Where two
    dimensions are to be exchanged, it mixes the elements of both: time steps with channels, classes
    with pixels. The model learns from what is left, or nothing at all.

    ## Example
    ```python
    x = x.reshape(batch, channels, time)    # of (batch, time, channels)    # bad
    x = x.transpose(1, 2)                                                   # good
    ```

    ## What to do
    Exchange dimensions with `transpose`, `permute` or `movedim`, and use `reshape` after that to
    merge neighbouring dimensions or to split one.

    ## When it is wrong
    Elements are meant to be grouped in another way, and a group happens to be as large as another
    dimension: 64 frames of 16 values stacked by four are 16 frames of 64 values.

    ## How to confirm
    - Give the line a small tensor of numbers, `torch.arange(24).reshape(2, 3, 4)`, and compare what
      it returns with `transpose`.
    """
    (counts,) = facts.run[RESHAPE_MOVED].values()
    lines = [event.what for event in facts.run.events_of(AxisMoved)]
    if not counts.values.any() or not lines:
        yield scrambled_axes.clear(
            f"no reshape exchanges dimensions on {len(counts)} sampled steps"
        )
        return
    first = lines[0]
    others = f", and {len(lines) - 1} more like it" if len(lines) > 1 else ""
    yield scrambled_axes.finding(
        f"{first.where} reshapes {first.before} to {first.after}: a dimension keeps its size and"
        f" gets other elements{others}",
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
        fix=f"at {first.where}, exchange dimensions with `transpose(...)` or `permute(...)` before"
        " `reshape`",
    )
