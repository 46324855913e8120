"""Gradient noise scale: how far gradients of batches differ, against what they have in common."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

WIDTH = 1 << 18  # numbers that are kept of a gradient
_DRAWS = 2000  # of the bootstrap
_BEYOND = 0.025  # share of them that lies outside of the interval, on either side

Gram = npt.NDArray[np.float64]  # inner products of gradients


@dataclass(frozen=True, slots=True)
class NoiseScale:
    """Samples at which the noise of a batch's gradient is as large as the gradient itself.

    `lower` and `upper` are the ends of a bootstrap interval of 95 %, which held the truth in about
    nine of ten trials with known ones; infinity where no common gradient is seen.
    """

    value: float
    lower: float
    upper: float


def noise_scale(gram: Gram, samples: int, *, population: int | None, seed: int = 0) -> NoiseScale:
    """The noise scale from the inner products of gradients of batches of `samples` each.

    Different batches agree in the true gradient alone, so their inner products give its square
    without bias; what a batch's own square has more is noise. This is the estimate of McCandlish
    et al. (2018) from one batch and from all together. Batches of one epoch, out of a `population`
    of that many samples, share none: that makes their products smaller by a known part.
    """
    count = len(gram)
    random = np.random.default_rng(seed)
    drawn = random.multinomial(count, np.full(count, 1 / count), size=_DRAWS).astype(np.float64)
    scales = _scales(gram, np.vstack([np.ones(count), drawn]), samples, population)
    ordered = np.sort(scales[1:])
    cut = round(_BEYOND * _DRAWS)
    return NoiseScale(float(scales[0]), float(ordered[cut]), float(ordered[-1 - cut]))


def _scales(gram: Gram, weights: Gram, samples: int, population: int | None) -> Gram:
    """The scale for each row of `weights`: how often each batch is drawn."""
    count = weights.sum(1)
    own = weights @ np.diag(gram)
    # A batch that was drawn twice is no pair of different batches.
    pairs = ((weights @ gram) * weights).sum(1) - weights**2 @ np.diag(gram)
    different = count**2 - (weights**2).sum(1)
    common = pairs / np.maximum(different, 1)
    variance = samples * (own / count - common)
    if population is not None:
        common = common + variance / population
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(common > 0, np.maximum(variance, 0) / common, np.inf)


def sketch(gradients: Sequence[Tensor], *, seed: int = 0) -> Tensor:
    """Gradients as one vector; a long one is folded at random, which keeps inner products."""
    flat = torch.cat([gradient.detach().reshape(-1).float() for gradient in gradients])
    if len(flat) <= WIDTH:
        return flat
    random = torch.Generator(flat.device).manual_seed(seed)
    place = torch.randint(WIDTH, flat.shape, generator=random, device=flat.device)
    sign = torch.randint(2, flat.shape, generator=random, device=flat.device) * 2 - 1
    return torch.zeros(WIDTH, device=flat.device).index_add_(0, place, flat * sign)
