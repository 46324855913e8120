"""Activations shrink from layer to layer by orders of magnitude."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.depth_trend import depth_trend
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Level, Severity, Verdict
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
) -> Iterator[Verdict]:
    """Activations shrink from layer to layer by orders of magnitude.

    ## What it does
    Follows the standard deviation of the outputs of layers with weights at the first step, from the
    input to the last but one. It reports a decline that goes layer by layer, over five layers or
    more, if the loss went badly. One small layer does not count, and a normalisation between the
    layers ends the decline.

    ## Why it matters
    Weights that are initialised too small make the output of each layer smaller than its input. At
    the output all inputs look alike, and the gradient, multiplied by the same factors, is as small.

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
    yield from depth_trend(fading_activations, facts, below=ratio)
