"""Vocabularies of held-out texts."""

import pytest

from tests.scripts.reading.found import kinds


@pytest.mark.parametrize(
    "call",
    [
        "build_vocab(train_rows + val_rows + test_rows)",
        "make_vocab(train_texts + test_texts, 100)",
        "tokenizer.fit_on_texts(np.concatenate([x_train, x_test]))",
        "build_vocab_from_iterator(chain(train_iter, test_iter))",
    ],
)
def test_vocabularies_of_held_out_texts(call: str) -> None:
    assert "vocabulary of all" in kinds(f"vocab = {call}")


@pytest.mark.parametrize("call", ["build_vocab(train_rows)", "build_vocab(train_a + train_b)",
                                  "encode(train_rows + test_rows, vocab)"])  # fmt: skip
def test_vocabularies_of_training_texts(call: str) -> None:
    assert "vocabulary of all" not in kinds(f"vocab = {call}")
