"""Workers or epochs repeat the same random augmentation."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.data_sets import measured, why_absent
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    REFETCH_INPUTS,
    REFETCH_OWN,
    WORKERS,
    WORKERS_ALIKE,
    WORKERS_DRAWS,
    WORKERS_EPOCHS_ALIKE,
    WORKERS_INIT,
    WORKERS_PERSISTENT,
)


@rule(severity=Severity.WARNING, level=Level.DATA, needs=(REFETCH_INPUTS, WORKERS))
def identical_augmentation(
    facts: Facts,
    *,
    max_chance: Annotated[float, "probability that random samples are equal by chance"] = 1e-3,
) -> Iterator[Verdict]:
    """Workers or epochs repeat the same random augmentation.

    ## What it does
    Preflight starts two workers of the loader, twice, and each fetches the same training samples.
    The rule reports samples that are bitwise equal in both workers or at both starts, although they
    differ when one process fetches them twice.

    ## Why it matters
    A generator that is created once is copied into every worker with its state: all workers then
    augment their samples in the same way. Workers are restarted in each epoch, so every epoch
    repeats the first. The augmentation is much less diverse than intended, without any error.

    ## Example
    ```python
    self.rng = numpy.random.default_rng(0)                        # bad
    rng = numpy.random.default_rng(torch.initial_seed() % 2**32)  # good
    ```

    ## What to do
    Draw from torch's global generator, or from `numpy.random` and `random`, which torch seeds in
    each worker; or create the generator in the worker, seeded with `torch.initial_seed()`. A
    `worker_init_fn` must not seed with a constant or with the worker id only.

    ## When it is wrong
    The same augmentation is intended in each epoch, for reproducible results.

    ## How to confirm
    - Print the random numbers of the first sample in each worker, with `get_worker_info().id`.
    """
    differ, workers = (
        measured(facts.run, REFETCH_INPUTS, "train"),
        measured(facts.run, WORKERS, "train"),
    )
    if differ is None or workers is None:
        yield identical_augmentation.not_examined("no training samples could be fetched twice")
    elif not differ:
        yield identical_augmentation.clear(
            "training samples are the same every time they are fetched"
        )
    elif not workers:
        yield identical_augmentation.clear("samples are read in the main process (num_workers=0)")
    elif measured(facts.run, REFETCH_OWN, "train") == 0 and not measured(
        facts.run, WORKERS_INIT, "train"
    ):
        yield identical_augmentation.clear(
            "random numbers come from torch, numpy or random, which torch seeds in each worker"
        )
    elif (draws := measured(facts.run, WORKERS_DRAWS, "train")) is None:
        why = why_absent(facts.run, WORKERS_DRAWS, "no workers were started")
        yield identical_augmentation.not_examined(why)
    elif (1 - differ) ** draws > max_chance:
        yield identical_augmentation.not_examined(
            f"only {percent(differ)} of the samples differ when fetched again"
        )
    else:
        yield _judge(facts, workers, differ, draws)


def _judge(facts: Facts, workers: float, differ: float, draws: float) -> Verdict:
    alike = measured(facts.run, WORKERS_ALIKE, "train") or 0.0
    again = measured(facts.run, WORKERS_EPOCHS_ALIKE, "train") or 0.0
    same = alike == 1 and workers > 1
    repeated = again == 1 and not measured(facts.run, WORKERS_PERSISTENT, "train")
    if not same and not repeated:
        return identical_augmentation.clear(
            f"of {draws:.0f} random samples {percent(alike)} are equal in two workers,"
            f" {percent(again)} in two epochs"
        )
    where = " and ".join(
        place
        for place, applies in (("in all workers", same), ("in every epoch", repeated))
        if applies
    )
    return identical_augmentation.finding(
        f"the random augmentation is identical {where}: {draws:.0f} of {draws:.0f} samples, while"
        f" {percent(differ)} differ when fetched again in one process",
        confidence=Confidence.CERTAIN,
        onset=0,
        evidence=(
            Evidence(WORKERS_ALIKE, (0, 0), f"{percent(alike)} are equal in two workers", "train"),
            Evidence(WORKERS_EPOCHS_ALIKE, (0, 0), f"{percent(again)} at two starts", "train"),
            Evidence(REFETCH_INPUTS, (0, 0), f"{percent(differ)} differ in one process", "train"),
        ),
        fix="draw random numbers from torch, or seed the generator with `torch.initial_seed()` in"
        " each worker",
    )
