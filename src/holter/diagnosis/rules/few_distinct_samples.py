"""Training sees far fewer distinct samples than the data set has."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.stream import Stream, failed
from holter.diagnosis.rule import exception, rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import STREAM_DISTINCT, STREAM_SAMPLES


@exception
def coded_inputs(stream: Stream, measured: str) -> str | None:
    """Samples with few distinct values, such as codes, repeat by chance."""
    return f"{measured}; the inputs are codes" if stream.is_coded else None


@rule(
    severity=Severity.WARNING,
    level=Level.DATA,
    needs=(STREAM_SAMPLES, STREAM_DISTINCT),
    exceptions=(coded_inputs,),
    preview=True,
)
def few_distinct_samples(
    facts: Facts,
    *,
    min_read: Annotated[int, "samples of a pass that must be read"] = 100,
    share: Annotated[float, "share of distinct samples in a pass that is reported"] = 0.1,
) -> Iterator[Verdict]:
    """Training sees far fewer distinct samples than the data set has.

    ## What it does
    Counts the distinct samples in each pass over a training loader, by hashes of their contents,
    and compares them with the length of the pass and of the data set. It reports a far smaller
    number if the run failed.

    ## Why it matters
    The model memorises a few samples and never sees the rest of the data.

    ## Example
    ```python
    def __getitem__(self, i): return self.x[i % 10], self.y[i % 10]   # bad
    def __getitem__(self, i): return self.x[i], self.y[i]             # good
    ```

    ## What to do
    Check how `__getitem__` uses its index, what a cache returns, and which indices the sampler
    draws. A `Subset` of repeated indices, a file that is always read from its start and a list of
    references to one object have the same effect.

    ## When it is wrong
    A small data set that is repeated on purpose, and whose model does not generalise to the
    validation data.

    ## How to confirm
    - Count the distinct samples: `len({tuple(x.flatten().tolist()) for x, *_ in dataset})`.
    """
    stream = next((each for each in facts.streams if each.claimed is not None), None)
    if stream is None:
        yield few_distinct_samples.not_examined("no data set of known length is trained on")
        return
    assert stream.claimed is not None
    best = int(np.argmax(np.nan_to_num(stream.read)))
    read, distinct = stream.read[best], stream.distinct[best]
    if not min(read, stream.claimed) >= min_read:
        known = np.nan_to_num(min(read, stream.claimed))
        yield few_distinct_samples.not_examined(f"{known:.0f} of the {min_read} samples needed")
        return
    possible = min(read, stream.claimed)
    measured = (
        f"{distinct:.0f} distinct samples among {read:.0f} in a pass; the data set reports a"
        f" length of {stream.claimed}"
    )
    if distinct >= share * possible:
        yield few_distinct_samples.clear(measured)
        return
    excuse = few_distinct_samples.excused(stream, measured)
    if excuse is not None:
        yield excuse
        return
    failure = failed(facts)
    if failure is None:
        yield few_distinct_samples.harmless(f"{measured}, but {facts.run_outcome.says}")
        return
    span = (int(stream.steps[0]), int(stream.steps[-1]))
    says = f"{percent(distinct / possible)} of the samples of a pass are distinct"
    yield few_distinct_samples.finding(
        measured,
        confidence=Confidence.LIKELY,
        onset=0,
        evidence=(Evidence(STREAM_DISTINCT, span, says, stream.loader),),
        fix="use the index in `__getitem__`, and let the sampler draw from the whole data set",
    )
