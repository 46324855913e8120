"""The running statistics of batch norm are still near their initial values."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent
from holter.record.events import CopyCompared, StatisticsCompared
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import EVAL_GAP_LOSS, LOSS

_ORDINARY = 0.05  # momentum from which only a run of very few updates leaves initial values
_SAME = 1.1  # loss in eval mode over that in train mode, which is no damage


@rule(severity=Severity.ERROR, level=Level.PROCEDURE, needs=(LOSS,), preview=True)
def unset_running_statistics(
    facts: Facts,
    *,
    min_written: Annotated[float, "writes to each weight of the copy, as a share of steps"] = 0.1,
    min_left: Annotated[float, "share of the initial values in the statistics"] = 0.1,
    min_variance: Annotated[float, "factor by which the running variance is off"] = 1.5,
    min_mean: Annotated[float, "standard deviations by which the running mean is off"] = 0.5,
    max_unexplained: Annotated[float, "share of the error without the initial values"] = 0.5,
) -> Iterator[Verdict]:
    """The running statistics of batch norm are still near their initial values.

    ## What it does
    Compares the final running statistics with those of a training batch. It reports statistics that
    are off because a small `momentum` keeps a share of the initial mean 0 and variance 1,
    `(1 - momentum) ** updates`. It also reports an averaged copy of the model whose weights were
    updated during training but whose statistics were not.

    ## Why it matters
    In eval mode batch norm uses its running statistics. With the initial ones, every later layer
    receives inputs on a different scale than in training: the validated and saved model is far
    worse than the trained one.

    ## Example
    ```python
    nn.BatchNorm2d(64, momentum=0.001)  # bad
    nn.BatchNorm2d(64, momentum=0.1)    # good
    ```

    ## What to do
    Use torch's default `momentum=0.1`, which other frameworks call 0.9. For a copy of the model,
    copy the buffers as well, `for a, b in zip(ema.buffers(), model.buffers()): a.copy_(b)`, or
    compute them with `torch.optim.swa_utils.update_bn(loader, model)` before the model is used.

    ## When it is wrong
    The model is not used in eval mode, or its statistics are recomputed later.

    ## How to confirm
    - Print `running_mean` and `running_var` of a batch norm before validation.
    - Compare the loss of a training batch in `train()` and in `eval()` mode.
    """
    compared = [event.what for event in facts.run.events_of(StatisticsCompared)]
    for statistics in compared:
        yield _of_training(
            facts,
            statistics,
            min_left=min_left,
            is_off=statistics.variance >= min_variance or statistics.mean >= min_mean,
            is_explained=statistics.unexplained <= max_unexplained,
        )
    copies = [event.what for event in facts.run.events_of(CopyCompared)]
    if copies:
        yield _of_copies(facts, copies, min_written)
    elif not compared:
        yield unset_running_statistics.not_examined("no copy of the model was found")


def _of_training(
    facts: Facts,
    statistics: StatisticsCompared,
    *,
    min_left: float,
    is_off: bool,
    is_explained: bool,
) -> Verdict:
    left = f"{statistics.updates} updates leave {percent(statistics.left)} of the initial values"
    off = (
        f"the running variance of {statistics.module} is off by a factor of"
        f" {statistics.variance:.3g}, its mean by {statistics.mean:.2g} standard deviations"
    )
    if statistics.left < min_left or not is_off or not is_explained:
        return unset_running_statistics.clear(f"{left}; {off}")
    damage = _damage(facts)
    if damage is not None and damage <= _SAME:
        return unset_running_statistics.harmless(f"{off}, but the loss in eval mode is the same")
    momentum = statistics.momentum
    is_small = momentum is not None and momentum < _ORDINARY
    several = f" of {statistics.norms}" if statistics.norms > 1 else ""
    with_momentum = "" if momentum is None else f" with a momentum of {momentum:g}"
    last = max(facts.run.steps - 1, 0)
    worse = "" if damage is None else f": the loss in eval mode is {damage:.3g} times as large"
    return unset_running_statistics.finding(
        f"{left} (mean 0, variance 1) in the running statistics{with_momentum}; {off}{worse}",
        confidence=Confidence.CERTAIN if is_small else Confidence.HINT,
        onset=last,
        evidence=(
            Evidence(LOSS, (0, last), f"the worst batch norm{several}, after {last + 1} steps"),
        ),
        fix="use the default `momentum=0.1`, or compute the statistics before evaluation with"
        " `torch.optim.swa_utils.update_bn(loader, model)`",
    )


def _damage(facts: Facts) -> float | None:
    """Return by which factor the loss of training batches is higher in eval mode, if measured."""
    if EVAL_GAP_LOSS not in facts.run:
        return None
    losses = facts.run[EVAL_GAP_LOSS]
    train, evaluated = (float(losses[mode].values.mean()) for mode in ("train", "eval"))
    return evaluated / train if train > 0 else None


def _of_copies(facts: Facts, copies: list[CopyCompared], min_written: float) -> Verdict:
    steps = facts.run.steps
    bad = [
        copy
        for copy in copies
        if copy.unset_norms and copy.moved > 0 and copy.written >= min_written * steps
    ]
    if not bad:
        return unset_running_statistics.clear("no average of the model has initial statistics")
    copy = bad[0]
    several = "s" if copy.unset_norms > 1 else ""
    norms = f"{copy.unset_norms} batch norm{several}"
    return unset_running_statistics.finding(
        f"the weights of a copy of {copy.model} follow the training, but its running statistics do"
        f" not: {norms} in eval mode still at mean 0 and variance 1",
        confidence=Confidence.LIKELY,
        onset=max(steps - 1, 0),
        evidence=(Evidence(LOSS, (0, max(steps - 1, 0)), f"{norms} of the copy, after training"),),
        fix="copy the buffers with the weights: `for a, b in zip(ema.buffers(), model.buffers()):"
        " a.copy_(b)`",
    )
