"""A transformer is stuck after first steps of Adam at its full learning rate."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.progress import level, median_update
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    ATTENTION_LOGIT_ABSMAX,
    LOSS,
    LR,
    NORMALISATION_INPUT_RMS,
    OUTPUT_SIZE,
    OUTPUT_SPREAD,
    TARGET_ENTROPY,
    UPDATE_RATIO,
)

_FIRST = 10  # steps that a warm-up would have made small
_ALIKE = 0.03  # share of their size by which predictions vary that hardly depend on the input
_LARGE_UPDATE = 0.005  # relative change of a parameter in one step that shakes a network
_ATTENTION = ("attn", "attention", "in_proj")  # parts of the names of its parameters


@rule(
    severity=Severity.WARNING,
    level=Level.HYPERPARAMETER,
    needs=(LOSS, LR, UPDATE_RATIO),
)
def missing_warmup(facts: Facts, *, min_steps: int = 60, near: float = 0.05) -> Iterator[Verdict]:
    """A transformer is stuck after first steps of Adam at its full learning rate.

    ## What it does
    Looks at transformers (attention and layer norms) that Adam or its like trains for at least
    `min_steps` steps, with the largest learning rate at the first of them. It speaks only where the
    outcome is bad, the loss of the last half at or above its first level or within `near` of the
    entropy of the labels with predictions that hardly depend on the input, and where the first ten
    updates changed the usual parameter by 0.5 % and more each, several times as much as later ones.

    ## Why it matters
    Adam's first steps have full size whatever the gradients are, as its second moments know a few
    batches only. In networks with the layer norm after the residual sum these steps push the upper
    layers where no gradient comes back from: the loss parks at the frequencies of the labels.

    ## What to do
    Raise the learning rate from 0 over the first few hundred steps or some percent of training; or
    put the layer norm before each block (`norm_first=True`).

    ## When it is wrong
    A learning rate that is too high at any time gives the same picture, and so does data from which
    nothing can be learned. Most transformers train without a warm-up; those are left alone.

    ## How to confirm
    - Repeat the first 300 steps with a linear warm-up of 100: the loss should pass the level at
      which it parks now.
    - Repeat them with a tenth of the learning rate.
    """
    loss, known = facts.falling_loss, facts.rates
    if not _is_transformer(facts):
        yield missing_warmup.not_examined("no attention and layer norms were seen")
        return
    if not _is_adam(facts):
        yield missing_warmup.not_examined("the optimizer is not of Adam's kind")
        return
    if loss is None or len(known) != 1 or facts.run.steps < min_steps:
        yield missing_warmup.not_examined(
            f"{facts.run.steps} steps; it takes {min_steps}, of one"
            " optimizer whose loss has to fall"
        )
        return
    rate = known[0]
    if rate.values[0] < 0.5 * rate.peak:
        reached = int(rate.steps[(rate.values > 0.99 * rate.peak).argmax()])
        yield missing_warmup.clear(f"the learning rate warms up until step {reached}")
        return
    first = level(loss, loss.first, loss.first + 8)
    last = level(loss, loss.last / 2, loss.last + 1)
    early = median_update(facts, 0, _FIRST - 1)
    late = median_update(facts, 2 * _FIRST, loss.last)
    if first is None or last is None or early is None or late is None:
        yield missing_warmup.not_examined("too few losses or updates were read")
        return
    entropy = _entropy(facts)
    parked = entropy is not None and abs(last / entropy - 1) < near and _answers_alike(facts)
    moved = f"loss {first:.4g} at first, {last:.4g} at last; first updates {early:.1g} of a weight"
    shaken = early > _LARGE_UPDATE and early > 3 * late
    if not (parked or last >= first) or not shaken:
        yield missing_warmup.clear(f"{moved}, later ones {late:.1g}")
        return
    against = f"; the entropy of the labels is {entropy:.4g}" if entropy is not None else ""
    yield missing_warmup.finding(
        f"no warm-up: the learning rate is {rate.values[0]:.3g} from the first step on; {moved},"
        f" {early / max(late, 1e-30):.2g} times the later ones{against}",
        confidence=Confidence.LIKELY,
        onset=0,
        evidence=(
            Evidence(UPDATE_RATIO, (0, _FIRST - 1), f"median {early:.2g} a step, later {late:.1g}"),
            Evidence(LOSS, (loss.first, loss.last), f"last half {last:.4g}{against}"),
            Evidence(LR, (0, _FIRST - 1), f"{rate.values[0]:.3g}, its peak", rate.group),
        ),
        fix="raise the learning rate from 0 over the first few hundred steps",
    )


def _answers_alike(facts: Facts) -> bool:
    """Whether predictions hardly depend on the input at last; where unread, they may not."""
    if OUTPUT_SPREAD not in facts.run or OUTPUT_SIZE not in facts.run:
        return True
    spread = [each.values[-10:] for each in facts.run[OUTPUT_SPREAD].values() if len(each)]
    size = [each.values[-10:] for each in facts.run[OUTPUT_SIZE].values() if len(each)]
    if len(spread) != 1 or len(size) != 1:
        return True
    return bool(np.nanmedian(spread[0]) < _ALIKE * np.nanmedian(size[0]))


def _is_transformer(facts: Facts) -> bool:
    names = [name.lower() for name in facts.run.meta.parameters]
    attends = ATTENTION_LOGIT_ABSMAX in facts.run or any(
        part in name for name in names for part in _ATTENTION
    )
    return attends and NORMALISATION_INPUT_RMS in facts.run


def _is_adam(facts: Facts) -> bool:
    classes = [optimizer.class_name for optimizer in facts.run.meta.optimizers]
    return bool(classes) and all("Adam" in each for each in classes)


def _entropy(facts: Facts) -> float | None:
    """The entropy of the labels, where one loss function was given labels."""
    if TARGET_ENTROPY not in facts.run:
        return None
    read = [each for each in facts.run[TARGET_ENTROPY].values() if len(each)]
    if len(read) != 1 or not np.isfinite(read[0].values[-1]):
        return None
    return float(read[0].values[-1])
