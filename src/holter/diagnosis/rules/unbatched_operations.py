"""A step consists of many tiny operations that could be batched."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.time import Bound
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import duration, percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import GRAPH_DEPTH, GRAPH_LEAVES, GRAPH_OPERATIONS, TIME_STEP


@rule(
    severity=Severity.WARNING,
    level=Level.SYSTEM,
    needs=(TIME_STEP, GRAPH_OPERATIONS, GRAPH_DEPTH, GRAPH_LEAVES),
    preview=True,
)
def unbatched_operations(
    facts: Facts,
    *,
    min_operations: Annotated[float, "operations in a step"] = 300.0,
    min_width: Annotated[float, "operations that do not depend on each other"] = 16.0,
    min_uses: Annotated[float, "operations for each parameter"] = 16.0,
    max_seconds: Annotated[float, "time of an operation that is mostly overhead"] = 2e-4,
    min_share: Annotated[float, "share of the step that the passes take"] = 0.5,
    min_lost: Annotated[float, "seconds that the passes take in the run"] = 0.2,
) -> Iterator[Verdict]:
    """A step consists of many tiny operations that could be batched.

    ## What it does
    Counts the operations in the autograd graph of the loss, the longest dependency chain, and the
    parameters. It reports far more operations than either, if each takes little longer than a
    launch. Deep models (more parameters) and loops over time (longer chains) are not reported.

    ## Why it matters
    Every operation costs some microseconds of overhead; on a GPU a tiny one leaves nearly all of
    the device idle. One operation on a whole batch takes hardly longer than one on a sample.

    ## Example
    ```python
    outputs = torch.stack([model(row) for row in batch])  # bad
    outputs = model(batch)  # good
    ```

    ## What to do
    Replace the loop over samples, elements or heads by an operation on the whole tensor: modules
    take batches, `torch.bmm` multiplies many matrices, `torch.vmap` turns a function of one sample
    into one of a batch. Otherwise `torch.compile` fuses small operations.

    ## When it is wrong
    Samples of different shapes, such as graphs or images of several sizes, have to be padded or
    packed first, which may cost more than it saves. Actions of a policy depend on each other
    through the environment, which the graph does not show; the finding is therefore a hint.

    ## How to confirm
    - `holter try throughput train.py` lists the operators that take most time, with their calls.
    """
    times = facts.time
    if isinstance(times, str):
        yield unbatched_operations.not_examined(times)
        return
    run = facts.run
    operations, depth, leaves = (
        float(np.median(run[signal][""].values))
        for signal in (GRAPH_OPERATIONS, GRAPH_DEPTH, GRAPH_LEAVES)
    )
    passes = times.forward + times.backward
    each, share = passes / max(operations, 1.0), times.share(passes)
    measured = (
        f"{operations:.0f} operations in the graph of a step, at most {depth:.0f} one after another"
    )
    if (
        operations < min_operations
        or operations < min_width * depth
        or operations < min_uses * leaves
        or each > max_seconds
        or share < min_share
        or share * times.total < min_lost
        or (times.idle is not None and times.bound is not Bound.LAUNCHES)
    ):
        yield unbatched_operations.clear(f"{measured}, {duration(each)} each")
        return
    first, last = run[GRAPH_OPERATIONS][""].first, run[GRAPH_OPERATIONS][""].last
    yield unbatched_operations.finding(
        f"a step runs {operations:.0f} small operations ({duration(each)} each, backward pass"
        f" included) on {leaves:.0f} parameters; on average {operations / depth:.0f} of them are"
        f" independent. They take {percent(share)} of the step",
        confidence=Confidence.HINT,  # an environment between two actions is not in the graph
        onset=first,
        evidence=(
            Evidence(GRAPH_OPERATIONS, (first, last), measured),
            Evidence(TIME_STEP, (times.first, times.last), f"{duration(times.step)} a step"),
        ),
        fix="replace the loop by one operation on the whole batch: `model(batch)` instead of"
        " `torch.stack([model(row) for row in batch])`, or `torch.vmap(function)(batch)`",
    )
