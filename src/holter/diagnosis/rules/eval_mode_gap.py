"""In eval mode the model is not the one that was trained."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.format import Floats
from holter.record.signals import (
    EVAL_GAP_LOSS,
    EVAL_GAP_MOMENTUM,
    EVAL_GAP_START,
    EVAL_GAP_VALUES,
    EVAL_GAP_VARIANCE,
)

_ERRORS = 3  # standard errors of the mean over batches
_FEW = 16  # values per channel


@rule(
    severity=Severity.WARNING,
    level=Level.ARCHITECTURE,
    needs=(EVAL_GAP_LOSS, EVAL_GAP_START),
)
def eval_mode_gap(
    facts: Facts, *, min_lost: float = 0.3, min_factor: float = 1.5
) -> Iterator[Verdict]:
    """In eval mode the model is not the one that was trained.

    ## What it does
    Reads the experiment eval-gap: the losses of a few batches after some steps on them, in train
    mode and in eval mode, when running statistics have had time to settle. The rule speaks where
    eval mode loses `min_lost` or more of what training gained, by more than three standard errors,
    and is worse than train mode with dropout. It is likely where batch norm makes the gap and the
    running variance of a module differs from that of the batches by `min_factor` or more; a hint
    where neither batch norm nor dropout makes it. That eval mode is better is what dropout does.

    ## Why it matters
    Validation and use are in eval mode. A model that is good in train mode only is not a good
    model; to evaluate it in train mode makes each answer depend on the rest of the batch.

    ## What to do
    Where batch norm takes its statistics from a handful of values: larger batches, group norm or
    layer norm. See that `momentum` is not 0 (torch's 0.1 is 0.9 elsewhere), that batches are mixed
    and not sorted by class, and that the model is not given something else in training.

    ## When it is wrong
    Models that are never used in eval mode. Modules that do another thing in eval mode on purpose,
    such as returning probabilities.

    ## How to confirm
    - Compute the loss of one training batch in `train()` and in `eval()` mode.
    - Set `momentum=None` in batch norm for one epoch without steps, and compare again: then running
      statistics are exact.
    """
    losses = {trial: facts.run[EVAL_GAP_LOSS][trial].values for trial in facts.run[EVAL_GAP_LOSS]}
    start = float(facts.run[EVAL_GAP_START][""].values.mean())
    quiet = float(losses["train without dropout"].mean())
    means = {trial: float(each.mean()) for trial, each in losses.items()}
    gained = start - quiet
    said = f"the same batches: {means['train']:.3g} in train mode, {means['eval']:.3g} in eval mode"
    if not np.isfinite([start, *means.values()]).all():
        yield eval_mode_gap.not_examined("a loss is not finite")
        return
    whole = losses["eval"] - losses["train without dropout"]
    if not _is_worse(whole) or means["eval"] <= means["train"]:
        yield eval_mode_gap.clear(said)
        return
    if gained <= 0:
        yield eval_mode_gap.not_examined("a few steps of training do not lower the loss")
        return
    lost = float(whole.mean()) / gained
    if lost < min_lost:
        yield eval_mode_gap.clear(f"{said}, {lost:.0%} of what was gained from {start:.3g}")
        return
    normed = losses["batch norm in eval mode"] - losses["train without dropout"]
    by_norm = _is_worse(normed) and float(normed.mean()) >= min_lost * gained
    module, factor, values = _norm(facts)
    off = by_norm and factor >= min_factor
    if by_norm and not off:
        yield eval_mode_gap.clear(
            f"{said}; running statistics are within a factor of {factor:.2g} of those of batches"
        )
        return
    cause = (
        f"; batch norm {module} has a running variance off by {factor:.2g}x, from {values:.0f}"
        " values per channel a batch"
        if off
        else "; neither dropout nor batch norm makes the difference"
    )
    window = 0, len(whole) - 1
    yield eval_mode_gap.finding(
        f"{said}, where training began at {start:.3g}{cause}",
        confidence=Confidence.LIKELY if off else Confidence.HINT,
        onset=0,
        evidence=(
            Evidence(EVAL_GAP_LOSS, window, f"{means['train']:.3g}", "train"),
            Evidence(EVAL_GAP_LOSS, window, f"{means['eval']:.3g}", "eval"),
            *((Evidence(EVAL_GAP_VARIANCE, (0, 0), f"{factor:.2g}x", module),) if off else ()),
        ),
        fix=_fix(facts, module, values) if off else "see what modules do `if self.training`",
    )


def _is_worse(gap: Floats) -> bool:
    error = float(gap.std()) / np.sqrt(max(len(gap), 1))
    return bool(gap.mean() > _ERRORS * error)


def _norm(facts: Facts) -> tuple[str, float, float]:
    if EVAL_GAP_VARIANCE not in facts.run:
        return "", 1.0, np.inf
    (module,) = facts.run[EVAL_GAP_VARIANCE]
    factor, values = (
        facts.run[each][module].values[-1] for each in (EVAL_GAP_VARIANCE, EVAL_GAP_VALUES)
    )
    return module, float(factor), float(values)


def _fix(facts: Facts, module: str, values: float) -> str:
    momentum = float(facts.run[EVAL_GAP_MOMENTUM][module].values[-1])
    if momentum == 0:
        return f"set a momentum for {module}: with 0 its running statistics never move"
    if values <= _FEW:
        return "use group norm or layer norm, or a larger batch"
    return f"see whether all that goes through {module} in training is alike, and like validation"
