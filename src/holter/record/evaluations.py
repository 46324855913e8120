"""Evaluation passes: how the owners of their signals are named, and which split a name says."""

import re

ALSO = "also."  # before the name of a task that `watch(also=...)` was given
PRINTED = "printed "  # before the name of a metric that a script printed
_ON = " on "
_WORDS = {
    "train": "train",
    "training": "train",
    "trn": "train",
    "tr": "train",
    "val": "validation",
    "valid": "validation",
    "validation": "validation",
    "validate": "validation",
    "dev": "validation",
    "eval": "validation",
    "evaluation": "validation",
    "evaluate": "validation",
    "test": "test",
    "testing": "test",
    "te": "test",
    "holdout": "test",
}
_JOINED = re.compile(  # testloader, valset, ytest
    r"(?P<prefix>train|valid|val|test)(?:ing)?(?:data|loader|set|iter|ds|dl)+"
    r"|[xy](?P<suffix>train|tr|val|test|te|dev)"
)
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def owner_of(function: str, evaluated: str) -> str:
    """Return the owner of a loss function's readings on the named data."""
    return f"{function}{_ON}{evaluated}" if evaluated else function


def parts_of(owner: str) -> tuple[str, str]:
    """Return the loss function of an owner and the name of its data, both as recorded."""
    function, _, evaluated = owner.partition(_ON)
    return function, evaluated


def split_of(name: str) -> str:
    """Return the split that a name says: train, validation, test, or nothing if unclear."""
    splits = {split for part in _PARTS.findall(name) if (split := _split(part.lower()))}
    return splits.pop() if len(splits) == 1 else ""


def is_split(text: str) -> bool:
    """Whether a text is nothing but the name of a split."""
    return text.lower() in _WORDS


def _split(word: str) -> str:
    if word in _WORDS:
        return _WORDS[word]
    joined = _JOINED.fullmatch(word)
    return _WORDS[joined["prefix"] or joined["suffix"]] if joined else ""
