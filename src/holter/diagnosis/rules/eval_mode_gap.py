"""The loss of a training batch is far higher in eval mode than in train mode."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.format import Floats
from holter.record.signals import (
    EVAL_GAP_LOSS,
    EVAL_GAP_MOMENTUM,
    EVAL_GAP_START,
    EVAL_GAP_VALUES,
    EVAL_GAP_VARIANCE,
)

_FEW = 16  # values per channel for which the fix is another norm


@rule(
    severity=Severity.WARNING,
    level=Level.ARCHITECTURE,
    needs=(EVAL_GAP_LOSS, EVAL_GAP_START),
)
def eval_mode_gap(
    facts: Facts,
    *,
    min_lost: Annotated[float, "share of the learned loss that eval mode loses"] = 0.3,
    min_factor: Annotated[float, "running variance over that of batches, or inverse"] = 1.5,
    standard_errors: Annotated[float, "over batches that the gap must exceed"] = 3.0,
) -> Iterator[Verdict]:
    """The loss of a training batch is far higher in eval mode than in train mode.

    ## What it does
    Uses the experiment `eval-gap`: it trains on a few batches for some steps, then compares their
    loss in train mode and in eval mode, after the running statistics have converged. It reports if
    eval mode loses much of the improvement and is worse than train mode with dropout. The finding
    is likely if a wrong running variance of batch norm causes the gap; a hint if another module
    does.

    ## Why it matters
    Validation and inference use eval mode. Evaluating the model in train mode is no solution: each
    output then depends on the rest of the batch.

    ## Example
    ```python
    nn.BatchNorm2d(64, momentum=0.0)    # bad
    nn.BatchNorm2d(64, momentum=0.1)    # good
    ```

    ## What to do
    If batch norm computes its statistics from a handful of values: larger batches, group norm or
    layer norm. Check that `momentum` is not 0 (torch's 0.1 is 0.9 elsewhere), that batches are
    shuffled and not sorted by class, and that the model receives the same inputs in both modes.

    ## When it is wrong
    Models that are never used in eval mode. Modules that deliberately behave differently in eval
    mode, such as returning probabilities.

    ## How to confirm
    - Compute the loss of one training batch in `train()` and in `eval()` mode.
    - Set `momentum=None` in batch norm, run one epoch without steps, and compare again: the running
      statistics are then exact.
    """
    losses = {trial: series.values for trial, series in facts.run[EVAL_GAP_LOSS].items()}
    means = {trial: float(values.mean()) for trial, values in losses.items()}
    start = float(facts.run[EVAL_GAP_START][""].values.mean())
    gained = start - means["train without dropout"]
    measured = (
        f"the loss of the same batches is {means['train']:.3g} in train mode and"
        f" {means['eval']:.3g} in eval mode"
    )
    if not np.isfinite([start, *means.values()]).all():
        yield eval_mode_gap.not_examined("a loss is not finite")
        return
    gap = losses["eval"] - losses["train without dropout"]
    if not _is_positive(gap, standard_errors) or means["eval"] <= means["train"]:
        yield eval_mode_gap.clear(measured)
        return
    if gained <= 0:
        yield eval_mode_gap.not_examined("a few steps of training do not lower the loss")
        return
    lost = float(gap.mean()) / gained
    if lost < min_lost:
        yield eval_mode_gap.clear(
            f"{measured}, {percent(lost)} of the improvement from {start:.3g} is lost"
        )
        return
    norm_gap = losses["batch norm in eval mode"] - losses["train without dropout"]
    module, factor, values = _norm(facts)
    by_norm = (
        module != ""
        and _is_positive(norm_gap, standard_errors)
        and float(norm_gap.mean()) >= min_lost * gained
    )
    is_off = by_norm and factor >= min_factor
    if is_off:
        cause = (
            f"; the running variance of {module}, from {values:.0f} values per channel, is off by a"
            f" factor of {factor:.2g}"
        )
    elif by_norm:
        cause = f"; batch norm causes the gap, its variance is off by a factor of {factor:.2g}"
    else:
        cause = "; neither dropout nor batch norm causes the gap"
    window = 0, len(gap) - 1
    yield eval_mode_gap.finding(
        f"{measured} ({start:.3g} before training){cause}",
        confidence=Confidence.LIKELY if is_off else Confidence.HINT,
        onset=0,
        evidence=(
            Evidence(EVAL_GAP_LOSS, window, f"{means['train']:.3g}", "train"),
            Evidence(EVAL_GAP_LOSS, window, f"{means['eval']:.3g}", "eval"),
            *_norm_evidence(module, factor, values, by_norm=by_norm),
        ),
        fix=_fix(facts, module, values)
        if by_norm
        else "look for modules that branch on `self.training`",
    )


def _is_positive(gap: Floats, standard_errors: float) -> bool:
    error = float(gap.std()) / np.sqrt(max(len(gap), 1))
    return bool(gap.mean() > standard_errors * error)


def _norm(facts: Facts) -> tuple[str, float, float]:
    """Return the worst batch norm, the factor its variance is off by, and values per channel."""
    if EVAL_GAP_VARIANCE not in facts.run:
        return "", 1.0, np.inf
    (module,) = facts.run[EVAL_GAP_VARIANCE]
    factor, values = (
        facts.run[signal][module].values[-1] for signal in (EVAL_GAP_VARIANCE, EVAL_GAP_VALUES)
    )
    return module, float(factor), float(values)


def _norm_evidence(
    module: str, factor: float, values: float, *, by_norm: bool
) -> Iterator[Evidence]:
    if by_norm:
        says = f"{factor:.2g} times that of batches, from {values:.0f} values per channel"
        yield Evidence(EVAL_GAP_VARIANCE, (0, 0), says, module)


def _fix(facts: Facts, module: str, values: float) -> str:
    momentum = float(facts.run[EVAL_GAP_MOMENTUM][module].values[-1])
    if momentum == 0:
        return f"set `momentum=0.1` for {module}: with 0 its running statistics never change"
    if values <= _FEW:
        return "use `nn.GroupNorm` or `nn.LayerNorm`, or a larger batch"
    return (
        f"check that all inputs of {module} have the same distribution, in training and in"
        " validation"
    )
