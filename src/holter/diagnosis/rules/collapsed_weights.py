"""Weight norms shrink towards zero."""

from collections.abc import Iterator
from math import inf
from typing import Annotated

from holter.diagnosis.causes import explained_by
from holter.diagnosis.damage import Damage, damage_of
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Evidence, Level, Severity, Verdict
from holter.record.signals import WEIGHT_DECAY, WEIGHT_NORM


@rule(
    severity=Severity.ERROR,
    level=Level.HYPERPARAMETER,
    needs=(WEIGHT_NORM,),
)
def collapsed_weights(
    facts: Facts,
    *,
    ratio: Annotated[float, "median weight norm at the end over the initial one"] = 0.1,
    strong: Annotated[float, "decay per step, as a share of a weight, that is strong"] = 0.01,
    strong_ratio: Annotated[float, "the same ratio under a strong decay"] = 0.5,
    violent: Annotated[float, "decay per step, as a share of a weight, that is extreme"] = 0.1,
    violent_ratio: Annotated[float, "the same ratio under an extreme decay"] = 0.9,
    min_fall: Annotated[float, "fall of the loss, as a share, that excuses a strong decay"] = 0.3,
) -> Iterator[Verdict]:
    """Weight norms shrink towards zero.

    ## What it does
    Compares the norm of each weight matrix at the end with its initial norm, and takes the median
    over the matrices. It reports a collapse if the training failed. With a strong weight decay
    (times the learning rate or, in Adam, relative to the gradient it is added to), a smaller
    shrinkage is enough.

    ## Why it matters
    Weight decay pulls every weight to zero at each step. If it is stronger than the gradient, the
    outputs become constant, and the loss ends at that of the best constant prediction.

    ## Example
    ```python
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=1.0)    # bad
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=1e-4)   # good
    ```

    ## What to do
    Lower the weight decay: common values are 0.01 to 0.1 for AdamW, and 1e-5 to 1e-3 for SGD and
    Adam, whose penalty is added to the gradient. A penalty in the loss has the same effect.

    ## When it is wrong
    Weights before a normalisation layer are scale-invariant and may shrink without damage; training
    may fail for another reason. Pruning shrinks by design.

    ## How to confirm
    - Repeat 100 steps with `weight_decay=0`: the norms should stay, and the loss fall.
    - Print `p.norm()` of a few layers every 100 steps.
    """
    growth, decay = facts.weight_growth, facts.weight_decay
    if growth is None:
        yield collapsed_weights.not_examined("too few weight norms were recorded")
        return
    rate = decay.rate if decay is not None else 0.0
    is_strong = decay is not None and (rate > strong or decay.prevails)
    limit = violent_ratio if rate > violent else strong_ratio if is_strong else ratio
    measured = f"the median weight norm is {growth.median:.2g} times its initial value"
    if growth.median > limit:
        yield collapsed_weights.clear(measured)
        return
    damage = damage_of(collapsed_weights, facts, measured, min_fall=min_fall if is_strong else -inf)
    if not isinstance(damage, Damage):
        yield damage
        return
    yield collapsed_weights.finding(
        f"weights collapsed: {measured}"
        + (f" ({decay.says})" if decay else "")
        + f"; {damage.says}",
        confidence=damage.confidence,
        severity=damage.severity,
        onset=growth.crossing(strong_ratio if growth.median < strong_ratio else violent_ratio),
        evidence=(
            Evidence(WEIGHT_NORM, growth.steps, growth.says(growth.smallest), growth.smallest),
            *((Evidence(WEIGHT_DECAY, growth.steps, decay.says),) if decay else ()),
            *damage.evidence,
        ),
        fix=f"set `weight_decay=0`, or at most {decay.value / 100:.1g}"
        if decay
        else "remove the penalty on weights in the loss, or the code that scales weights down",
        # an ordinary decay takes as much only if the learning rate is too high: that leads then
        explains=None
        if decay is not None and decay.ordinary
        else (*explained_by(collapsed_weights.name), "huge-updates"),
    )
