"""Every weight matrix is frozen; only biases and gains are trained, and nothing is learned."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.membership import covering
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import some
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import PARAMETER_OPTIMIZER, PARAMETER_TRAINABLE


@rule(
    severity=Severity.ERROR,
    level=Level.PROCEDURE,
    needs=(PARAMETER_TRAINABLE, PARAMETER_OPTIMIZER),
    preview=True,
)
def frozen_weights(
    facts: Facts, *, min_steps: Annotated[int, "steps needed"] = 20
) -> Iterator[Verdict]:
    """Every weight matrix is frozen; only biases and gains are trained, and nothing is learned.

    ## What it does
    Looks at the parameters with two dimensions or more. It reports if all of them are frozen while
    others are trained, and the loss ended flat or at the level of a constant prediction.

    ## Why it matters
    Biases and gains can only shift and scale random features, not learn new ones. The loss ends
    near that of the best constant prediction, without an error.

    ## Example
    ```python
    for n, p in net.named_parameters(): p.requires_grad = "weight" not in n   # bad
    for n, p in net.named_parameters(): p.requires_grad = "emb" not in n      # good
    ```

    ## What to do
    Print the trainable parameters after the code that freezes, and narrow its condition.

    ## When it is wrong
    The weights are pretrained, biases alone are trained on purpose, and the run fails for another
    reason.

    ## How to confirm
    - Print `[n for n, p in model.named_parameters() if p.requires_grad]`.
    - Call `requires_grad_(True)` on the last layer and repeat the run: the loss should fall.
    """
    shapes = facts.run.meta.parameters
    own = [each for each in facts.parameters if each.in_model and each.name in shapes]
    matrices = [each for each in own if len(shapes[each.name].shape) > 1]
    trained = [each for each in own if each.trainable and each.optimizer >= 0]
    frozen = [each.name for each in matrices if not each.trainable]
    outcome = facts.run_outcome
    if not frozen or len(frozen) < len(matrices) or not trained:
        yield frozen_weights.clear(
            f"{len(frozen)} of {len(matrices)} parameters with two dimensions or more are frozen"
        )
    elif len(facts.run.ranks) > 1:
        yield frozen_weights.not_examined("a shard of a rank may be empty")
    elif facts.run.steps < min_steps:
        yield frozen_weights.not_examined(f"{facts.run.steps} of the {min_steps} steps needed")
    elif not outcome.bad:
        yield frozen_weights.harmless(
            f"only {some([each.name for each in trained])} are trained, but {outcome.says}"
        )
    else:
        where = covering(frozen, {each.name for each in trained})
        yield frozen_weights.finding(
            f"all {len(frozen)} weight matrices are frozen ({some(where)}); only"
            f" {some([each.name for each in trained])} are trained",
            confidence=Confidence.LIKELY,
            onset=0,
            evidence=(
                Evidence(
                    PARAMETER_TRAINABLE,
                    (0, facts.run.steps - 1),
                    f"{len(frozen)} of {len(matrices)} do not require a gradient",
                    frozen[0],
                ),
            ),
            fix=f"set `requires_grad = True` on the parameters to train, such as {frozen[-1]},"
            " before building the optimizer",
        )
