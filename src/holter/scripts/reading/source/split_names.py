"""Whether a name is that of training data, or of held-out data."""

import re

_HELD_OUT = re.compile(
    r"(^|_)(val|valid|validation|test|dev|holdout|heldout|held_out)(_|$|\d)", re.I
)
TRAINING = re.compile(r"(^|_)(train|training|tr)(_|$|\d)", re.I)
TEST = re.compile(r"(^|_)(test|te|tst)(_|$|\d)", re.I)
VALIDATION = re.compile(r"(^|_)(val|valid|validation|dev|va)(_|$|\d)", re.I)


def is_held_out(name: str) -> bool:
    """Whether a name is that of validation or test data, or of a figure of them."""
    return bool(_HELD_OUT.search(name)) and not TRAINING.search(name)


def is_training(name: str) -> bool:
    """Whether a name is that of training data, or of a figure of them."""
    return bool(TRAINING.search(name)) and not _HELD_OUT.search(name)
