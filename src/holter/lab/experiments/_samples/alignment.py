"""Which token the label of a position belongs to: its own, or one before or after it."""

import numpy as np

from holter.lab.experiments._samples.datasets import Split
from holter.lab.experiments._samples.parts import Array, Floats

OFFSETS = (-2, -1, 0, 1, 2)
_FEWEST = 1000  # positions
_COPIED = 0.9  # share of labels that are the token itself: of a language model


def alignment(split: Split, ignored: int | None) -> Floats | None:
    """Return the share of the labels' entropy that a token tells, for each offset.

    None where samples are not sequences of tokens with a label each, or labels are tokens.
    """
    held = [sample.sequence for sample in split.samples if sample.sequence is not None]
    if len(held) < len(split.samples) or sum(len(tokens) for tokens, _ in held) < _FEWEST:
        return None
    shares = []
    for offset in OFFSETS:
        pairs = [_pairs(tokens, labels, offset, ignored) for tokens, labels in held]
        tokens = np.concatenate([pair[0] for pair in pairs])
        labels = np.concatenate([pair[1] for pair in pairs])
        if len(labels) < _FEWEST or (tokens == labels).mean() > _COPIED:
            return None
        entropy = _entropy(labels)
        if not entropy:
            return None
        both = np.stack([tokens, labels], axis=1)
        shares.append(1 - (_entropy(both) - _entropy(tokens)) / entropy)
    return np.array(shares)


def _pairs(tokens: Array, labels: Array, offset: int, ignored: int | None) -> tuple[Array, Array]:
    """Return labels, and for each the token so many positions after it.

    Two positions at either end are left out, so that all offsets have the same labels.
    """
    most = max(OFFSETS)
    places = np.arange(most, len(labels) - most)
    if ignored is not None:
        places = places[labels[places] != ignored]
    return tokens[places + offset], labels[places]


def _entropy(values: Array) -> float:
    _, counts = np.unique(values, axis=0, return_counts=True)
    shares = counts / counts.sum()
    return float(-(shares * np.log(shares)).sum())
