"""Which modules drop values in a forward pass, and how many."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from torch import Tensor, nn
from torch.nn import functional

from holter.lab.batches import tensors
from holter.lab.setup import Setup
from holter.watching.taps import Tap

_ATTENTION = "scaled_dot_product_attention"
_ATTENTION_ARGUMENTS = ("query", "key", "value", "attn_mask", "dropout_p")
_FUNCTIONS = (
    *("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"),
    _ATTENTION,
)
_ARGUMENTS = ("input", "p", "training")


@dataclass(slots=True)
class Dropped:
    """What was dropped in the forward passes that were listened to."""

    shares: dict[str, float] = field(default_factory=dict)  # by the innermost module
    sources: list[tuple[str, float, int]] = field(default_factory=list)  # of what nothing trained
    returned: set[int] = field(default_factory=set)  # elements of what the model returns

    @property
    def largest(self) -> tuple[str, float]:
        """The module that drops the largest share, and that share; ("", 0) if none drops.

        A model that reconstructs what it is given is trained to do so without most of it: inputs
        of as many elements as its output do not count.
        """
        shares = dict(self.shares)
        for name, share, elements in self.sources:
            if elements not in self.returned:
                shares[name] = max(share, shares.get(name, 0.0))
        name = max(shares, key=lambda each: shares[each], default="")
        return name, shares.get(name, 0.0)


@contextmanager
def dropping(setup: Setup) -> Iterator[Dropped]:
    """Listen to all that drops values inside: layers, functions, attention, recurrent layers."""
    dropped = Dropped()
    inside = [""]

    def enter(name: str, module: nn.Module) -> None:
        inside.append(name)
        if isinstance(module, nn.RNNBase) and module.training and module.num_layers > 1:
            _note(dropped.shares, name, module.dropout)

    def leave(module: nn.Module, output: Any) -> None:
        inside.pop()
        if module is setup.entry:
            dropped.returned |= {each.numel() for each in tensors(output)}

    def around(original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def called(*args: Any, **kwargs: Any) -> Any:
            _hear(dropped, inside[-1], original.__name__, args, kwargs)
            return original(*args, **kwargs)

        return called

    handles = []
    for name, module in setup.model.named_modules():
        handles += [
            module.register_forward_pre_hook(lambda module, _, name=name: enter(name, module)),
            module.register_forward_hook(lambda module, _, output: leave(module, output)),
        ]
    taps = [Tap(functional, name, around) for name in _FUNCTIONS]
    try:
        yield dropped
    finally:
        for tap in reversed(taps):
            tap.remove()
        for handle in handles:
            handle.remove()


def _hear(dropped: Dropped, name: str, function: str, args: Any, kwargs: Any) -> None:
    if function == _ATTENTION:
        given = {**dict(zip(_ATTENTION_ARGUMENTS, args, strict=False)), **kwargs}
        _note(dropped.shares, name, given.get("dropout_p", 0.0))
        return
    given = {**dict(zip(_ARGUMENTS, args, strict=False)), **kwargs}
    share, values = float(given.get("p", 0.5)), given.get("input")
    # Only `dropout` to `dropout3d` drop by default; those of alpha do not.
    if not given.get("training", "alpha" not in function) or not isinstance(values, Tensor):
        return
    if values.requires_grad:
        _note(dropped.shares, name, share)
    elif share > 0:
        dropped.sources.append((name, share, values.numel()))


def _note(shares: dict[str, float], name: str, share: float) -> None:
    if share > 0:
        shares[name] = max(float(share), shares.get(name, 0.0))
