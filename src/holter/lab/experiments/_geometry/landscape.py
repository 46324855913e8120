"""The loss at other weights: moved along random directions with filter normalisation."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from holter.lab.randomness import same_randomness
from holter.lab.setup import Batch, Setup

Direction = Sequence[Tensor]


class Landscape:
    """The loss on fixed batches in eval mode, at weights moved away from where they are."""

    def __init__(self, setup: Setup, batches: Sequence[Batch], parameters: Sequence[Tensor]):
        self._setup, self._batches, self._parameters = setup, batches, parameters
        self._home = [parameter.detach().clone() for parameter in parameters]

    def direction(self, random: torch.Generator) -> Direction:
        """A random one, each filter as long as that of the weights; biases and norms stay."""
        return [_like(each, random) for each in self._home]

    def line(self, along: Direction, distances: Sequence[float]) -> list[float]:
        """The loss at these distances along a direction."""
        with self._visiting():
            return [self._at((distance, along)) for distance in distances]

    def row(
        self, along: Direction, distances: Sequence[float], up: float, upward: Direction
    ) -> list[float]:
        """The same, moved by `up` along another direction as well."""
        with self._visiting():
            return [self._at((distance, along), (up, upward)) for distance in distances]

    @torch.no_grad()
    def _at(self, *terms: tuple[float, Direction]) -> float:
        self._move(*terms)
        total = 0.0
        for batch in self._batches:
            with same_randomness(self._setup):
                total += float(self._setup.loss(batch).mean())
        return total / len(self._batches)

    @torch.no_grad()
    def _move(self, *terms: tuple[float, Direction]) -> None:
        for number, (each, home) in enumerate(zip(self._parameters, self._home, strict=True)):
            each.copy_(home)
            for distance, direction in terms:
                each.add_(direction[number], alpha=distance)

    @contextmanager
    def _visiting(self) -> Iterator[None]:
        """Inside, models are in eval mode; afterwards modes and weights are as before."""
        models = self._setup.models.values()
        modes = {module: module.training for model in models for module in model.modules()}
        for model in models:
            model.eval()
        try:
            yield
        finally:
            self._move()
            for each, mode in modes.items():
                each.training = mode


def _like(weights: Tensor, random: torch.Generator) -> Tensor:
    if weights.dim() < 2:
        return torch.zeros_like(weights)
    drawn = torch.randn(weights.shape, generator=random).to(weights)
    others = tuple(range(1, weights.dim()))
    lengths = [torch.linalg.vector_norm(e, dim=others, keepdim=True) for e in (weights, drawn)]
    return torch.mul(drawn, lengths[0] / lengths[1])
