"""Readers of part statistics, transforms, and twins without a pattern."""

from textwrap import dedent

import pytest

from holter.scripts.reading import read


def kinds(text: str) -> set[str]:
    """The kinds of patterns in a source."""
    return {pattern.kind for pattern in read(dedent(text))}


def split(body: str, parts: str = "train_set, val_set") -> str:
    """A split at random, and what follows it."""
    return f"{parts} = random_split(full, [800, 200])\n{dedent(body)}"


FOUND = {
    "refitted": (
        "x_train = s.fit_transform(x_train)\nx_test = s.fit_transform(x_test)",
        "train = encode(a, build_vocab(train_texts))\nval = encode(b, build_vocab(val_texts))",
        "x = StandardScaler().fit_transform(x_train)\nz = StandardScaler().fit_transform(x_val)",
    ),
    "shared transform": (
        split("val_set.dataset.transform = plain"),
        split("train_set.dataset.transform = noisy\nval_set.dataset.transform = plain"),
        split("val_set.dataset.target_transform = None", "train_set, val_set, test_set"),
    ),
}
NOT_FOUND = {
    "refitted": (
        "x_train = s.fit_transform(x_train)\nx_test = s.transform(x_test)",
        "vocab = build_vocab(train_texts)\nval = encode(val_texts, vocab)",
        "tsne = TSNE(2)\na = tsne.fit_transform(train_z)\nb = tsne.fit_transform(test_z)",
        "scaling.fit(val_logits)",
    ),
    "shared transform": (
        split("val_set.dataset = copy.copy(full)\nval_set.dataset.transform = plain"),
        split("train_set.dataset.transform = tf\nval_set.dataset.transform = tf"),
        split("val_set.dataset.transform = plain", "_, val_set"),
        split("for e in range(9):\n    val_set.dataset.transform = plain\n    test()"),
        split("loss.backward()\nval_set.dataset.transform = plain"),
        "val_set.dataset.transform = plain",
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
