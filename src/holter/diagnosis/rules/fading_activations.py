"""Activations shrink from layer to layer until nothing of the input is left."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.depth import LAYERS
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import ACTIVATION_STD


@rule(
    severity=Severity.ERROR,
    level=Level.ARCHITECTURE,
    needs=(ACTIVATION_STD,),
)
def fading_activations(facts: Facts, *, ratio: float = 1e-3) -> Iterator[Verdict]:
    """Activations shrink from layer to layer until nothing of the input is left.

    ## What it does
    Follows the spread of what each layer with weights returned at the first step, from the input
    to the last but one. It speaks where that shrinks step by step, over five layers or more, to
    under `ratio` of the first, and the loss went badly. One layer that is small by itself does not
    count, and a normalisation on the way ends the decline.

    ## Why it matters
    Weights that begin too small make each layer's output smaller than its input. At the output all
    inputs look alike, and the gradient, multiplied by the same small factors, is as weak.

    ## What to do
    Initialise so that each layer keeps the spread: He for ReLU, Xavier for tanh. Or normalise
    between the layers, or add residual connections.

    ## When it is wrong
    Networks with branches of very different scale, registered in an order that is not that of the
    forward pass.

    ## How to confirm
    - Print the standard deviation of each layer's output for one batch of a fresh model.
    - Initialise with `nn.init.kaiming_normal_` and repeat 100 steps: the loss should fall.
    """
    found = facts.activations_by_depth
    if found is None:
        yield fading_activations.not_examined(f"it takes {LAYERS + 1} layers with weights")
        return
    if found.factor > ratio:
        yield fading_activations.clear(
            f"the spread of the last hidden layer is {found.whole:.2g} times that of the first"
        )
        return
    result = facts.outcome
    if result is None:
        yield fading_activations.not_examined(
            f"the spread shrinks to {found.factor:.0e}, but whether the loss fell cannot be told"
        )
        return
    if not result.bad:
        yield fading_activations.clear(
            f"the spread shrinks to {found.factor:.0e} with depth, but {result.says}"
        )
        return
    yield fading_activations.finding(
        f"activations fade with depth: their spread falls from {found.spreads[0]:.1e} in"
        f" {found.owners[0]} to {found.spreads[-1]:.1e} in {found.owners[-1]}; {result.says}",
        confidence=Confidence.LIKELY,
        onset=found.steps[0],
        evidence=(
            Evidence(
                ACTIVATION_STD,
                found.steps,
                f"from the input to the output: {found}",
                found.owners[-1],
            ),
            result.evidence,
        ),
        fix="initialise so that each layer keeps the spread (He for ReLU, Xavier for tanh), or"
        " normalise between layers",
    )
