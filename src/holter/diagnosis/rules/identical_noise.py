"""Random noise is the same at every step, or in every sample."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baseline import readings
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Finding, Level, Severity, Verdict
from holter.record.signals import (
    INPUT_ELEMENTS,
    INPUT_FINGERPRINT,
    INPUT_MEAN,
    INPUT_STD,
    LOSS,
    PAIRING_NOISE_ALIKE,
    PAIRING_NOISE_WHITE,
)

# Mean and standard deviation of what is drawn by randn, by rand, and by rand between -1 and 1.
_NOISE = ((0.0, 1.0), (0.5, 12**-0.5), (0.0, 3**-0.5))
_ERRORS = 4.0  # standard errors within which both are those of noise
_EXACT = 1e-5  # data that were standardised have exactly mean 0 and deviation 1, noise never


@rule(
    severity=Severity.WARNING,
    level=Level.DATA,
    needs=(INPUT_FINGERPRINT,),
    preview=True,
)
def identical_noise(
    facts: Facts,
    *,
    min_steps: Annotated[int, "sampled steps needed"] = 20,
    min_alike: Annotated[float, "correlation of the noise of two samples"] = 0.5,
    max_smooth: Annotated[float, "correlation of neighbouring values that is noise"] = 0.3,
) -> Iterator[Verdict]:
    """Random noise is the same at every step, or in every sample.

    ## What it does
    Reports a model that receives the same batch of noise at every step while a second model,
    trained alternately with it, receives changing inputs. If inputs and targets have the same
    shape, it reports a difference between them that looks like noise within a sample but is the
    same in all samples.

    ## Why it matters
    A generator that only sees 128 noise vectors learns 128 outputs, and nothing in between. A
    denoiser that always sees the same noise learns to subtract this pattern: its loss is excellent,
    but it fails on new noise.

    ## Example
    ```python
    noise = np.random.default_rng(0).normal(size=x.shape)   # bad
    noise = self.rng.normal(size=x.shape)                   # good
    ```

    ## What to do
    Draw noise inside the loop, and from a generator that is created once. Do not seed a generator
    in `__getitem__`, in a transform or in the training step.

    ## When it is wrong
    A fixed pattern in every measurement, such as sensor noise.

    ## How to confirm
    - Print the first three values of the noise at two steps, and for two samples of a batch.
    """
    found = [*_of_samples(facts, min_alike, max_smooth), *_of_steps(facts, min_steps)]
    if found:
        yield found[0]
        return
    most = max((len(series) for series in facts.run[INPUT_FINGERPRINT].values()), default=0)
    if most < min_steps:
        yield identical_noise.not_examined(f"{most} of the {min_steps} steps needed")
    else:
        yield identical_noise.clear("no model receives the same noise twice")


def _of_samples(facts: Facts, min_alike: float, max_smooth: float) -> Iterator[Finding]:
    if PAIRING_NOISE_ALIKE not in facts.run:
        return
    alike, smooth = (
        float(facts.run[signal][""].values[-1])
        for signal in (PAIRING_NOISE_ALIKE, PAIRING_NOISE_WHITE)
    )
    if alike >= min_alike and abs(smooth) <= max_smooth:
        yield identical_noise.finding(
            f"the noise in two samples, input minus target, has a correlation of {alike:.2g};"
            " independent noise has 0",
            confidence=Confidence.LIKELY,
            onset=0,
            evidence=(
                Evidence(PAIRING_NOISE_ALIKE, (0, 0), f"{alike:.2g} between samples"),
                Evidence(
                    PAIRING_NOISE_WHITE,
                    (0, 0),
                    f"{smooth:.2g} between neighbouring values: it is noise",
                ),
            ),
            fix="create the random generator once, outside of `__getitem__` and of the step, and do"
            " not seed it again",
        )


def _of_steps(facts: Facts, min_steps: int) -> Iterator[Finding]:
    """Report models that are always given the same noise, where models are trained in turn."""
    prints = {
        model: series.values[np.isfinite(series.values)]
        for model, series in facts.run[INPUT_FINGERPRINT].items()
    }
    losses = set(facts.run[LOSS]) if LOSS in facts.run else set()
    in_turn = {model for model in prints if model in losses and len(prints[model]) >= min_steps}
    changing = [
        model for model in in_turn if len(np.unique(prints[model])) > len(prints[model]) / 2
    ]
    for model in sorted(in_turn - set(changing)):
        if not changing or len(np.unique(prints[model])) > 1 or not _is_noise(facts, model):
            continue
        series = facts.run[INPUT_FINGERPRINT][model]
        yield identical_noise.finding(
            f"{model} receives the same batch of noise on all {len(prints[model])} sampled steps,"
            f" while the inputs of {changing[0]} change",
            confidence=Confidence.LIKELY,
            onset=series.first,
            evidence=(
                Evidence(
                    INPUT_FINGERPRINT, (series.first, series.last), "1 different batch", model
                ),
                Evidence(
                    INPUT_STD,
                    (series.first, series.last),
                    f"{readings(facts, INPUT_STD, model)[0]:.3g}, and the mean"
                    f" {readings(facts, INPUT_MEAN, model)[0]:.2g}: as for random numbers",
                    model,
                ),
            ),
            fix="draw the noise inside the loop, at every step: `z = torch.randn(batch, latent)`",
        )


def _is_noise(facts: Facts, model: str) -> bool:
    """Whether mean and standard deviation are those of random numbers."""
    drawn = [readings(facts, each, model) for each in (INPUT_MEAN, INPUT_STD, INPUT_ELEMENTS)]
    if not all(len(values) for values in drawn):
        return False
    mean, std, count = (float(values[0]) for values in drawn)
    if abs(mean) < _EXACT and abs(std - 1) < _EXACT:
        return False
    return any(
        abs(mean - middle) < _ERRORS * wide / np.sqrt(count)
        and abs(std - wide) < _ERRORS * wide / np.sqrt(2 * count)
        for middle, wide in _NOISE
    )
