"""A weighted sampler has fewer weights than the data set has samples."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import STREAM_SAMPLES


@rule(severity=Severity.ERROR, level=Level.DATA, needs=(STREAM_SAMPLES,))
def misused_sampler_weights(
    facts: Facts,
    *,
    share: Annotated[float, "share of the samples with a weight that is reported"] = 0.5,
) -> Iterator[Verdict]:
    """A weighted sampler has fewer weights than the data set has samples.

    ## What it does
    Compares the number of weights of a `WeightedRandomSampler` with the number of samples in the
    data set of its loader.

    ## Why it matters
    The sampler draws indices below the number of its weights. With one weight per class, it draws
    only the first few samples, and the rest of the data is never seen.

    ## Example
    ```python
    WeightedRandomSampler(class_weights, len(dataset))           # bad
    WeightedRandomSampler(class_weights[labels], len(dataset))   # good
    ```

    ## What to do
    Pass one weight per sample: `class_weights[labels]`, where `labels` are the classes of all
    samples.

    ## When it is wrong
    The weights deliberately select the beginning of the data set.

    ## How to confirm
    - Compare `len(sampler.weights)` with `len(dataset)`.
    """
    stream = next(
        (
            each
            for each in facts.streams
            if each.setup is not None and each.setup.drawable is not None and each.claimed
        ),
        None,
    )
    if stream is None or stream.setup is None or stream.setup.drawable is None:
        yield misused_sampler_weights.clear("no weighted sampler is used for training")
        return
    weights, samples = stream.setup.drawable, stream.claimed or 0
    measured = f"the sampler has {weights} weights, and the data set has {samples} samples"
    if weights >= share * samples:
        yield misused_sampler_weights.clear(measured)
        return
    span = (int(stream.steps[0]), int(stream.steps[-1]))
    yield misused_sampler_weights.finding(
        f"{measured}: only the first {weights} are ever drawn",
        confidence=Confidence.CERTAIN,
        onset=0,
        evidence=(
            Evidence(
                STREAM_SAMPLES,
                span,
                f"drawn from {percent(weights / samples)} of the data set",
                stream.loader,
            ),
        ),
        fix="pass one weight per sample: `WeightedRandomSampler(class_weights[labels],"
        " len(labels))`",
    )
