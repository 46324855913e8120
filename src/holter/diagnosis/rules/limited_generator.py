"""The generator cannot reach the range of the data."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import INPUT_ABSMAX, LOSS

_BOUND = 1.0  # of a sigmoid and of a tanh
_ROUNDING = 1e-5


@rule(
    severity=Severity.WARNING,
    level=Level.ARCHITECTURE,
    needs=(INPUT_ABSMAX, LOSS),
    preview=True,
)
def limited_generator(
    facts: Facts,
    *,
    min_steps: Annotated[int, "sampled steps of each kind of input needed"] = 10,
    margin: Annotated[float, "largest distance of samples from the bound"] = 0.01,
    often: Annotated[float, "share of the samples at the bound"] = 0.5,
    beyond: Annotated[float, "factor by which the data exceed the bound"] = 1.2,
) -> Iterator[Verdict]:
    """The generator cannot reach the range of the data.

    ## What it does
    For alternately trained models, records the largest absolute value of the inputs of each. A
    discriminator receives data and generated samples: the rule reports generated samples that stay
    at 1, the bound of a tanh or sigmoid, in the second half of the training while the data exceed
    it.

    ## Why it matters
    The generator cannot produce most of the data. The discriminator distinguishes the two by
    magnitude alone, its loss goes to 0, and the generator saturates.

    ## Example
    ```python
    real = (images - mean) / std     # bad
    real = images / 127.5 - 1        # good
    ```

    ## What to do
    Scale the data into the range of the generator's last activation, -1 to 1 for a tanh and 0 to 1
    for a sigmoid, or remove that activation.

    ## When it is wrong
    Data with a few outliers beyond the bound that need not be generated.

    ## How to confirm
    - Print the minimum and maximum of a real and of a generated batch.
    """
    in_turn = [model for model in facts.run[INPUT_ABSMAX] if model in facts.run[LOSS]]
    if len(in_turn) < 2:
        yield limited_generator.not_examined(
            "no inputs of two alternately trained models were read"
        )
        return
    for model in in_turn:
        series = facts.run[INPUT_ABSMAX][model]
        late = series.values[len(series) // 2 :]
        late = late[np.isfinite(late)]
        bounded, others = late[late <= _BOUND + _ROUNDING], late[late > _BOUND + _ROUNDING]
        if min(len(bounded), len(others)) < min_steps:
            continue
        pressed = float(np.mean(bounded >= _BOUND - margin))
        if pressed < often or others.min() < beyond * _BOUND:
            continue
        span = (series.first, series.last)
        yield limited_generator.finding(
            f"{model} receives generated samples of at most {bounded.max():.3g}, alternating with"
            f" data of up to {np.median(others):.3g}",
            confidence=Confidence.LIKELY,
            onset=series.first,
            evidence=(
                Evidence(
                    INPUT_ABSMAX,
                    span,
                    f"{percent(pressed)} of the samples end within {margin:.2g} of {_BOUND:.0f};"
                    f" data reach at least {others.min():.3g}",
                    model,
                ),
            ),
            fix="scale the data into the range of the generator's last activation, such as"
            " `x / x.abs().max()` for a tanh, or remove that activation",
        )
        return
    yield limited_generator.clear("no model receives samples that end at the bound of a tanh")
