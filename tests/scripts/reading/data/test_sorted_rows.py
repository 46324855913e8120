"""Batches of which one part is sorted."""

import pytest

from tests.scripts.reading.found import kinds

COLLATE = """
def collate(batch):
    seqs = [encode(text) for text, _ in batch]
    {}
    labels = torch.tensor([label for _, label in batch])
    return pad(seqs), labels
"""


@pytest.mark.parametrize(
    "line",
    [
        "seqs.sort(key=len, reverse=True)",
        "seqs.sort(key=lambda s: -len(s))",
        "seqs.sort(reverse=True, key=len)",
    ],
)
def test_sequences_that_are_sorted_in_place(line: str) -> None:
    assert kinds(COLLATE.format(line)) == {"sorted alone"}


@pytest.mark.parametrize(
    "line",
    ["batch.sort(key=lambda row: len(row[0]))", "lengths = sorted(map(len, seqs))", "seqs.reverse"],
)
def test_batches_that_are_sorted_whole(line: str) -> None:
    assert "sorted alone" not in kinds(COLLATE.format(line))
