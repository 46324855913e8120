"""Initial weights are far too large for their fan-in."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from holter.diagnosis.damage import Damage, damage_of
from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.outcome import OutcomeState
from holter.diagnosis.facts.robust import midmean
from holter.diagnosis.facts.weight_growth import fan_ins, initial_size
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import number
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    ATTENTION_LOGIT_ABSMAX,
    BASELINE_SCORE,
    LOSS,
    PARAMETER_FAN_IN,
    TARGET_ENTROPY,
    UPDATE_RATIO,
    WEIGHT_NORM,
)

_LEAST_FAN_IN = 4  # below, the few weights of a row have any size
_LOG_CHANCE = -4.0  # of the comparison with a simple model, as `beaten-by-baseline` asks for
_GAIN, _SHARE, _ROWS = 0.1, 0.5, 100
_TIMES, _NATS = 3.0, 3.0  # guessing that a first loss exceeds as `large-initial-loss` reports it


@dataclass(frozen=True, slots=True)
class _Sizes:
    """The initial RMS of each weight matrix times the square root of its fan-in."""

    by_name: dict[str, float]
    limit: float

    @property
    def above(self) -> int:
        """How many are oversized."""
        return sum(size > self.limit for size in self.by_name.values())

    @property
    def median(self) -> float:
        """The upper median: half of the matrices are at least as large."""
        sizes = sorted(self.by_name.values())
        return sizes[len(sizes) // 2]

    @property
    def largest(self) -> str:
        """The name of the matrix with the largest."""
        return max(self.by_name, key=lambda name: self.by_name[name])

    def __str__(self) -> str:
        return (
            f"the initial weights of {len(self.by_name)} layers have a median RMS of"
            f" {self.median:.2g} / sqrt(fan-in) (Xavier and Kaiming: 1 to 1.4, torch: 0.58)"
        )


@rule(
    severity=Severity.ERROR,
    level=Level.ARCHITECTURE,
    needs=(WEIGHT_NORM, PARAMETER_FAN_IN),
    preview=True,
)
def oversized_weights(
    facts: Facts,
    *,
    size: Annotated[float, "median RMS of the weights x sqrt(fan-in) that is too large"] = 4.0,
    min_layers: Annotated[int, "weight matrices needed"] = 2,
    max_loss: Annotated[float, "final loss over the best constant prediction, for a hint"] = 0.8,
    first_loss: Annotated[float, "first loss over the best constant prediction that is far"] = 2.0,
    large_logits: Annotated[float, "largest attention logit that saturates the softmax"] = 30.0,
    little: Annotated[float, "final loss, over the same, up to which those two are harmless"] = 0.5,
) -> Iterator[Verdict]:
    """Initial weights are far too large for their fan-in.

    ## What it does
    Compares the initial RMS of each linear, convolutional, recurrent and attention weight with
    1 / sqrt(fan-in), which preserves the size of the input. It reports a median far above if the
    training failed, a simple model is far better, or the loss or the attention starts far off.
    Embeddings, frozen and normalised weights do not count.

    ## Why it matters
    Each layer multiplies its input. A normalisation hides the size of activations, but the softmax
    of attention and of the output saturates, and updates are small relative to such weights.

    ## Example
    ```python
    nn.init.normal_(layer.weight, std=1.0)    # bad
    nn.init.normal_(layer.weight, std=0.02)   # good
    ```

    ## What to do
    Keep the default initialisation, or use `nn.init.xavier_uniform_` or `nn.init.kaiming_normal_`.
    Transformers are initialised with `std=0.02`.

    ## When it is wrong
    Layers whose outputs are scaled down by a constant elsewhere in the model, in a training that is
    bad for another reason.

    ## How to confirm
    - Print `layer.weight.std() * layer.weight[0].numel() ** 0.5` of each layer before training.
    - Train 200 steps with the default initialisation and compare the losses.
    """
    sizes = _Sizes(_initial_sizes(facts), size)
    if len(sizes.by_name) < min_layers:
        yield oversized_weights.not_examined(
            f"the initial weights of {len(sizes.by_name)} of the {min_layers} layers needed"
        )
        return
    if sizes.median <= size:
        yield oversized_weights.clear(str(sizes))
        return
    start = _bad_start(facts, first_loss, large_logits)
    damage = _damage(facts, sizes, start, max_loss, little)
    if not isinstance(damage, Damage):
        yield damage
        return
    step = int(facts.run[WEIGHT_NORM][sizes.largest].steps[0])
    yield oversized_weights.finding(
        f"{sizes}; {damage.says}",
        confidence=damage.confidence,
        severity=damage.severity,
        onset=step,
        evidence=(
            Evidence(
                WEIGHT_NORM,
                (step, step),
                f"{sizes.by_name[sizes.largest]:.2g} / sqrt(fan-in) RMS; {sizes.above} of"
                f" {len(sizes.by_name)} matrices are above {size:g}",
                sizes.largest,
            ),
            *damage.evidence,
        ),
        fix="initialise with a standard deviation of about 1 / sqrt(fan-in):"
        " `nn.init.xavier_uniform_(layer.weight)`, or `std=0.02` in a transformer",
    )


def _initial_sizes(facts: Facts) -> dict[str, float]:
    """Return the initial sizes; without weights that the first update has mostly written."""
    fans = fan_ins(facts)
    sizes = {}
    for layer in facts.layers:
        if fans.get(layer.name, 0) < _LEAST_FAN_IN or layer.shape[0] == 1:
            continue
        value, ratio = initial_size(facts, layer), _first_update(facts, layer.name)
        if value is not None and np.isfinite(value) and ratio < 1:
            sizes[layer.name] = value
    return sizes


def _first_update(facts: Facts, name: str) -> float:
    """Return the first relative update; infinite for what was zero, 0 if none was read."""
    series = facts.run[UPDATE_RATIO].get(name) if UPDATE_RATIO in facts.run else None
    return float(series.values[0]) if series is not None and len(series) else 0.0


def _damage(
    facts: Facts, sizes: _Sizes, start: Damage | None, max_loss: float, little: float
) -> Damage | Verdict:
    """Return what the weights cost: by the outcome, else by a simple model and by the start.

    A loss that starts far off and does not end below the best constant prediction makes it likely.
    """
    verdict = damage_of(oversized_weights, facts, str(sizes), max_loss=max_loss)
    if isinstance(verdict, Damage) and verdict.confidence > Confidence.HINT:
        return verdict
    if (beaten := _beaten(facts)) is not None:
        return beaten
    outcome, end = facts.outcome, _end(facts)
    if isinstance(verdict, Damage):
        if start is None or end is None or end <= max_loss:
            return verdict
        return replace(verdict, confidence=Confidence.LIKELY)
    if outcome is not None and outcome.state is OutcomeState.OVERFITS:
        return Damage(outcome.says, Confidence.HINT, (outcome.evidence,))
    if start is None or end is None or (end <= little and not _starts_large(facts)):
        return verdict
    return start


def _end(facts: Facts) -> float | None:
    """Return the last fifth of the loss over the best constant prediction, or None."""
    curve, baseline = facts.signed_curve, facts.baseline
    if isinstance(curve, str) or isinstance(baseline, str) or not len(curve):
        return None
    return midmean(curve.part(0.8)) / (baseline.level * baseline.scale)


def _starts_large(facts: Facts) -> bool:
    """Whether the first loss is a symptom by itself."""
    curve, baseline = facts.signed_curve, facts.baseline
    if isinstance(curve, str) or isinstance(baseline, str) or baseline.signal is not TARGET_ENTROPY:
        return False
    first = float(curve.values[0]) / baseline.scale
    return first > _TIMES * baseline.level and first > baseline.level + _NATS


def _beaten(facts: Facts) -> Damage | None:
    compared = facts.comparison
    if (
        compared is None
        or compared.rows < _ROWS
        or compared.gain < _GAIN
        or compared.share >= _SHARE
        or compared.log_chance > _LOG_CHANCE
    ):
        return None
    scores = compared.scores
    says = (
        f"a simple model ({compared.name}) scores {number(scores.simple)} on held-out rows, the"
        f" network {number(scores.network)}"
    )
    evidence = Evidence(BASELINE_SCORE, (0, 0), says, compared.name)
    return Damage(says, Confidence.LIKELY, (evidence,))


def _bad_start(facts: Facts, first_loss: float, large_logits: float) -> Damage | None:
    """Return a hint if the loss starts far off, or attention saturated."""
    curve, baseline = facts.signed_curve, facts.baseline
    if not isinstance(curve, str) and not isinstance(baseline, str) and len(curve):
        constant, first = baseline.level * baseline.scale, float(curve.values[0])
        if first > first_loss * constant:
            says = (
                f"the first loss is {first:.3g}, {first / constant:.2g} times the best constant"
                f" prediction ({constant:.3g}), and the last {float(curve.values[-1]):.3g}"
            )
            return Damage(says, Confidence.HINT, (Evidence(LOSS, curve.span, says, curve.owner),))
    if ATTENTION_LOGIT_ABSMAX not in facts.run:
        return None
    for owner, logits in facts.run[ATTENTION_LOGIT_ABSMAX].items():
        if len(logits) and logits.values[0] > large_logits:
            says = f"attention logits are up to {logits.values[0]:.3g} at step {logits.steps[0]}"
            span = int(logits.steps[0]), int(logits.steps[-1])
            evidence = Evidence(ATTENTION_LOGIT_ABSMAX, span, says, owner)
            return Damage(says, Confidence.HINT, (evidence,))
    return None
