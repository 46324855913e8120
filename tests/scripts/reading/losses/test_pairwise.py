"""Pairwise losses whose negatives are known by where they come from."""

from types import ModuleType

import pytest

from holter.scripts.reading.losses import pairwise
from tests.scripts.reading.found import kinds_by

_PAIR = "u, i, j = (t(a) for a in (x, y, neg))\ndiff = {}\nloss = {}.mean()\nloss.backward()"


@pytest.mark.parametrize(
    ("readers", "text", "kind"),
    [
        (pairwise, _PAIR.format("f(u, j) - f(u, i)", "-F.logsigmoid(diff)"), "reversed pair"),
        (pairwise, _PAIR.format("f(u, i) - f(u, j)", "F.logsigmoid(diff)"), "reversed pair"),
        (pairwise, _PAIR.format("f(u, i) - f(u, neg)", "F.softplus(diff)"), "reversed pair"),
    ],
)  # fmt: skip
def test_it_finds_pairs_the_wrong_way(readers: ModuleType, text: str, kind: str) -> None:
    assert kind in kinds_by(text, readers)


@pytest.mark.parametrize(
    ("readers", "text"),
    [
        (pairwise, _PAIR.format("f(u, i) - f(u, j)", "-F.logsigmoid(diff)")),
        (pairwise, _PAIR.format("f(u, j) - f(u, i)", "F.softplus(diff)")),
        (pairwise, _PAIR.format("f(u, x) - f(u, i)", "-F.logsigmoid(diff)")),
    ],
)
def test_it_is_silent_about_right_pairs(readers: ModuleType, text: str) -> None:
    assert not kinds_by(text, readers)
