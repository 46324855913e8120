"""A variable keeps the autograd graphs of earlier steps."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.memory import Keeper, graph_keepers
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import GRAPH_KEPT, TIME_STEP


@rule(severity=Severity.WARNING, level=Level.PROCEDURE, needs=(TIME_STEP,), preview=True)
def kept_graphs(
    facts: Facts, *, min_results: Annotated[int, "results of earlier steps in one variable"] = 16
) -> Iterator[Verdict]:
    """A variable keeps the autograd graphs of earlier steps.

    ## What it does
    Looks at the variables of the functions that call `backward()`: sums that still hold the graphs
    of their terms, and lists or dicts of such tensors. A variable is reported if it grows by the
    same number of results at every step.

    ## Why it matters
    The graph of every step stays in memory. `backward()` frees its saved tensors, but not the nodes
    and the results; results without a backward pass keep everything. Memory grows until the
    variable is reset or memory runs out.

    ## Example
    ```python
    total += loss  # bad
    total += loss.detach()  # good
    ```

    ## What to do
    Call `.detach()` or `.item()` on values kept for logging. Compute validation losses under
    `torch.no_grad()`.

    ## When it is wrong
    If `backward()` is later called on the sum, its graphs are needed. Variables in frames that are
    not on the stack during `backward()` are not seen.

    ## How to confirm
    - Print `total.grad_fn` after the line: it is None for a detached tensor.
    """
    keepers = [keeper for keeper in graph_keepers(facts.run) if keeper.most >= min_results]
    if not keepers:
        yield kept_graphs.clear("no variable of the training loop keeps graphs of earlier steps")
    for keeper in keepers:
        where = f" ({keeper.where})" if keeper.where else ""
        what = "is a sum of" if keeper.is_sum else "holds"
        yield kept_graphs.finding(
            f"`{keeper.variable}`{where} {what} {keeper.most:,.0f} results of earlier steps with"
            f" their graphs, {keeper.per_step:.3g} more at every step",
            confidence=Confidence.CERTAIN,
            onset=keeper.first,
            evidence=(
                Evidence(
                    GRAPH_KEPT,
                    (keeper.first, keeper.last),
                    f"{keeper.most:,.0f} graphs" + (f": `{keeper.code}`" if keeper.code else ""),
                    keeper.variable,
                ),
            ),
            fix=_fix(keeper),
        )


def _fix(keeper: Keeper) -> str:
    example = (
        f"`{keeper.variable} += loss.detach()`"
        if keeper.is_sum
        else f"`{keeper.variable}.append(loss.detach())`"
    )
    line = f" in {keeper.where}" if keeper.where else ""
    return f"detach the stored tensors{line}: {example}, or `loss.item()`"
