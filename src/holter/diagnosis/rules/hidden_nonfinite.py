"""NaN or infinite values are replaced in the forward pass."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import HIDDEN_NONFINITE


@rule(
    severity=Severity.WARNING,
    level=Level.NUMERICS,
    needs=(HIDDEN_NONFINITE,),
)
def hidden_nonfinite(
    facts: Facts,
    *,
    many: Annotated[float, "share of the sampled steps above which it is an error"] = 0.1,
    growth: Annotated[float, "times as many in the second half, above which it is an error"] = 2.0,
    min_count: Annotated[int, "sampled steps with replaced values needed to judge growth"] = 5,
) -> Iterator[Verdict]:
    """NaN or infinite values are replaced in the forward pass.

    ## What it does
    Counts the NaN and infinite elements that `torch.nan_to_num` replaced in computed tensors and in
    gradients; replacing missing values in the data itself does not count. Any such element is
    reported: as an error if it happens on many steps, or more often in the second half of the run.

    ## Why it matters
    The loss stays finite and looks fine while part of the model computes nothing useful. No
    gradient flows through the replaced elements, or it is NaN if only the forward pass was patched.
    The operation that produces the NaN remains in the model.

    ## Example
    ```python
    hidden = torch.nan_to_num(torch.log(features))   # bad
    hidden = torch.log(features.clamp(min=1e-6))     # good
    ```

    ## What to do
    Find the operation that produces the values and fix it there: clamp the argument of a logarithm
    or a root, keep one key of each attention row, clean the inputs. Then remove `nan_to_num`.

    ## When it is wrong
    Missing values marked by NaN that are replaced on purpose after a trained layer, or in inputs
    that require gradients.

    ## How to confirm
    - Replace `nan_to_num(x)` by `assert x.isfinite().all()`: it stops at the first one.
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
    grows = count >= min_count and later > growth * earlier
    first, largest = int(hidden.steps[bad.argmax()]), float(hidden.values.max())
    typical = float(np.median(hidden.values[bad]))
    yield hidden_nonfinite.finding(
        f"nan_to_num replaced NaN or infinite values on {count} of {len(hidden)} sampled steps, the"
        f" first at step {first}; at most {largest:,.0f} elements",
        severity=Severity.ERROR if grows or count > many * len(hidden) else Severity.WARNING,
        confidence=Confidence.CERTAIN,
        onset=first,
        evidence=(
            Evidence(
                HIDDEN_NONFINITE,
                (first, hidden.last),
                f"median of {typical:,.0f} elements on these steps; {earlier:,.0f} elements in the"
                f" first half of the run, {later:,.0f} in the second",
            ),
        ),
        fix="clamp the argument of the operation that produces them, for example"
        " `torch.log(x.clamp(min=1e-6))`, and remove `nan_to_num`",
    )
