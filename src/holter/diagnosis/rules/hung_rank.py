"""The ranks of a distributed training hang."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.ranks import named
from holter.diagnosis.facts.stalls import stall
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS


@rule(severity=Severity.ERROR, level=Level.SYSTEM, needs=(), preview=True)
def hung_rank(facts: Facts) -> Iterator[Verdict]:
    """The ranks of a distributed training hang.

    ## What it does
    Reads the heartbeats of all ranks and the stack traces that they write after a long pause. It
    names the rank that the others wait for, and its line in the script. Dumps of PyTorch's flight
    recorder are read if the run has any.

    ## Why it matters
    One rank that does not join a collective blocks all others, without an error, until the process
    group times out.

    ## Example
    ```python
    if rank == 0: torch.distributed.barrier()     # bad
    torch.distributed.barrier()                   # good
    ```

    ## What to do
    Look at the named line, and at `stacks.txt` in the folder of that rank. All ranks must call the
    same collectives in the same order.

    ## When it is wrong
    A long pause of the whole training in a run that is still active, for example while it writes a
    large checkpoint.

    ## How to confirm
    - Check again a minute later: a training that hangs is still at the same step.
    - Set `TORCH_FR_BUFFER_SIZE=2000` and `TORCH_NCCL_DUMP_ON_TIMEOUT=1`, and run it again.
    """
    ranks = facts.ranks
    if isinstance(ranks, str):
        yield hung_rank.not_examined(ranks)
        return
    found = stall(ranks)
    if found is None:
        yield hung_rank.clear("no rank was silent for long at the end")
        return
    yield hung_rank.finding(
        f"no progress for {found.seconds:.0f} s: {found.says}",
        confidence=Confidence.LIKELY if found.held_by else Confidence.HINT,
        onset=found.step,
        evidence=(
            Evidence(
                LOSS, (0, found.step), f"step {found.step} is the last that a silent rank reached"
            ),
        ),
        fix=f"look at the line of {named(found.held_by or found.waiting)}, and at stacks.txt in its"
        " folder; all ranks must call the same collectives in the same order",
    )
