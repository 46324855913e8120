"""Readers of floored progress, and twins without a pattern."""

from textwrap import dedent

import pytest

from holter.scripts.reading import read


def kinds(text: str) -> set[str]:
    """The kinds of patterns in a source."""
    return {pattern.kind for pattern in read(dedent(text))}


FOUND = {
    "rounded share": (
        "weight = min(1.0, step // warmup)",
        "s = LambdaLR(o, lambda it: min(1.0, (it + 1) // 300))",
        "beta = min(epoch // 10, 1)",
    ),
}
NOT_FOUND = {
    "rounded share": (
        "weight = min(1.0, step / warmup)",
        "workers = min(1, cores // 2)",
        "stage = min(3, epoch // 10)",
        "size = max(1, step // 10)",
    ),
}


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in FOUND.items() for text in texts]
)
def test_a_mistake_is_found(kind: str, text: str) -> None:
    assert kinds(text) == {kind}


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in NOT_FOUND.items() for text in texts]
)
def test_ordinary_code_is_none(kind: str, text: str) -> None:
    assert kind not in kinds(text)


def test_each_pattern_has_twins() -> None:
    assert FOUND.keys() == NOT_FOUND.keys()
    assert all(len(texts) >= 3 for texts in (*FOUND.values(), *NOT_FOUND.values()))
