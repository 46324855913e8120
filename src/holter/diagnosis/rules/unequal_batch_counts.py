"""Ranks have different numbers of batches in an epoch."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.ranks import Rank, Ranks, named
from holter.diagnosis.rule import exception, rule
from holter.record.events import LoaderSeen
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import DATA_BATCHES


@exception
def joined(ranks: Ranks, measured: str) -> str | None:
    """With `Join`, finished ranks keep taking part in the communication."""
    return f"{measured}; the script uses Join" if ranks.are_joined else None


@exception
def cut_short(ranks: Ranks, measured: str) -> str | None:
    """The loop ends every epoch with the shortest loader, so all ranks take equally many steps."""
    steps = {rank.run.steps for rank in ranks.members}
    if len(steps) > 1 or any(rank.run.meta.status != "finished" for rank in ranks.members):
        return None
    return f"{measured}; all ranks took {steps.pop()} steps and finished"


@rule(
    severity=Severity.ERROR,
    level=Level.DATA,
    needs=(DATA_BATCHES,),
    exceptions=(joined, cut_short),
)
def unequal_batch_counts(facts: Facts) -> Iterator[Verdict]:
    """Ranks have different numbers of batches in an epoch.

    ## What it does
    Compares the length of the training loader between ranks that train one model. It reports
    different lengths, unless the script uses `Join` or all ranks finish with the same number of
    steps.

    ## Why it matters
    Every backward pass waits for the gradients of all other ranks. A rank with more batches waits
    forever, or its extra batch is averaged with the next epoch of the others. The job hangs until
    the process group times out, after 10 to 30 minutes.

    ## Example
    ```python
    DataLoader(Subset(data, range(rank, n, world)), 32)                    # bad
    DataLoader(data, 32, sampler=DistributedSampler(data), drop_last=True)  # good
    ```

    ## What to do
    Use `DistributedSampler`, which gives all ranks the same number of samples, or end the epoch
    after the smallest number of batches. Otherwise wrap the loop in `with Join([ddp_model]):`.

    ## When it is wrong
    The script ends every epoch with the shortest loader, and the job was stopped early.

    ## How to confirm
    - Print `len(loader)` on every rank: they should be equal.
    """
    ranks = facts.ranks
    if isinstance(ranks, str):
        yield unequal_batch_counts.not_examined(ranks)
        return
    if not ranks.is_wrapped:
        yield unequal_batch_counts.not_examined("no torch wrapper trains one model on all ranks")
        return
    counts = {rank.number: _batches(rank) for rank in ranks.members}
    known = {number: count for number, count in counts.items() if count is not None}
    if len(known) < 2:
        yield unequal_batch_counts.not_examined("the number of batches is not known beforehand")
        return
    fewest, most = min(known.values()), max(known.values())
    if fewest == most:
        yield unequal_batch_counts.clear(f"{most} batches on each of {len(known)} ranks")
        return
    fewer = [number for number, count in known.items() if count < most]
    measured = f"{named(fewer)}: {fewest} batches in an epoch, other ranks: {most}"
    excuse = unequal_batch_counts.excused(ranks, measured)
    if excuse is not None:
        yield excuse
        return
    yield unequal_batch_counts.finding(
        measured,
        confidence=Confidence.CERTAIN,
        onset=0,
        evidence=(
            Evidence(
                DATA_BATCHES,
                (0, max(facts.run.steps - 1, 0)),
                f"{fewest} to {most} batches in a pass",
                next(iter(facts.run[DATA_BATCHES])),
            ),
        ),
        fix="use `DistributedSampler` with `drop_last=True`, or wrap the loop in `with"
        " Join([ddp_model]):`",
    )


def _batches(rank: Rank) -> int | None:
    """Return the length of the loader that most steps of a rank read from."""
    if DATA_BATCHES not in rank.run:
        return None
    reads = dict(rank.run[DATA_BATCHES].items())
    loader = max(reads, key=lambda name: len(reads[name]))
    seen = [event.what for event in rank.run.events_of(LoaderSeen) if event.what.loader == loader]
    return seen[0].batches if seen else None
