"""Which signal a name in a log stands for."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from holter.record.errors import HolterError
from holter.record.evaluations import is_split, split_of
from holter.record.signals import (
    ACCURACY,
    GRAD_TOTAL_NORM,
    LOSS,
    LR,
    VAL_ACCURACY,
    VAL_LOSS,
    Signal,
)

# What `--map` calls a signal, and the signals that a log may have.
TARGETS: Mapping[str, Signal] = {
    "loss": LOSS,
    "val_loss": VAL_LOSS,
    "accuracy": ACCURACY,
    "val_accuracy": VAL_ACCURACY,
    "lr": LR,
    "grad_norm": GRAD_TOTAL_NORM,
}

_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
# Words that do not change what is measured; the number is how much less such a name is preferred.
_NEUTRAL = {
    "metrics": 0,
    "metric": 0,
    "scalars": 0,
    "total": 0,
    "overall": 0,
    "set": 0,
    "step": 0,
    "batch": 0,
    "iter": 0,
    "iteration": 0,
    "mean": 1,
    "avg": 1,
    "average": 1,
    "epoch": 2,
    "running": 3,
    "smoothed": 3,
    "smooth": 3,
    "ema": 3,
}
_LOSS = frozenset({"loss"})
_ACCURACY = frozenset(
    {"acc", "accuracy", "top", "1", "categorical", "binary", "sparse", "multiclass"}
)
_RATE = frozenset({"lr", "learning", "rate", "group", "pg", "param", "optimizer", "opt"})
_OPTIMIZERS = frozenset(
    {"adam", "w", "sgd", "rm", "sprop", "lion", "adafactor", "adagrad", "muon", "lamb"}
)
_GRADIENT = frozenset(
    {"grad", "grads", "gradient", "gradients", "norm", "global", "gnorm", "l", "2", "0"}
)

# Names that are logged where a lower loss need not be a better one.
_COMPETING = frozenset(
    {
        "policy",
        "actor",
        "critic",
        "reward",
        "rewards",
        "advantage",
        "advantages",
        "episode",
        "generator",
        "discriminator",
        "adversarial",
    }
)
_PLAYERS = re.compile(r"(?:^|[/_.\s])(?:[dg]_?loss|loss_?[dg])(?:$|[/_.\s])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Role:
    """What a name stands for; of several names for one signal, the least `rank` is preferred."""

    signal: Signal
    rank: int = 0


def role_of(name: str) -> Role | None:
    """Return the signal that a name stands for, or None where it stands for none surely."""
    words = [part.lower() for part in _PARTS.findall(name)]
    split = split_of(name)
    rest = [word for word in words if not is_split(word) and word not in _NEUTRAL]
    rank = sum(_NEUTRAL.get(word, 0) for word in words) + (split == "test") * 10 + (not split)
    held_out = split in ("validation", "test")
    if "loss" in rest and set(rest) <= _LOSS:
        return Role(VAL_LOSS if held_out else LOSS, rank)
    if {"acc", "accuracy"} & set(rest) and set(rest) <= _ACCURACY:
        return Role(VAL_ACCURACY if held_out else ACCURACY, rank + len(rest))
    if held_out:
        return None
    measured = [word for word in rest if not word.isdigit() and word not in _OPTIMIZERS]
    if _is_rate(measured):
        return Role(LR, rank)
    if _is_norm(words):
        return Role(GRAD_TOTAL_NORM, rank)
    return None


def speaks_of_competing_losses(name: str) -> bool:
    """Return whether a name is one of reinforcement learning or of adversarial training."""
    words = {part.lower() for part in _PARTS.findall(name)}
    return bool(words & _COMPETING) or _PLAYERS.search(name) is not None


def parse_mapping(assignments: list[str]) -> dict[str, Signal]:
    """Return the signal of each name that `--map SIGNAL=NAME` gives."""
    mapping = {}
    for text in assignments:
        target, equals, name = text.partition("=")
        signal = TARGETS.get(target.strip().replace(".", "_").replace("-", "_"))
        if not equals or not name.strip():
            raise HolterError(f"--map {text}: write SIGNAL=NAME, for example loss=my/loss.")
        if signal is None:
            near = get_close_matches(target, TARGETS, n=1)
            there = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(TARGETS)}."
            raise HolterError(f"--map {text}: there is no signal {target.strip()!r}; {there}")
        mapping[name.strip()] = signal
    return mapping


def _is_rate(words: list[str]) -> bool:
    return set(words) <= _RATE and ("lr" in words or {"learning", "rate"} <= set(words))


def _is_norm(words: list[str]) -> bool:
    own = {word for word in words if word not in _NEUTRAL and not is_split(word)}
    has_norm = "gnorm" in own or ("norm" in own and any(word.startswith("grad") for word in own))
    return has_norm and own <= _GRADIENT
