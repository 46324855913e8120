"""Updates are so small that the weights hardly move."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.curve import rates
from holter.diagnosis.facts.layers import Sample
from holter.diagnosis.rule import exception, rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS, LR, UPDATE_RATIO

_FEWEST = 10  # sampled updates
_COMMON = 1e-3  # relative update of most trainings that go well


@exception
def pretrained_model(facts: Facts, size: float, learned: float) -> str | None:
    """The loss starts far below the best constant prediction: the model is pretrained."""
    curve, baseline = facts.signed_curve, facts.baseline
    if isinstance(curve, str) or isinstance(baseline, str) or not len(curve):
        return None
    first, constant = float(np.median(curve.values[:_FEWEST])), baseline.level * baseline.scale
    if first >= learned * constant:
        return None
    return (
        f"the median relative update is {size:.1g} per step, and the loss starts at {first:.3g}"
        f" (best constant prediction {constant:.3g})"
    )


@rule(
    severity=Severity.WARNING,
    level=Level.HYPERPARAMETER,
    needs=(UPDATE_RATIO, LOSS),
    exceptions=(pretrained_model,),
)
def tiny_updates(
    facts: Facts,
    *,
    limit: Annotated[
        float,
        "relative update per step; 3 times that if the loss is flat, 10 times at chance level",
    ] = 1e-5,
    reach: Annotated[float, "relative update of all steps together"] = 0.1,
    min_fall: Annotated[float, "share by which the loss of a working training falls"] = 0.05,
    learned: Annotated[float, "first loss of a trained model over the constant one"] = 0.8,
    min_gain: Annotated[float, "share below the constant prediction's loss that is progress"] = 0.1,
) -> Iterator[Verdict]:
    """Updates are so small that the weights hardly move.

    ## What it does
    Takes the median relative update of weight matrices at steps where the learning rate is at least
    half of its peak. It reports if it is tiny, all steps together cannot have moved the weights,
    and the loss hardly fell; a loss that ends just below that of the best constant prediction makes
    it a hint. Updates of exactly zero are reported by motionless-weights.

    ## Why it matters
    At a relative update of 1e-6 it takes a million steps to change a weight by its own size. The
    loss hardly falls, which looks like a model that cannot learn.

    ## Example
    ```python
    optimizer = SGD(model.parameters(), lr=3e-5)   # bad
    optimizer = SGD(model.parameters(), lr=0.1)    # good
    ```

    ## What to do
    Raise the learning rate by factors of 10 until the relative update is about 1e-3. SGD needs
    rates about 100 times those of Adam: a rate from a recipe for Adam is the most common cause.

    ## When it is wrong
    Fine-tuning uses small updates on purpose; it is recognised if the best constant prediction is
    known. Gradients that are small for another reason, such as a tiny clipping threshold or
    saturated units, also cause small updates; other findings name that reason.

    ## How to confirm
    - Repeat the first 100 steps with 100 times the learning rate: the loss should fall.
    - Sweep the learning rate upwards within one run and see where the loss begins to fall.
    """
    names = [layer.name for layer in facts.layers]
    ratios = _at_full_rate(facts, facts.sample(UPDATE_RATIO, names or None))
    typical = ratios.typical()
    typical = typical[np.isfinite(typical)]
    if len(typical) < _FEWEST:
        yield tiny_updates.not_examined(f"{len(typical)} of the {_FEWEST} sampled updates needed")
        return
    size, total = float(np.median(typical)), float(np.mean(typical)) * facts.run.steps
    measured = f"the median relative update is {size:.1g} per step"
    if size == 0 or size >= 10 * limit or total >= reach:
        yield tiny_updates.clear(measured)
        return
    outcome = facts.outcome
    if outcome is None:
        yield tiny_updates.not_examined(f"{measured}, but whether the loss fell is unknown")
        return
    # What is too little is not sharp: a loss that stays where it was, or at chance, decides.
    is_near = outcome.gain is not None and outcome.gain < min_gain and not outcome.bad
    if size >= limit and not (outcome.at_chance or is_near or (outcome.bad and size < 3 * limit)):
        yield tiny_updates.clear(f"{measured}; {outcome.says}")
        return
    if outcome.fall > min_fall and not outcome.bad and not is_near:
        yield tiny_updates.harmless(f"{measured}; {outcome.says}")
        return
    excuse = tiny_updates.excused(facts, size, learned)
    if excuse is not None:
        yield excuse
        return
    rate = facts.learning_rate
    at_rate = f" at a learning rate of {rate}" if rate else ""
    evidence = [
        Evidence(
            UPDATE_RATIO,
            (int(ratios.steps[0]), int(ratios.steps[-1])),
            f"median {size:.1g} per step, {total:.1g} in all {facts.run.steps} steps; about"
            f" {_COMMON:g} per step is common",
            ratios.owners[0],
        ),
        outcome.evidence,
    ]
    if rate:
        evidence.append(Evidence(LR, (0, facts.run.steps - 1), f"learning rate {rate}"))
    factor = 10 ** round(float(np.log10(_COMMON / size)))
    yield tiny_updates.finding(
        f"{measured}{at_rate}; {outcome.says}",
        confidence=Confidence.HINT if is_near else Confidence.LIKELY,
        onset=int(ratios.steps[0]),
        evidence=evidence,
        fix=f"raise the learning rate about {factor:,g} times"
        + (f" (now {rate})" if rate else "")
        + f", until the relative update is about {_COMMON:g}",
    )


def _at_full_rate(facts: Facts, ratios: Sample) -> Sample:
    """Return the samples at half of the peak rate or more, without skipped steps."""
    kept = ~np.isin(ratios.steps, facts.skipped_steps)
    peak = max((rate.peak for rate in facts.rates), default=0.0)
    kept &= rates(facts, ratios.steps) >= peak / 2
    return Sample(ratios.steps[kept], ratios.owners, ratios.values[kept])
