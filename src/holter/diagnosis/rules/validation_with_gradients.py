"""Validation builds autograd graphs that no backward pass uses."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.prevalence import prevails
from holter.diagnosis.facts.validation import no_validation
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import of
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import MODE_TRAINING, VAL_GRAPH_FRACTION, VAL_LOSS


@rule(severity=Severity.INFO, level=Level.SYSTEM, needs=(VAL_GRAPH_FRACTION, VAL_LOSS))
def validation_with_gradients(
    facts: Facts,
    *,
    min_passes: Annotated[int, "validation passes needed"] = 2,
    min_share: Annotated[float, "share of the losses and of the passes with a graph"] = 0.9,
) -> Iterator[Verdict]:
    """Validation builds autograd graphs that no backward pass uses.

    ## What it does
    Measures how many losses of a validation pass had an autograd graph although no `backward()`
    followed. Runs that train in eval mode, and losses computed after nearly every step, are not
    judged: those losses cannot be distinguished from training losses.

    ## Why it matters
    The result is correct, but every activation is stored for a backward pass: validation takes
    several times the memory and more time. A sum of such losses holds all graphs of the pass at
    once.

    ## Example
    ```python
    model.eval(); total += criterion(model(x), y)  # bad
    with torch.no_grad(): total += criterion(model(x), y)  # good
    ```

    ## What to do
    Put `with torch.no_grad():` or `with torch.inference_mode():` around the validation loop.
    `model.eval()` only changes dropout and batch norm.

    ## When it is wrong
    Validation needs gradients of its inputs through `torch.autograd.grad`: attacks, saliency,
    forces as derivatives of an energy.

    ## How to confirm
    - Print `loss.requires_grad` in the validation loop: it should be `False`.
    - Compare `torch.cuda.max_memory_allocated()` over a validation with and without `no_grad`.
    """
    for owner, share in facts.run[VAL_GRAPH_FRACTION].items():
        if len(share) < min_passes:
            yield validation_with_gradients.not_examined(
                f"{len(share)} of the {min_passes} validation passes needed{of(owner)}"
            )
            continue
        graphs = share.values > min_share
        count = int(graphs.sum())
        if not prevails(graphs, min_steps=min_passes, min_share=min_share, recent=len(share)):
            yield validation_with_gradients.clear(
                f"no graphs{of(owner)} on {len(share) - count} of {len(share)} validation passes"
            )
            continue
        reason = no_validation(facts, share.steps)
        if _trains_in_eval_mode(facts, min_share):
            reason = "the model trains in eval mode: its losses look like validation losses"
        if reason is not None:
            yield validation_with_gradients.not_examined(reason)
            continue
        first, last = int(share.steps[graphs.argmax()]), share.last
        yield validation_with_gradients.finding(
            f"validation{of(owner)} builds autograd graphs that no backward() uses, on {count} of"
            f" {len(share)} passes since step {first}",
            confidence=Confidence.CERTAIN,
            onset=first,
            evidence=(
                Evidence(
                    VAL_GRAPH_FRACTION,
                    (share.first, last),
                    f"median {np.median(share.values):.2f} over {len(share)} passes; 0 under"
                    " no_grad",
                    owner,
                ),
            ),
            fix="put `with torch.no_grad():` around the validation loop",
        )


def _trains_in_eval_mode(facts: Facts, min_share: float) -> bool:
    modes = facts.run[MODE_TRAINING].values() if MODE_TRAINING in facts.run else ()
    return any(len(mode) and mode.values.mean() < min_share for mode in modes)
