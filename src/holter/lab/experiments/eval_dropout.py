"""Call the model in eval mode, to see whether it drops anything."""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch.nn import functional

from holter.lab.experiments import experiment
from holter.lab.experiments._probing.probe import probed, some_batches
from holter.lab.setup import Setup
from holter.lab.writing import Lab
from holter.record.signals import EVAL_DROPOUT
from holter.watching.taps import Tap

_ATTENTION = "scaled_dot_product_attention"
_FUNCTIONS = ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", _ATTENTION)
_DROPOUT = ("input", "p", "training", "inplace")
_ATTENTION_ARGUMENTS = ("query", "key", "value", "attn_mask", "dropout_p")
_DEFAULTS = {"p": 0.5, "dropout_p": 0.0}


@experiment(emits=(EVAL_DROPOUT,), preflight=True)
def eval_dropout(setup: Setup, lab: Lab) -> None:
    """Is nothing dropped in eval mode?

    Calls the model in eval mode and looks at the arguments of torch's dropout functions:
    `F.dropout(x)` drops in every mode unless it gets `training=self.training`.
    """
    (batch,) = some_batches(setup, 1)
    probe, _ = probed(setup, batch)
    with _dropped() as shares:
        probe.outputs()
    lab.write(EVAL_DROPOUT, [0.0])
    for name, share in shares.items():
        lab.write(EVAL_DROPOUT, [share], trial=name)


@contextmanager
def _dropped() -> Iterator[dict[str, float]]:
    """The largest share that each dropout function drops inside without being told to."""
    shares: dict[str, float] = {}

    def around(original: Callable[..., Any]) -> Callable[..., Any]:
        names: tuple[str, ...] = _DROPOUT
        share_name = "p"
        if original.__name__ == _ATTENTION:
            names, share_name = _ATTENTION_ARGUMENTS, "dropout_p"

        @functools.wraps(original)
        def called(*args: Any, **kwargs: Any) -> Any:
            given = {**dict(zip(names, args, strict=False)), **kwargs}
            share = float(given.get(share_name, _DEFAULTS[share_name]))
            if "training" not in given and share > 0:  # who says `training=True` means it
                shares[original.__name__] = max(share, shares.get(original.__name__, 0.0))
            return original(*args, **kwargs)

        return called

    taps = [Tap(functional, name, around) for name in _FUNCTIONS]
    try:
        yield shares
    finally:
        for tap in reversed(taps):
            tap.remove()
