"""Activations grow from layer to layer by orders of magnitude."""

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
)
def growing_activations(
    facts: Facts,
    *,
    ratio: Annotated[float, "growth of the standard deviation, last hidden layer over first"] = 1e3,
) -> Iterator[Verdict]:
    """Activations grow from layer to layer by orders of magnitude.

    ## What it does
    Tracks the standard deviation of layer outputs at the first step, from the input to the last
    hidden layer. It reports a steady growth over five layers or more, if the training failed. One
    large layer does not count, and a normalisation between the layers ends the growth.

    ## Why it matters
    If weights are initialised too large, each layer amplifies the signal in the forward pass and
    the gradient in the backward pass. The first loss is enormous, the first update destroys the
    initialisation, and half-precision values overflow.

    ## Example
    ```python
    nn.init.normal_(layer.weight, std=1.0)                           # bad
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")       # good
    ```

    ## What to do
    Initialise so that each layer preserves the standard deviation: He for ReLU, Xavier for tanh.
    Or normalise between the layers; scale residual branches down with depth.

    ## When it is wrong
    Networks with branches of very different scale, registered in an order other than that of the
    forward pass.

    ## How to confirm
    - Print the standard deviation of each layer's output for one batch of a fresh model.
    - Initialise with `nn.init.kaiming_normal_` and repeat 100 steps: the loss should fall.
    """
    yield from depth_trend(growing_activations, facts, above=ratio)
