"""A transformer is stuck after first steps of Adam at its full learning rate."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.progress import level, median_update
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import unmet
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    ATTENTION_LOGIT_ABSMAX,
    LOSS,
    LR,
    NORMALISATION_INPUT_RMS,
    UPDATE_RATIO,
)

_FIRST = 10  # steps that a warm-up would make small
_ATTENTION = ("attn", "attention", "in_proj")  # parts of the names of its parameters


@rule(
    severity=Severity.WARNING,
    level=Level.HYPERPARAMETER,
    needs=(LOSS, LR, UPDATE_RATIO),
)
def missing_warmup(
    facts: Facts,
    *,
    min_steps: Annotated[int, "steps needed"] = 60,
    large_update: Annotated[float, "relative update of the first steps"] = 0.005,
    min_ratio: Annotated[float, "first relative updates over later ones"] = 3.0,
    near: Annotated[float, "relative distance to the best constant prediction"] = 0.05,
) -> Iterator[Verdict]:
    """A transformer is stuck after first steps of Adam at its full learning rate.

    ## What it does
    Looks at transformers (attention and layer norms) that Adam or a variant trains without a
    warm-up. It reports if the relative updates of the first ten steps are large and several times
    those of later steps, and the loss ends at or above its start or at the level of the best
    constant prediction.

    ## Why it matters
    Adam's first steps have full size whatever the gradients are, because its second moments have
    seen few batches. With the layer norm after the residual sum, these steps push the upper layers
    to where no gradient returns: the loss stays at the entropy of the labels.

    ## Example
    ```python
    optimizer = Adam(model.parameters(), lr=3e-3)                       # bad
    warmup = LinearLR(optimizer, start_factor=0.01, total_iters=300)    # good
    ```

    ## What to do
    Raise the learning rate from 0 over the first few hundred steps or a few percent of the run; or
    put the layer norm before each block (`norm_first=True`).

    ## When it is wrong
    A learning rate that is too high throughout looks the same, and so does data from which nothing
    can be learned. Most transformers train without a warm-up; they are not reported.

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
    baseline = facts.baseline
    constant = None if isinstance(baseline, str) else baseline.level * baseline.scale
    stuck = constant is not None and abs(last / constant - 1) < near
    went = f"the loss went from {first:.3g} to {last:.3g}"
    if not stuck and last < first:
        yield missing_warmup.harmless(f"{updates}; {went}")
        return
    against = "" if constant is None else f" (best constant prediction {constant:.3g})"
    yield missing_warmup.finding(
        f"no warm-up: the learning rate is {rate.values[0]:.3g} from the first step; {updates};"
        f" {went}{against}",
        confidence=Confidence.LIKELY,
        onset=0,
        evidence=(
            Evidence(UPDATE_RATIO, (0, _FIRST - 1), f"median {early:.2g}, later {late:.1g}"),
            Evidence(LOSS, (loss.first, loss.last), f"{last:.3g} in the second half{against}"),
            Evidence(LR, (0, _FIRST - 1), f"{rate.values[0]:.3g}, its peak", rate.group),
        ),
        fix="raise the learning rate over the first few hundred steps: `LinearLR(optimizer,"
        " start_factor=0.01, total_iters=300)`",
    )


def _is_transformer(facts: Facts) -> bool:
    names = [name.lower() for name in facts.run.meta.parameters]
    attends = ATTENTION_LOGIT_ABSMAX in facts.run or any(
        part in name for name in names for part in _ATTENTION
    )
    return attends and NORMALISATION_INPUT_RMS in facts.run


def _is_adam(facts: Facts) -> bool:
    classes = [optimizer.class_name for optimizer in facts.run.meta.optimizers]
    return bool(classes) and all("Adam" in name for name in classes)
