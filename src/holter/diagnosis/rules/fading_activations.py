"""Activations shrink from layer to layer by orders of magnitude."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.damage import Damage, damage_of
from holter.diagnosis.depth_trend import FIX, depth_trend
from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.depth import LAYERS
from holter.diagnosis.facts.quiet_start import QuietStart, quiet_start
from holter.diagnosis.rule import rule
from holter.record.findings import Clear, Level, NotExamined, Severity, Verdict
from holter.record.signals import ACTIVATION_STD


@rule(
    severity=Severity.ERROR,
    level=Level.ARCHITECTURE,
    needs=(ACTIVATION_STD,),
    preview=True,
)
def fading_activations(
    facts: Facts,
    *,
    ratio: Annotated[float, "standard deviation, last hidden layer over first"] = 1e-3,
    small: Annotated[
        float, "median initial weight over one that preserves the size of its input"
    ] = 0.1,
    max_loss: Annotated[
        float, "final loss over the best constant prediction, for a hint after a quiet start"
    ] = 0.8,
) -> Iterator[Verdict]:
    """Activations shrink from layer to layer by orders of magnitude.

    ## What it does
    Tracks the standard deviation of layer outputs at the first step, from the input to the last
    hidden layer. It reports a steady decline over five layers or more, if the training failed; a
    single small layer does not count, and a normalisation between the layers ends the decline. It
    also reports initial weights that are far too small for their fan-in in most layers, if no layer
    affects the first loss.

    ## Why it matters
    If weights are initialised too small, the output of each layer is smaller than its input. At the
    last layer all inputs look alike, and the gradient, multiplied by the same factors, is as small.

    ## Example
    ```python
    nn.init.normal_(layer.weight, std=0.01)                          # bad
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")       # good
    ```

    ## What to do
    Initialise so that each layer preserves the standard deviation: He for ReLU, Xavier for tanh.
    Or normalise between the layers, or add residual connections.

    ## When it is wrong
    Networks with branches of very different scale, registered in an order other than that of the
    forward pass.

    ## How to confirm
    - Print the standard deviation of each layer's output for one batch of a fresh model.
    - Initialise with `nn.init.kaiming_normal_` and repeat 100 steps: the loss should fall.
    """
    trend = list(depth_trend(fading_activations, facts, below=ratio))
    quiet = quiet_start(facts, small=small, min_layers=LAYERS)
    if quiet is None or not all(isinstance(each, Clear | NotExamined) for each in trend):
        yield from trend
        return
    damage = damage_of(fading_activations, facts, quiet.says, max_loss=max_loss)
    yield _finding(quiet, damage) if isinstance(damage, Damage) else damage


def _finding(quiet: QuietStart, damage: Damage) -> Verdict:
    return fading_activations.finding(
        f"{quiet.says}; {damage.says}",
        confidence=damage.confidence,
        severity=damage.severity,
        onset=quiet.step,
        evidence=(*quiet.evidence, *damage.evidence),
        fix=FIX,
    )
