"""The source indexes the wrong step, layer, column or node."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "first step": Mistake(
        "`{code}` reads the output of `{subject}` at the first time step, which has seen only one"
        " element of the sequence",
        "read the last step: `out[:, -1]`",
    ),
    "first layer": Mistake(
        "`{code}` reads the final state of the first layer of `{subject}`, which has several"
        " layers",
        "read the state of the last layer: `h[-1]`",
    ),
    "position of batch": Mistake(
        "`{code}` slices `{subject}` by the number of samples although the layers have"
        " `batch_first=True`: all positions of a sample get the same encoding",
        "slice it by the sequence length: `self.{subject}[: x.size(1)]`",
    ),
    "same column": Mistake(
        "`{code}` passes `{subject}` to every embedding of a list: the other columns are never"
        " read",
        "pass each embedding its own column: `[e(x[:, i]) for i, e in enumerate(tables)]`",
    ),
    "mask as index": Mistake(
        "`{code}` uses the mask `{subject}` as integer indices: it selects only rows 0 and 1",
        "index by the boolean mask: `x[{subject}]`",
    ),
    "to itself": Mistake(
        "`{code}` reads from and writes to the same nodes, `{subject}`: each node receives its own"
        " features and nothing from its neighbours",
        "read from the other end of the edges: `out.index_add(0, dst, h[src])`",
    ),
    "range of batches": Mistake(
        "`{code}` ends at the number of batches and advances by {subject} samples: only the"
        " first samples are used",
        "end at the number of samples: `range(0, len(data), {subject})`",
    ),
    "cut too early": Mistake(
        "`{code}` splits before the last row of each group: `{subject}` is the last row of a"
        " group, not the first of the next",
        "add 1: `np.flatnonzero(np.diff(ids)) + 1`",
    ),
}


@rule(severity=Severity.WARNING, level=Level.ARCHITECTURE, needs=(LOSS,), preview=True)
def misplaced_indices(facts: Facts) -> Iterator[Verdict]:
    """The source indexes the wrong step, layer, column or node.

    ## What it does
    Reads the source of the script and of the modules next to it. It reports the first time step of
    a recurrent layer used as its summary, the state of the first of several layers, and positions
    sliced by the number of samples. It also reports one column used for a list of embeddings, masks
    used as integer indices, and graph nodes that aggregate their own features.

    ## Why it matters
    There is no error. The model sees only a part of its inputs.

    ## Example
    ```python
    out, _ = self.gru(x); return self.head(out[:, 0])   # bad
    out, _ = self.gru(x); return self.head(out[:, -1])  # good
    ```

    ## What to do
    Index the last time step and the last layer, all positions, each column by its own number, and
    the source node of each message.

    ## When it is wrong
    The sequence is reversed, or the first layer or column is intended.

    ## How to confirm
    - Change the inputs that should matter, and check that the output changes.
    """
    yield from concluded(misplaced_indices, facts, _MISTAKES)
