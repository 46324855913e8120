"""Validation builds graphs for a backward that never comes."""

from collections.abc import Iterator

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.validation import no_validation
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import of
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import MODE_TRAINING, VAL_GRAPH_FRACTION, VAL_LOSS

_MOST = 0.9  # share of the passes that have to agree


@rule(
    severity=Severity.INFO,
    level=Level.SYSTEM,
    needs=(VAL_GRAPH_FRACTION, VAL_LOSS),
)
def validation_with_gradients(facts: Facts, *, min_passes: int = 2) -> Iterator[Verdict]:
    """Validation builds graphs for a backward that never comes.

    ## What it does
    Looks at how many of the losses of a validation pass had a graph behind them although no
    `backward()` followed. It speaks where that is nearly all, on 9 of 10 passes and on `min_passes`
    at least. Runs that train in eval mode, and losses that are computed after nearly every step,
    are left out: there one cannot tell them from losses that are trained on.

    ## Why it matters
    The result is right, but every activation is kept for a backward: validation takes several times
    the memory and more time, and it is here that a training runs out of memory. A sum of such
    losses holds all graphs of the pass at once.

    ## What to do
    Put `with torch.no_grad():` or `with torch.inference_mode():` around the validation loop, or
    decorate its function. `model.eval()` does not do it: it is about dropout and batch norm only.

    ## When it is wrong
    Validation that needs gradients of its inputs through `torch.autograd.grad`: attacks, saliency,
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
        graphs = share.values > _MOST
        count = int(graphs.sum())
        if count < max(_MOST * len(share), min_passes):
            yield validation_with_gradients.clear(
                f"no graphs{of(owner)} on {len(share) - count} of {len(share)} validation passes"
            )
            continue
        if _trains_in_eval_mode(facts):
            yield validation_with_gradients.not_examined(
                "the model trains in eval mode: its losses cannot be told from those of validation"
            )
            continue
        if reason := no_validation(facts, share.steps):
            yield validation_with_gradients.not_examined(reason)
            continue
        first, last = int(share.steps[graphs.argmax()]), share.last
        yield validation_with_gradients.finding(
            f"validation{of(owner)} keeps graphs for a backward that never comes, on {count} of"
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


def _trains_in_eval_mode(facts: Facts) -> bool:
    modes = facts.run[MODE_TRAINING].values() if MODE_TRAINING in facts.run else ()
    return any(len(each) and each.values.mean() < _MOST for each in modes)
