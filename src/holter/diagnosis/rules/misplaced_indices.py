"""The source indexes another step, layer, column or node than the one that is meant."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "first step": Mistake(
        "`{code}` reads the output of `{subject}` at the first time step, which has seen one"
        " element of the sequence",
        "read the last step: `out[:, -1]`",
    ),
    "first layer": Mistake(
        "`{code}` reads the final state of the first layer of `{subject}`, which has several",
        "read the state of the last layer: `h[-1]`",
    ),
    "position of batch": Mistake(
        "`{code}` cuts `{subject}` by the number of samples, and the layers have"
        " `batch_first=True`: all positions of a sample get the same encoding",
        "cut it by the length of the sequence: `self.{subject}[: x.size(1)]`",
    ),
    "same column": Mistake(
        "`{code}` gives `{subject}` to each embedding of a list: the other columns are never read",
        "give each embedding its own column: `[e(x[:, i]) for i, e in enumerate(tables)]`",
    ),
    "mask as index": Mistake(
        "`{code}` indexes by `{subject}` as whole numbers: it takes rows 0 and 1 over and over",
        "index by the boolean mask: `x[{subject}]`",
    ),
    "to itself": Mistake(
        "`{code}` adds to `{subject}` what it reads at `{subject}`: each node receives its own"
        " features, and nothing from its neighbours",
        "read at the other end of the edges: `out.index_add(0, dst, h[src])`",
    ),
    "range of batches": Mistake(
        "`{code}` ends at the number of batches and advances by {subject} samples: only the"
        " first samples are used",
        "end at the number of samples: `range(0, len(data), {subject})`",
    ),
    "cut too early": Mistake(
        "`{code}` cuts before the last row of each group: `{subject}` is the last row of a"
        " group, not the first of the next one",
        "add 1: `np.flatnonzero(np.diff(ids)) + 1`",
    ),
}


@rule(severity=Severity.WARNING, level=Level.ARCHITECTURE, needs=(LOSS,), preview=True)
def misplaced_indices(facts: Facts) -> Iterator[Verdict]:
    """The source indexes another step, layer, column or node than the one that is meant.

    ## What it does
    Reads the source of the script and of modules beside it. It reports the first time step of a
    recurrent layer as its summary, the state of the first of several layers, and positions that
    are chosen by the number of samples. It also reports one column for a list of embeddings, masks
    used as whole numbers, and nodes that add up their own features.

    ## Why it matters
    Nothing fails. The model sees a part of its inputs, and learns what can be learned from that.

    ## Example
    ```python
    out, _ = self.gru(x); return self.head(out[:, 0])   # bad
    out, _ = self.gru(x); return self.head(out[:, -1])  # good
    ```

    ## What to do
    Index the last step and the last layer, all positions, each column by its own number, and the
    sender of a message.

    ## When it is wrong
    The sequence is passed in reverse order, or the first layer or column is wanted on purpose.

    ## How to confirm
    - Change the inputs that should matter, and check that the output changes.
    """
    yield from concluded(misplaced_indices, facts, _MISTAKES)
