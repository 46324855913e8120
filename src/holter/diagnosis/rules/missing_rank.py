"""A rank is gone while the others wait for it."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.ranks import named
from holter.diagnosis.facts.stalls import absence
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS


@rule(severity=Severity.ERROR, level=Level.SYSTEM, needs=())
def missing_rank(facts: Facts) -> Iterator[Verdict]:
    """A rank is gone while the others wait for it.

    ## What it does
    Reads how each process of a distributed training ended. It reports a rank that raised its own
    exception, was killed, finished early or never started, while others waited for it.

    ## Why it matters
    The other ranks fail with an error about a closed connection, or hang until the timeout of the
    process group. Their messages do not name the rank that caused it.

    ## Example
    ```python
    loss = model(batch); loss.backward()                   # bad
    @record  # of torch.distributed.elastic, on main()     # good
    ```

    ## What to do
    Look at the end of the named rank: its exception, or the system log if it was killed without
    one, for example out of memory (`dmesg`, `sacct`).

    ## When it is wrong
    The run folder is a copy that lacks some ranks.

    ## How to confirm
    - Read the output of the named rank: `torchrun --redirects 3 --log-dir logs` keeps it.
    """
    ranks = facts.ranks
    if isinstance(ranks, str):
        yield missing_rank.not_examined(ranks)
        return
    gone = absence(ranks)
    if gone is None:
        yield missing_rank.clear(f"{len(ranks.members)} ranks began and ended together")
        return
    yield missing_rank.finding(
        gone.says,
        confidence=Confidence.CERTAIN if gone.is_certain else Confidence.LIKELY,
        onset=gone.step,
        evidence=(Evidence(LOSS, (0, gone.step), f"{named(gone.ranks)} took {gone.step} steps"),),
        fix=f"look at the end of {named(gone.ranks)}: its output, the system log, and `holter"
        f" check {facts.run.path} --rank {gone.ranks[0]}`",
    )
