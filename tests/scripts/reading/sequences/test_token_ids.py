"""Ids of tokens in sources, and labels of masked tokens."""

import pytest

from tests.scripts.reading.found import kinds

WORDS = """
PAD, UNK = 0, 1
words = {}
{}
def encode(tokens):
    return [vocab.get(t, {}) for t in tokens]
"""
COUNTED = "[w for w, n in counts.most_common() if n > 1]"


@pytest.mark.parametrize(
    ("words", "table", "missing"),
    [
        (COUNTED, "vocab = {w: i for i, w in enumerate(words)}", "UNK"),
        ("sorted(set(tokens))", "vocab = {w: i + 1 for i, w in enumerate(words)}", "UNK"),
        ("sorted(counts)", "vocab = dict((w, i) for i, w in enumerate(words))", "UNK"),
        ("sorted(counts)", "vocab = {w: i for i, w in enumerate(words, 1)}", "UNK"),
        ("counts.most_common(9)", "vocab = {w: i for i, (w, _) in enumerate(words)}", "PAD"),
    ],
)
def test_words_with_the_id_of_padding(words: str, table: str, missing: str) -> None:
    assert kinds(WORDS.format(words, table, missing)) == {"reserved id"}


@pytest.mark.parametrize(
    ("words", "table", "missing"),
    [
        (COUNTED, "vocab = {w: i + 2 for i, w in enumerate(words)}", "UNK"),
        ("sorted(counts)", "vocab = {w: i for i, w in enumerate(words, start=2)}", "UNK"),
        ("['<pad>', '<unk>'] + sorted(counts)", "vocab = {w: i for i, w in enumerate(words)}",
         "UNK"),
        ("sorted(counts)", "vocab = {w: i + len(SPECIAL) for i, w in enumerate(words)}", "UNK"),
        ("sorted(labels)", "vocab = {w: i for i, w in enumerate(words)}", "None"),
    ],
)  # fmt: skip
def test_words_after_special_ids(words: str, table: str, missing: str) -> None:
    assert not kinds(WORDS.format(words, table, missing))


@pytest.mark.parametrize(
    "text",
    [
        'vocab = {"<pad>": 0, "<unk>": 1}\nids = [vocab.get(w, 0) for w in words]',
        'PAD, UNK = 0, 1\nstoi = {"<pad>": PAD, "<unk>": UNK}\nids = [stoi.get(w, PAD) for w in x]',
        'self.vocab = {"[PAD]": 0, "[UNK]": 1}\nid = self.vocab.get(token, 0)',
    ],
)
def test_unknown_words_that_are_padding(text: str) -> None:
    assert kinds(text) == {"unknown as padding"}


@pytest.mark.parametrize(
    "text",
    [
        'vocab = {"<pad>": 0, "<unk>": 1}\nids = [vocab.get(w, 1) for w in words]',
        'vocab = {"<unk>": 0, "<pad>": 1}\nids = [vocab.get(w, 0) for w in words]',
        'counts = {"a": 0}\nn = counts.get(w, 0)',
    ],
)
def test_unknown_words_with_an_id(text: str) -> None:
    assert not kinds(text)


MASKED = """
def mask(ids, prob):
    chosen = torch.rand(ids.shape) < prob
    {}
    return ids, labels
"""


@pytest.mark.parametrize(
    "body",
    [
        "ids[chosen] = MASK\n    labels = ids.clone()\n    labels[~chosen] = -100",
        "ids = ids.masked_fill(chosen, mask_id)\n    labels = ids.clone()",
        "ids = torch.where(chosen, tokenizer.mask_token_id, ids)\n    labels = ids",
        "ids[chosen & (how < 0.8)] = MASK_ID\n    labels = ids.clone().long()",
    ],
)
def test_labels_of_masked_ids(body: str) -> None:
    assert kinds(MASKED.format(body)) == {"labels after masking"}


@pytest.mark.parametrize(
    "body",
    [
        "labels = ids.clone()\n    ids[chosen] = MASK\n    labels[chosen] = -100",
        "labels = ids.masked_fill(chosen, -100)\n    ids[chosen & (how < 0.8)] = MASK",
        "labels = torch.where(chosen, -100, ids)\n    ids = ids.masked_fill(chosen, mask_id)",
    ],
)
def test_labels_of_visible_ids(body: str) -> None:
    assert kinds(MASKED.format(body)) == {"visible labels"}


@pytest.mark.parametrize(
    "body",
    [
        "labels = ids.clone()\n    ids[chosen] = MASK\n    labels[~chosen] = -100",
        "inputs = ids.masked_fill(chosen, MASK)\n    labels = ids.masked_fill(~chosen, -100)",
        "labels = torch.where(chosen, ids, -100)\n    ids = torch.where(chosen, MASK, ids)",
        "shown = ids.clone()\n    shown[chosen] = MASK\n    labels = ids\n    ids = shown",
    ],
)
def test_labels_of_hidden_ids(body: str) -> None:
    assert not kinds(MASKED.format(body))


@pytest.mark.parametrize(
    "line",
    [
        "chosen = torch.rand(ids.shape) > 0.15",
        "chosen = torch.rand_like(ids.float()) >= prob",
        "chosen = (torch.rand(ids.shape) > prob) & (ids != PAD)",
    ],
)
def test_tokens_that_are_mostly_masked(line: str) -> None:
    text = f"def mask(ids, prob=0.15):\n    {line}\n    ids[chosen] = MASK\n    return ids"
    assert kinds(text) == {"mostly masked"}


@pytest.mark.parametrize(
    "line",
    [
        "chosen = torch.rand(ids.shape) < 0.15",
        "chosen = torch.rand(ids.shape) > 0.85",
        "chosen = scores > 0.15",
    ],
)
def test_tokens_of_which_few_are_masked(line: str) -> None:
    text = f"def mask(ids, prob=0.15):\n    {line}\n    ids[chosen] = MASK\n    return ids"
    assert not kinds(text)


@pytest.mark.parametrize(
    "text",
    [
        "ids = [BOS] + words\nlabels = tags + [IGNORE]",
        "tokens = [CLS] + [w + 2 for w in words]\ntag_ids = [t + 1 for t in tags] + [-100]",
        "input_ids = words + [EOS]\nlabels = [-100] + tags",
    ],
)
def test_labels_that_stand_behind_their_tokens(text: str) -> None:
    assert kinds(text) == {"labels behind"}


@pytest.mark.parametrize(
    "text",
    [
        "ids = [BOS] + words\nlabels = [IGNORE] + tags",
        "ids = [CLS] + words + [SEP]\nlabels = [-100] + tags + [-100]",
        "x = [BOS] + words\ny = words + [EOS]",
    ],
)
def test_labels_that_stand_beside_their_tokens(text: str) -> None:
    assert not kinds(text)
