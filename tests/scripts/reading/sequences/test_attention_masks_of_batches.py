"""Batches that are given without their attention mask."""

import pytest

from tests.scripts.reading.found import kinds

BERT = """
from transformers import AutoModel, DataCollatorWithPadding
model = AutoModel.from_pretrained("bert-base-uncased").to(device)
collate = DataCollatorWithPadding(tokenizer)
for batch in loader:
    loss = model({given}).loss
"""


@pytest.mark.parametrize(
    "given",
    ['input_ids=batch["input_ids"], labels=batch["labels"]', "input_ids=batch.input_ids",
     'input_ids=batch["input_ids"], token_type_ids=batch["token_type_ids"]'],
)  # fmt: skip
def test_batches_without_their_mask(given: str) -> None:
    assert "dropped mask of batch" in kinds(BERT.format(given=given))


@pytest.mark.parametrize(
    "given",
    ["**batch", 'input_ids=ids, attention_mask=batch["attention_mask"]',
     "input_ids=ids, **rest"],
)  # fmt: skip
def test_batches_with_their_mask(given: str) -> None:
    assert "dropped mask of batch" not in kinds(BERT.format(given=given))
