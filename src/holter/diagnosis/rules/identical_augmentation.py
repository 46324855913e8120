"""Workers, or epochs, repeat the same random numbers."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.data_sets import measured, why_absent
from holter.diagnosis.rule import rule
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
def identical_augmentation(facts: Facts, *, chance: float = 1e-3) -> Iterator[Verdict]:
    """Workers, or epochs, repeat the same random numbers.

    ## What it does
    Where training samples are random, and not by the generators that torch seeds for each worker,
    preflight starts two workers of the loader, twice, and lets both fetch the same samples. The
    rule speaks where all of them are the same, bit by bit, in both workers or at both starts,
    though samples differ when fetched again, so often that chance would do it with a probability
    under `chance`.

    ## Why it matters
    A generator that is made once is copied into every worker, with its state: all workers then
    change their samples in the same way. Workers are copied anew in each epoch, so that every epoch
    repeats the first. There is much less variety than there seems to be, and nothing tells.

    ## What to do
    Draw from torch's own generator, or from `numpy.random` and `random`, which torch seeds in each
    worker; or make the generator in the worker, seeded with `torch.initial_seed()`. A
    `worker_init_fn` must not seed with a constant or with the number of the worker alone.

    ## When it is wrong
    The same changes are wanted in each epoch, for results that can be repeated.

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
        yield identical_augmentation.clear("training samples are the same every time")
    elif not workers:
        yield identical_augmentation.clear("samples are read in the training's own process")
    elif measured(facts.run, REFETCH_OWN, "train") == 0 and not measured(
        facts.run, WORKERS_INIT, "train"
    ):
        yield identical_augmentation.clear(
            "random numbers come from torch, numpy or random, which torch seeds in each worker"
        )
    elif (draws := measured(facts.run, WORKERS_DRAWS, "train")) is None:
        why = why_absent(facts.run, WORKERS_DRAWS, "no workers were started to compare them")
        yield identical_augmentation.not_examined(why)
    elif (1 - differ) ** draws > chance:
        yield identical_augmentation.not_examined(
            f"only {differ:.0%} of the samples differ when fetched again"
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
            f"of {draws:.0f} random samples {alike:.0%} are the same in two workers, {again:.0%} in"
            " two epochs"
        )
    where = " and ".join(
        word for word, true in (("in all workers", same), ("in every epoch", repeated)) if true
    )
    return identical_augmentation.finding(
        f"random changes of training samples are the same {where}: {draws:.0f} of {draws:.0f}"
        f" samples, while {differ:.0%} differ when fetched again",
        confidence=Confidence.CERTAIN,
        onset=0,
        evidence=(
            Evidence(WORKERS_ALIKE, (0, 0), f"{alike:.0%} are the same in two workers", "train"),
            Evidence(WORKERS_EPOCHS_ALIKE, (0, 0), f"{again:.0%} at two starts", "train"),
            Evidence(REFETCH_INPUTS, (0, 0), f"{differ:.0%} differ in one process", "train"),
        ),
        fix="draw random numbers from torch, or seed the generator with torch.initial_seed() in"
        " each worker",
    )
