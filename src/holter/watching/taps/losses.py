"""Taps on the loss functions of `torch.nn.functional`."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from torch import Tensor
from torch.nn import functional

from holter.watching.tap import Call, Tap, Wanted

LOSS_FUNCTIONS = (
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_embedding_loss",
    "cross_entropy",
    "ctc_loss",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "linear_cross_entropy",
    "margin_ranking_loss",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
)


@dataclass(frozen=True, slots=True)
class TappedLoss:
    """A call of a loss function; `has_graph` if any of what it was given requires a gradient."""

    function: str
    loss: Tensor
    samples: int
    has_graph: bool
    arguments: Mapping[str, Any]  # by name, with the defaults of what was not given

    def detached(self) -> "TappedLoss":
        """The same without the graph, so that it may be kept."""
        arguments = {
            name: value.detach() if isinstance(value, Tensor) and value.requires_grad else value
            for name, value in self.arguments.items()
        }
        return replace(self, loss=self.loss.detach(), arguments=arguments)


class LossListener(Protocol):
    """Hears of losses."""

    @property
    def losses(self) -> Wanted:
        """Whether to tell of a loss: not telling saves most of the cost."""

    def loss_computed(self, call: TappedLoss) -> None:
        """A loss function has returned."""


def tap_losses(listener: LossListener) -> list[Tap]:
    """Tap every loss function."""
    inside = False  # one loss function may call another: the outer one is the script's

    def around(original: Call) -> Call:
        defaults = _defaults(original)

        def computed(*args: Any, **kwargs: Any) -> Any:
            if inside:
                return original(*args, **kwargs)
            return reported(original, defaults, args, kwargs)

        return computed

    def reported(original: Call, defaults: Mapping[str, Any], args: Any, kwargs: Any) -> Any:
        nonlocal inside
        inside = True
        try:
            result = original(*args, **kwargs)
        finally:
            inside = False
        tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)]
        if not isinstance(result, Tensor) or result.is_meta:  # of a library that infers shapes
            return result
        if tensors and result.is_floating_point():
            listener.loss_computed(
                TappedLoss(
                    function=original.__name__,
                    loss=result,
                    samples=max(len(tensors[0]), 1) if tensors[0].dim() else 1,
                    has_graph=any(tensor.requires_grad for tensor in tensors),
                    arguments={**defaults, **dict(zip(defaults, args, strict=False)), **kwargs},
                )
            )
        return result

    wanted = listener.losses  # not in most of training
    names = [name for name in LOSS_FUNCTIONS if name in vars(functional)]
    return [Tap(functional, name, around, interest=wanted) for name in names]


def _defaults(function: Call) -> dict[str, Any]:
    """The parameters of a function in their order, None where there is no default."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # something without a signature has replaced it
        return {}
    empty = inspect.Parameter.empty
    return {name: None if p.default is empty else p.default for name, p in parameters.items()}
