"""A transformer stalls after Adam's first steps at the full learning rate."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.chance import Standing
from holter.diagnosis.facts.layers import Matrix, median
from holter.diagnosis.facts.progress import level, median_update
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import unmet
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    ATTENTION_LOGIT_ABSMAX,
    GRAD_NORM,
    LOSS,
    LR,
    NORMALISATION_INPUT_RMS,
    UPDATE_RATIO,
)

_FIRST = 10  # steps that a warm-up would make small
_UPPER = 3  # last weight matrices, which always receive gradients
_STEPS = 3  # first steps: their gradients are those of the initial weights
_ATTENTION = ("attn", "attention", "in_proj")  # parts of the names of its parameters


@rule(
    severity=Severity.WARNING,
    level=Level.HYPERPARAMETER,
    needs=(LOSS, LR, UPDATE_RATIO, GRAD_NORM),
)
def missing_warmup(
    facts: Facts,
    *,
    min_steps: Annotated[int, "steps needed"] = 60,
    large_update: Annotated[float, "relative update of the first steps"] = 0.005,
    min_ratio: Annotated[float, "first relative updates over later ones"] = 3.0,
    max_gradient: Annotated[
        float, "share that is left of the gradient of the lower half, over that of the last layers"
    ] = 1 / 15,
) -> Iterator[Verdict]:
    """A transformer stalls after Adam's first steps at the full learning rate.

    ## What it does
    Looks at transformers (attention and layer norms) that Adam or a variant trains without a
    warm-up. It reports if the loss stalls at its initial level or at the best constant prediction,
    the relative updates of the first ten steps are large and several times later ones, and the
    lower layers have lost most of their gradient since then.

    ## Why it matters
    Adam's first steps have full size regardless of the gradient, because its second moments have
    seen few batches. In a post-norm transformer, these steps push the upper layers into a region
    that passes no gradient back: the loss stays at the entropy of the labels.

    ## Example
    ```python
    optimizer = Adam(model.parameters(), lr=3e-3)                       # bad
    warmup = LinearLR(optimizer, start_factor=0.01, total_iters=300)    # good
    ```

    ## What to do
    Raise the learning rate from 0 over the first few hundred steps or a few percent of the run; or
    put the layer norm before each block (`norm_first=True`).

    ## When it is wrong
    A learning rate that is too high throughout looks the same. Most transformers train without a
    warm-up, and labels that cannot be learned do not change the gradients of the lower layers:
    neither is reported.

    ## How to confirm
    - Repeat the first 300 steps with a linear warm-up of 100 steps: the loss should fall below the
      level at which it is stuck.
    - Repeat them with a tenth of the learning rate.
    """
    loss = facts.falling_loss
    if not _is_transformer(facts):
        yield missing_warmup.not_examined("the model has no attention or no layer norms")
        return
    if not _is_adam(facts):
        yield missing_warmup.not_examined("the optimizer is not a variant of Adam")
        return
    if loss is None or len(facts.rates) != 1 or facts.run.steps < min_steps:
        yield missing_warmup.not_examined(
            unmet(
                (loss is not None, "no single loss that is never negative"),
                (len(facts.rates) == 1, f"{len(facts.rates)} learning rates instead of one"),
                (
                    facts.run.steps >= min_steps,
                    f"{facts.run.steps} of the {min_steps} steps needed",
                ),
            )
        )
        return
    (rate,) = facts.rates
    if rate.values[0] < 0.5 * rate.peak:
        reached = int(rate.steps[(rate.values > 0.99 * rate.peak).argmax()])
        yield missing_warmup.clear(f"the learning rate warms up until step {reached}")
        return
    first = level(loss, loss.first, loss.first + 8)
    last = level(loss, loss.last / 2, loss.last + 1)
    early = median_update(facts, 0, _FIRST - 1)
    late = median_update(facts, 2 * _FIRST, rate.first_below(0.5) - 1)  # before the rate decays
    if first is None or last is None or early is None or late is None:
        yield missing_warmup.not_examined("too few losses or updates were recorded")
        return
    updates = f"the first relative updates are {early:.1g}, later ones {late:.1g}"
    if early <= max(large_update, min_ratio * late):
        yield missing_warmup.clear(updates)
        return
    went = f"the loss went from {first:.3g} to {last:.3g}"
    if not _is_parked(facts, first, last):
        yield missing_warmup.harmless(f"{updates}; {went}")
        return
    gradient = _gradient_left(facts)
    if gradient is None:
        yield missing_warmup.not_examined(f"{updates}; too few gradients were recorded")
        return
    left = f"the lower layers receive {gradient:.2g} times their initial share of the gradient"
    if gradient > max_gradient:
        yield missing_warmup.clear(f"{updates}, but {left}")
        return
    baseline = facts.baseline
    against = (
        ""
        if isinstance(baseline, str)
        else f" (best constant prediction {baseline.level * baseline.scale:.3g})"
    )
    yield missing_warmup.finding(
        f"no warm-up: the learning rate is {rate.values[0]:.3g} from the first step; {updates};"
        f" since then {left}; {went}{against}",
        confidence=Confidence.LIKELY,
        onset=0,
        evidence=(
            Evidence(UPDATE_RATIO, (0, _FIRST - 1), f"median {early:.2g}, later {late:.1g}"),
            Evidence(GRAD_NORM, (0, facts.run.steps - 1), left, facts.layers[0].name),
            Evidence(LOSS, (loss.first, loss.last), f"{last:.3g} in the second half{against}"),
            Evidence(LR, (0, _FIRST - 1), f"{rate.values[0]:.3g}, its peak", rate.group),
        ),
        fix="raise the learning rate over the first few hundred steps: `LinearLR(optimizer,"
        " start_factor=0.01, total_iters=300)`",
    )


def _is_parked(facts: Facts, first: float, last: float) -> bool:
    """Whether the loss stays where it is, and does not fall through that level."""
    chance = facts.chance
    return last >= first if isinstance(chance, str) else chance.standing is Standing.AT_CHANCE


def _gradient_left(facts: Facts) -> float | None:
    """Return what is left of the gradient of the lower half, relative to that of the last layers.

    It is 1 if gradients return through the upper layers as they did at the first steps.
    """
    norms = facts.sample(GRAD_NORM, [layer.name for layer in facts.layers])
    if len(norms) < 4 * _STEPS or len(norms.owners) < 2 * _UPPER:
        return None
    first = _share_of_lower(norms.values[:_STEPS])
    later = _share_of_lower(norms.between(0.5, 1).values)
    return later / first if first > 0 else None


def _share_of_lower(norms: Matrix) -> float:
    """Return the median gradient norm of the lower half over that of the last layers."""
    sizes = np.nan_to_num(median(norms, axis=0))
    upper = float(np.median(sizes[-_UPPER:]))
    return float(np.median(sizes[: len(sizes) // 2])) / upper if upper > 0 else 0.0


def _is_transformer(facts: Facts) -> bool:
    names = [name.lower() for name in facts.run.meta.parameters]
    attends = ATTENTION_LOGIT_ABSMAX in facts.run or any(
        part in name for name in names for part in _ATTENTION
    )
    return attends and NORMALISATION_INPUT_RMS in facts.run


def _is_adam(facts: Facts) -> bool:
    classes = [optimizer.class_name for optimizer in facts.run.meta.optimizers]
    return bool(classes) and all("Adam" in name for name in classes)
