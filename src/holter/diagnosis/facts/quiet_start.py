"""Whether the weights are so small from the start that neither signal nor gradient gets through."""

from dataclasses import dataclass
from math import prod, sqrt
from typing import TYPE_CHECKING

import numpy as np

from holter.diagnosis.facts.weight_growth import ALL_BUT_ZERO, initial_size
from holter.record.findings import Evidence
from holter.record.signals import GRAD_NORM, WEIGHT_NORM

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

_EFFECT = 1e-3  # largest effect of a layer on the loss; those of models that learn are above 0.03


@dataclass(frozen=True, slots=True)
class QuietStart:
    """The initial weights over those that preserve the size of their input, and what they do.

    The effect of a layer is the norm of its first gradient times that of its weights, over the
    loss: a change of the layer by 100 % changes the loss by as much.
    """

    size: float  # median over the layers: RMS weight times the square root of the fan-in
    effect: float  # the largest
    layers: int
    owner: str  # the layer with the largest effect
    step: int

    @property
    def says(self) -> str:
        """Both, in words."""
        return (
            f"the initial weights of {self.layers} layers are {self.size:.2g} times (median) the"
            " size that preserves the input scale, and no layer changes the loss by more than"
            f" {self.effect:.1g} of its value"
        )

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The weights and the gradients."""
        span = (self.step, self.step)
        return (
            Evidence(
                WEIGHT_NORM, span, f"RMS weight times √fan-in: median {self.size:.2g}", self.owner
            ),
            Evidence(
                GRAD_NORM,
                span,
                f"gradient norm times weight norm: {self.effect:.1g} of the loss; 1 is common",
                self.owner,
            ),
        )


def quiet_start(facts: "Facts", *, small: float, min_layers: int) -> QuietStart | None:
    """Return how quiet the model starts, or None if it does not, or if that was not measured.

    Small weights alone say little: a normalisation, a frequency or a residual connection makes up
    for them. Layers that begin at zero do so by design.
    """
    curve = facts.signed_curve
    if (
        isinstance(curve, str)
        or not len(curve)
        or not curve.values[0]
        or GRAD_NORM not in facts.run
    ):
        return None
    sizes, effects, owners = [], [], []
    for layer in facts.layers:
        size, gradients = initial_size(facts, layer), facts.run[GRAD_NORM].get(layer.name)
        if size is None or not size > ALL_BUT_ZERO:
            continue
        if gradients is None or not len(gradients) or gradients.first != curve.steps[0]:
            continue
        norm = size * layer.root / sqrt(prod(layer.shape[1:]))
        sizes.append(size)
        effects.append(float(gradients.values[0]) * norm / abs(float(curve.values[0])))
        owners.append(layer.name)
    if len(sizes) < min_layers or not np.isfinite(effects).all():
        return None
    most = int(np.argmax(effects))
    found = QuietStart(
        float(np.median(sizes)), effects[most], len(sizes), owners[most], int(curve.steps[0])
    )
    return found if found.size < small and found.effect < _EFFECT else None
