"""NaN or infinite values are replaced in the forward pass."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import HIDDEN_NONFINITE

_MANY = 0.1  # share of the steps that makes it an error


@rule(
    severity=Severity.WARNING,
    level=Level.NUMERICS,
    needs=(HIDDEN_NONFINITE,),
)
def hidden_nonfinite(facts: Facts) -> Iterator[Verdict]:
    """NaN or infinite values are replaced in the forward pass.

    ## What it does
    Counts the NaN and infinite elements that `torch.nan_to_num` replaced in what the model made of
    its inputs and weights, and in gradients. Any is a finding; it is an error where it happens on
    more than a tenth of the steps that were read, or where the second half of the run has more than
    twice as many as the first. Replacing missing values in the data themselves does not count.

    ## Why it matters
    The loss stays finite and looks fine, while a part of the model computes nothing. Gradients do
    not flow through what was replaced, or they are NaN where the forward pass was patched and the
    backward pass was not. What made the first NaN goes on unseen.

    ## What to do
    Find the operation that makes them and mend it there: clamp the argument of a logarithm or a
    root, keep one key of each attention row, clean the inputs. Then take the replacement out.

    ## When it is wrong
    Missing values that are marked by NaN and replaced on purpose behind a layer that is trained, or
    in data that gradients are asked of.

    ## How to confirm
    - Replace `nan_to_num` by `assert x.isfinite().all()` and see where it stops first.
    """
    hidden = facts.run[HIDDEN_NONFINITE].get("")
    if hidden is None or not len(hidden):
        yield hidden_nonfinite.not_examined("no forward pass was sampled")
        return
    bad = hidden.values > 0
    count = int(bad.sum())
    if not count:
        yield hidden_nonfinite.clear(f"nothing was replaced on {len(hidden)} sampled steps")
        return
    half = len(hidden) // 2
    earlier, later = float(hidden.values[:half].sum()), float(hidden.values[half:].sum())
    grows = count >= 5 and later > 2 * earlier
    first, most = int(hidden.steps[bad.argmax()]), float(hidden.values.max())
    yield hidden_nonfinite.finding(
        f"nan_to_num replaced NaN or infinite values on {count} of {len(hidden)} sampled steps,"
        f" from step {first} on, up to {most:,.0f} elements at a time"
        + (", more and more" if grows else ""),
        severity=Severity.ERROR if count > _MANY * len(hidden) or grows else Severity.WARNING,
        confidence=Confidence.CERTAIN,
        onset=first,
        evidence=(
            Evidence(
                HIDDEN_NONFINITE,
                (first, hidden.last),
                f"{float(np.median(hidden.values[bad])):,.0f} elements on the usual such step",
            ),
        ),
        fix="mend the operation that makes them, and take nan_to_num out",
    )
