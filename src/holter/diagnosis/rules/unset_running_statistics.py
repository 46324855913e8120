"""An average of the model has batch norms whose running statistics were never set."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.events import CopyCompared
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS


@rule(severity=Severity.ERROR, level=Level.PROCEDURE, needs=(LOSS,), preview=True)
def unset_running_statistics(
    facts: Facts,
    *,
    min_written: Annotated[float, "writes to each weight of the copy, as a share of steps"] = 0.1,
) -> Iterator[Verdict]:
    """An average of the model has batch norms whose running statistics were never set.

    ## What it does
    Compares copies of the model that the script leaves with the model. It reports a copy in eval
    mode whose weights were written during training while its batch norms still have a running mean
    of 0 and a variance of 1, unlike those of the model.

    ## Why it matters
    In eval mode a batch norm normalises by its running statistics. With the initial ones, every
    layer after it is given inputs of another scale than in training: the copy that is validated and
    saved is far worse than the model that was trained.

    ## Example
    ```python
    for a, p in zip(ema.parameters(), model.parameters()): a.lerp_(p, 0.01)               # bad
    ema = torch.optim.swa_utils.AveragedModel(model, avg_fn=average, use_buffers=True)    # good
    ```

    ## What to do
    Copy the buffers as well, `for a, b in zip(ema.buffers(), model.buffers()): a.copy_(b)`, or
    compute them with `torch.optim.swa_utils.update_bn(loader, ema)` before the copy is used.

    ## When it is wrong
    The copy is not used in eval mode, or its statistics are computed after the script.

    ## How to confirm
    - Print `running_mean` and `running_var` of a batch norm of the copy before validation.
    """
    copies = [event.what for event in facts.run.events_of(CopyCompared)]
    if not copies:
        yield unset_running_statistics.not_examined("no copy of the model was found")
        return
    steps = facts.run.steps
    bad = [
        copy
        for copy in copies
        if copy.unset_norms and copy.moved > 0 and copy.written >= min_written * steps
    ]
    if not bad:
        yield unset_running_statistics.clear("no average of the model has initial statistics")
        return
    copy = bad[0]
    several = "s" if copy.unset_norms > 1 else ""
    norms = f"{copy.unset_norms} batch norm{several}"
    yield unset_running_statistics.finding(
        f"the weights of a copy of {copy.model} follow the training, but its running statistics do"
        f" not: {norms} in eval mode still at mean 0 and variance 1",
        confidence=Confidence.LIKELY,
        onset=max(steps - 1, 0),
        evidence=(Evidence(LOSS, (0, max(steps - 1, 0)), f"{norms} of the copy, after training"),),
        fix="copy the buffers with the weights: `for a, b in zip(ema.buffers(), model.buffers()):"
        " a.copy_(b)`",
    )
