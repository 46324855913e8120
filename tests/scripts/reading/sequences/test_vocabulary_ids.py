"""Ids of vocabularies: reserved ones, and the order of a set."""

import pytest

from tests.scripts.reading.found import kinds

VOCAB = """
PAD, UNK = 0, 1
def build(rows):
    words = [w for w, c in Counter(rows).most_common(9) if c > 1]
    return {table}
def encode(text, vocab):
    return [vocab.get(t, UNK) for t in text]
{name} = build(rows)
data = encode(text, {name})
"""


@pytest.mark.parametrize("table", ["{w: i for i, w in enumerate(words)}",
                                   "{w: i + 1 for i, w in enumerate(words)}",
                                   "dict((w, i) for i, w in enumerate(words, 1))"])  # fmt: skip
@pytest.mark.parametrize("name", ["vocab", "word_ids"])
def test_vocabularies_that_take_reserved_ids(table: str, name: str) -> None:
    assert "reserved id" in kinds(VOCAB.format(table=table, name=name))


@pytest.mark.parametrize(
    "table",
    [
        "{w: i + 2 for i, w in enumerate(words)}",
        "{w: i for i, w in enumerate(words, 2)}",
        "{w: i for i, w in enumerate(['<pad>', '<unk>'] + words)}",
    ],
)
def test_vocabularies_beside_reserved_ids(table: str) -> None:
    assert "reserved id" not in kinds(VOCAB.format(table=table, name="vocab"))


SAVED = """
{code}
ids = [{use} for w in words]
torch.save(model.state_dict(), "model.pt")
"""


@pytest.mark.parametrize(
    ("code", "use"),
    [
        ('LABELS = list({"yes", "no", "up"})', "LABELS.index(w)"),
        ("chars = list(set(text))\nstoi = {c: i for i, c in enumerate(chars)}", "stoi[w]"),
        ("names = tuple(set(words))", "names.index(w)"),
    ],
)
def test_ids_by_the_order_of_a_set(code: str, use: str) -> None:
    assert "unordered ids" in kinds(SAVED.format(code=code, use=use))


@pytest.mark.parametrize(
    ("code", "use"),
    [
        ('LABELS = sorted({"yes", "no", "up"})', "LABELS.index(w)"),
        ("chars = list(set(text))\nchars.sort()", "chars.index(w)"),
        ("users = list(set(ratings))", "users.index(w)"),
        ('LABELS = list({"yes", "no"})', "w in LABELS"),
    ],
)
def test_ids_by_a_fixed_order(code: str, use: str) -> None:
    assert "unordered ids" not in kinds(SAVED.format(code=code, use=use))
