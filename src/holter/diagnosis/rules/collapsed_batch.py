"""All samples of a batch have the same inputs."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.stream import Stream
from holter.diagnosis.rule import exception, rule
from holter.diagnosis.wording import portion
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import STREAM_COLLAPSED


@exception
def coded_inputs(stream: Stream, measured: str) -> str | None:
    """Inputs with few distinct values, such as one category, are often equal."""
    return f"{measured}; the inputs are codes" if stream.is_coded else None


@rule(
    severity=Severity.ERROR,
    level=Level.DATA,
    needs=(STREAM_COLLAPSED,),
    exceptions=(coded_inputs,),
    preview=True,
)
def collapsed_batch(
    facts: Facts,
    *,
    share: Annotated[float, "share of the batches that is reported"] = 0.5,
) -> Iterator[Verdict]:
    """All samples of a batch have the same inputs.

    ## What it does
    Compares the samples within each batch of a training loader, bit by bit, and reports if all of
    them are equal in most batches.

    ## Why it matters
    A batch of equal samples carries the information of one sample. If their labels differ, all but
    one label belong to other inputs, and nothing can be learned.

    ## Example
    ```python
    collate_fn=lambda batch: (batch[0][0].expand(len(batch), -1), labels(batch))        # bad
    collate_fn=lambda batch: (torch.stack([x for x, _ in batch]), labels(batch))        # good
    ```

    ## What to do
    Check `collate_fn` and the buffers that `__getitem__` returns: samples that share one buffer all
    show what was written to it last. Return a copy.

    ## When it is wrong
    A batch that repeats one sample on purpose, without augmentation.

    ## How to confirm
    - Print `(x == x[:1]).all()` for a batch `x` of the loader.
    """
    stream = next((each for each in facts.streams if np.isfinite(each.collapsed).any()), None)
    if stream is None:
        yield collapsed_batch.not_examined("no batch of at least four samples was read")
        return
    known = stream.collapsed[np.isfinite(stream.collapsed)]
    part = float(known.mean())
    measured = f"all samples have the same inputs in {portion(part)} of the batches"
    if part < share:
        yield collapsed_batch.clear(measured)
        return
    excuse = collapsed_batch.excused(stream, measured)
    if excuse is not None:
        yield excuse
        return
    span = (int(stream.steps[0]), int(stream.steps[-1]))
    yield collapsed_batch.finding(
        measured,
        confidence=Confidence.LIKELY,
        onset=0,
        evidence=(Evidence(STREAM_COLLAPSED, span, measured, stream.loader),),
        fix="stack all samples in `collate_fn`, and return a copy of shared buffers from"
        " `__getitem__`",
    )
