"""Every worker process serves the same samples."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.data_sets import measured as of_data
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import DATASET_DUPLICATES, STREAM_DISTINCT, STREAM_SAMPLES


@rule(severity=Severity.WARNING, level=Level.DATA, needs=(STREAM_SAMPLES, STREAM_DISTINCT))
def duplicated_workers(
    facts: Facts,
    *,
    min_distinct: Annotated[int, "distinct samples of a pass needed"] = 32,
    tolerance: Annotated[float, "relative error of the count"] = 0.05,
    max_duplicates: Annotated[float, "share of duplicates in a data set read by itself"] = 0.1,
) -> Iterator[Verdict]:
    """Every worker process serves the same samples.

    ## What it does
    Counts the distinct samples in passes over a data set that several worker processes read. It
    reports if each sample occurs exactly as often as there are workers, unless a map-style data set
    itself holds it that often.

    ## Why it matters
    A data set is copied to every worker. Unless an iterable data set splits its samples between the
    workers, each epoch contains every sample once per worker. Randomly drawn samples are equal in
    all workers if the generator is copied with its state: there are far fewer distinct samples than
    it seems.

    ## Example
    ```python
    def __iter__(self): yield from self.rows                   # bad
    def __iter__(self): yield from self.rows[self.worker::4]   # good
    ```

    ## What to do
    In `__iter__`, yield only the samples of this worker: `torch.utils.data.get_worker_info()` gives
    `id` and `num_workers`. Or use a map-style data set, or one worker. Create generators in the
    worker, seeded with `torch.initial_seed()`.

    ## When it is wrong
    A stream that deliberately repeats every sample that often.

    ## How to confirm
    - Count the samples of an epoch with `num_workers=0` and with the workers of the training.
    """
    stream = next(
        (each for each in facts.streams if each.setup is not None and each.setup.workers > 1),
        None,
    )
    if stream is None or stream.setup is None:
        yield duplicated_workers.clear("no data set is read by several workers")
        return
    whole = stream.whole & (stream.read >= stream.samples)
    workers, known = stream.setup.workers, stream.distinct[whole]
    known = known[np.isfinite(known)]
    if not len(known) or known.max() < min_distinct:
        yield duplicated_workers.not_examined("no pass was read completely")
        return
    copies = float(np.median(stream.read[whole][: len(known)] / known))
    measured = f"a pass holds each sample {copies:.3g} times, with {workers} workers"
    if abs(copies - workers) > tolerance * workers:
        yield duplicated_workers.clear(measured)
        return
    if not stream.setup.iterable:
        alone = of_data(facts.run, DATASET_DUPLICATES, "train")  # read in one process
        once = stream.claimed is not None and stream.samples.max() <= stream.claimed
        if alone is None or alone > max_duplicates or not once:
            yield duplicated_workers.not_examined(
                f"{measured}; the data set or the sampler may hold each of them that often"
            )
            return
    yield duplicated_workers.finding(
        measured,
        confidence=Confidence.LIKELY,
        onset=int(stream.steps[0]),
        evidence=(
            Evidence(
                STREAM_DISTINCT,
                (int(stream.steps[0]), int(stream.steps[-1])),
                f"{known.max():.0f} distinct among {stream.samples[whole].max():.0f}",
                stream.loader,
            ),
        ),
        fix="divide the samples between the workers: `rows[info.id :: info.num_workers]` with"
        " `info = torch.utils.data.get_worker_info()`"
        if stream.setup.iterable
        else "draw from a generator that each worker seeds itself:"
        " `np.random.default_rng(torch.initial_seed())`, created in the worker",
    )
