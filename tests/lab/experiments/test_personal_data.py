"""Contents of samples are on disk only where they were asked for."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from holter import watch
from holter.lab.running import run
from holter.lab.setup import Setup

TEXT, NUMBER = "Ada-Lovelace-93571", 0.7312845


class Records(Dataset):
    """Persons with a name and a number that no other value of the data equals."""

    def __len__(self) -> int:
        return 120

    def __getitem__(self, index: int) -> Any:
        row = torch.randn(10, generator=torch.Generator().manual_seed(index))
        row[3] = NUMBER + 1e-5 * index
        return {"name": f"{TEXT}-{index}", "x": row, "y": index % 2}


class Rows(Records):
    """The same without names: a table."""

    def __getitem__(self, index: int) -> Any:
        sample = super().__getitem__(index)
        return sample["x"], sample["y"]


def records() -> Setup:
    model = nn.Linear(10, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return functional.cross_entropy(model(batch["x"]), batch["y"])

    loader, valid = DataLoader(Records(), 20), DataLoader(Records(), 30)
    return Setup.of(model, optimizer, loss, loader, valid=valid)


def rows() -> Setup:
    model = nn.Linear(10, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    loader, valid = DataLoader(Rows(), 20), DataLoader(Rows(), 30)
    return Setup.of(model, optimizer, nn.CrossEntropyLoss(), loader, valid=valid)


def marks() -> Iterator[bytes]:
    """The contents as text, and as numbers of both widths."""
    yield TEXT.encode()
    yield from (b"0.731", b"0.732")
    for index in range(len(Records())):
        value = float(Records()[index]["x"][3])
        yield np.float32(value).tobytes()
        yield np.float64(value).tobytes()


def found(folder: Path) -> list[str]:
    contents = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert contents
    wanted = [*marks()]
    return [path.name for path, held in contents.items() if any(mark in held for mark in wanted)]


def test_data_checks_store_no_samples(tmp_path: Path) -> None:
    for name, setup in (("records", records()), ("rows", rows())):
        for experiment in ("data", "augmentation"):
            run(experiment, setup, tmp_path / f"{name} {experiment}")
    assert found(tmp_path) == []


def test_samples_are_stored_where_asked_for(tmp_path: Path) -> None:
    run("data", records(), tmp_path / "run", shown=2)
    assert found(tmp_path) == ["events.jsonl"]


def failing(folder: Path, *, samples: bool) -> None:
    model = nn.Linear(10, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with watch(model, optimizer, out=folder, samples=samples):
        for step, (inputs, targets) in enumerate(DataLoader(Rows(), 20)):
            loss = functional.cross_entropy(model(inputs), targets) * (1e39 if step > 3 else 1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def test_a_failure_stores_batches_unless_told_not_to(tmp_path: Path) -> None:
    failing(tmp_path / "without", samples=False)
    assert found(tmp_path / "without") == []
    failing(tmp_path / "with", samples=True)
    assert any(name.endswith("safetensors") for name in found(tmp_path / "with"))
