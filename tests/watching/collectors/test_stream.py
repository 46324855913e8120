"""What streams by in training, against counts made by hand."""

import itertools

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from holter import Run
from holter.record.events import LoaderSeen, PassLabels
from holter.record.signals import (
    STREAM_COLLAPSED,
    STREAM_DISTINCT,
    STREAM_IGNORED,
    STREAM_MAX,
    STREAM_MEAN,
    STREAM_MIN,
    STREAM_READ,
    STREAM_SAMPLES,
    STREAM_SEEN,
    STREAM_STD,
    STREAM_VALUES,
)
from holter.watching.collectors import stream
from holter.watching.collectors.stream_sketch import DistinctCount, RowHashes, mixed
from watching.collectors.trainings import watching


def train(path, loader, *, epochs=2, inputs=lambda batch: batch[0], steps=None):
    """Train a linear model on the inputs alone; return the run."""
    first = inputs(next(iter(loader)))
    model = nn.Linear(first[0].numel(), 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with watching(path, model, optimizer):
        for _ in range(epochs):
            for batch in itertools.islice(loader, steps):
                optimizer.zero_grad()
                model(inputs(batch).flatten(1).float()).square().mean().backward()
                optimizer.step()
    return Run.load(path)


def of(run, signal, loader="loader 0"):
    return run[signal][loader].values.tolist()


def test_counts_and_moments_of_each_pass(tmp_path):
    torch.manual_seed(0)
    x, y = 3 + 2 * torch.randn(100, 5), torch.arange(100) % 3
    x[90:] = x[:10]
    y[90:] = y[:10]
    run = train(tmp_path / "run", DataLoader(TensorDataset(x, y), 16, shuffle=True))
    assert of(run, STREAM_SAMPLES) == of(run, STREAM_READ) == [100, 100]
    assert of(run, STREAM_DISTINCT) == of(run, STREAM_SEEN) == [90, 90]
    assert of(run, STREAM_COLLAPSED) == [0, 0]
    assert of(run, STREAM_MEAN) == pytest.approx([x.mean().item()] * 2, rel=1e-5)
    assert of(run, STREAM_STD) == pytest.approx([x.std(correction=0).item()] * 2, rel=1e-5)
    assert of(run, STREAM_MIN) == pytest.approx([x.min().item()] * 2)
    assert of(run, STREAM_MAX) == pytest.approx([x.max().item()] * 2)
    assert min(of(run, STREAM_VALUES)) > 100
    assert of(run, STREAM_IGNORED) == [0, 0]
    labels = [event.what for event in run.events_of(PassLabels)]
    counts = y.bincount().tolist()
    assert [dict(told.counts) for told in labels] == [dict(enumerate(counts))] * 2


def test_new_samples_in_each_pass(tmp_path):
    class Noise(IterableDataset):
        def __iter__(self):
            return (torch.randn(4) for _ in range(24))

    run = train(tmp_path / "run", DataLoader(Noise(), 8), inputs=lambda batch: batch, epochs=3)
    assert of(run, STREAM_DISTINCT) == [24, 24, 24]
    assert of(run, STREAM_SEEN) == [24, 48, 72]
    assert run.events_of(LoaderSeen)[0].what.iterable


def test_a_pass_that_is_cut_short(tmp_path):
    data = TensorDataset(torch.randn(64, 3))
    run = train(tmp_path / "run", DataLoader(data, 8), steps=3)
    assert of(run, STREAM_SAMPLES) == [24, 24]


def test_batches_of_one_sample_repeated(tmp_path):
    data = TensorDataset(torch.randn(64, 3), torch.arange(64))

    def collate(batch):
        return batch[0][0].expand(len(batch), -1), torch.stack([label for _, label in batch])

    run = train(tmp_path / "run", DataLoader(data, 8, collate_fn=collate))
    assert of(run, STREAM_COLLAPSED) == [1, 1]
    assert of(run, STREAM_DISTINCT) == [64, 64]


def test_dict_batches_with_a_mask(tmp_path):
    rows = [
        {"input_ids": torch.randint(9, (6,)), "attention_mask": torch.tensor([1, 1, 1, 0, 0, 0])}
        for _ in range(32)
    ]
    loader = DataLoader(rows, 8)
    run = train(tmp_path / "run", loader, inputs=lambda batch: batch["input_ids"])
    assert of(run, STREAM_IGNORED) == [0.5, 0.5]
    assert STREAM_MEAN not in run


def test_workers(tmp_path):
    loader = DataLoader(TensorDataset(torch.randn(32, 3)), 8, num_workers=2)
    assert of(train(tmp_path / "run", loader, epochs=1), STREAM_DISTINCT) == [32]


def test_what_is_too_expensive_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(stream, "_ALLOWANCE", 0.0)
    monkeypatch.setattr(stream, "_PART", 0.0)
    run = train(tmp_path / "run", DataLoader(TensorDataset(torch.randn(32, 3)), 8), epochs=1)
    assert of(run, STREAM_SAMPLES) == [32]
    assert of(run, STREAM_READ) == [8]  # the first, whose cost was not known


def test_evaluation_is_not_counted(tmp_path):
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    train_loader = DataLoader(TensorDataset(torch.randn(32, 3)), 8)
    valid_loader = DataLoader(TensorDataset(torch.randn(16, 3)), 8)
    with watching(tmp_path / "run", model, optimizer):
        for (x,) in train_loader:
            model(x).square().mean().backward()
            optimizer.step()
        with torch.no_grad():
            for (x,) in valid_loader:
                model(x)
    assert list(Run.load(tmp_path / "run")[STREAM_SAMPLES]) == ["loader 0"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.uint8])
def test_a_hash_depends_on_the_row_alone(dtype):
    rows = (100 * torch.rand(40, 3, 5)).to(dtype)
    hashes = RowHashes(7)
    whole = hashes.of({0: rows})
    assert len(whole.unique()) == len(rows.flatten(1).unique(dim=0))
    assert torch.equal(hashes.of({0: rows.flip(0)[:7]}), whole.flip(0)[:7])
    assert torch.equal(hashes.of({0: rows.transpose(1, 2).contiguous().transpose(1, 2)}), whole)
    assert not torch.equal(RowHashes(8).of({0: rows}), whole)


@pytest.mark.parametrize("distinct", [3, 4000, 60_000])
def test_distinct_hashes_are_counted(distinct):
    rows = torch.arange(distinct).unsqueeze(1)
    hashes, count = mixed(RowHashes(0).of({0: rows})), DistinctCount()
    for part in np.array_split(np.concatenate([hashes, hashes]), 100):
        count.add(part)
    assert count.count == pytest.approx(distinct, rel=0 if distinct <= 4000 else 0.05)
