"""Groups and times in both splits, and the columns that are neither."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from data_kinds import checked, training
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset, Subset, TensorDataset

from holter.diagnosis.engine import Checkup
from holter.lab.setup import Setup
from holter.record.findings import Confidence

RULE = "related-splits"


class Rows(Dataset):
    """Rows with a target, and lists beside them that it does not serve."""

    def __init__(self, x: Tensor, y: Tensor, **lists: Any) -> None:
        self.x, self.y = x, y
        vars(self).update(lists)

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.x[index], self.y[index]


class Records(Rows):
    """The same as dictionaries that name the group."""

    def __getitem__(self, index: int) -> Any:
        return {"x": self.x[index], "patient": self.patient[index], "y": self.y[index]}


def shuffled(data: Dataset, count: int, *model_and_loss: Any) -> Setup:
    order = np.random.default_rng(1).permutation(count).tolist()
    cut = int(0.75 * count)
    return training(Subset(data, order[:cut]), Subset(data, order[cut:]), *model_and_loss)


def persons() -> tuple[Tensor, Tensor, Tensor]:
    """Inputs that tell who it is, and targets that are those of the person."""
    torch.manual_seed(3)
    person = torch.arange(80).repeat_interleave(10)
    habit, kind = 2 * torch.randn(80, 6), torch.randint(3, (80,))
    return habit[person] + 0.2 * torch.randn(800, 6), kind[person], person


def in_a_list() -> Setup:
    x, y, person = persons()
    return shuffled(Rows(x, y, patient=person.tolist()), 800)


def in_a_table_of_texts() -> Setup:
    x, y, person = persons()
    names = np.array([f"p{each}" for each in person.tolist()], object)
    return shuffled(Rows(x, y, table={"visit": np.arange(800), "patient": names}), 800)


def in_the_samples() -> Setup:
    x, y, person = persons()

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return functional.cross_entropy(model(batch["x"]), batch["y"])

    return shuffled(Records(x, y, patient=person.tolist()), 800, nn.Linear(6, 3), loss)


def in_a_column() -> Setup:
    x, y, person = persons()
    return shuffled(TensorDataset(torch.cat([x, person[:, None].float()], 1), y), 800)


def of_a_number() -> Setup:
    x, _, person = persons()
    y = torch.randn(80)[person] + 0.05 * torch.randn(800)
    return shuffled(Rows(x, y[:, None], patient=person.tolist()), 800)


def a_slow_recording() -> Setup:
    """Inputs and state wander independently: only the hour relates them."""
    torch.manual_seed(5)
    x = torch.randn(1200, 8).cumsum(0) / 3
    y = (torch.randn(1200).cumsum(0) / 3 % 3 > 1.5).long()
    return shuffled(TensorDataset(x, y), 1200)


@pytest.mark.parametrize(
    ("setup", "column"),
    [
        (in_a_list, "`patient`"),
        (in_a_table_of_texts, "`patient`"),
        (in_the_samples, "`patient`"),
        (in_a_column, "column 6"),
        (of_a_number, "`patient`"),
    ],
)
def test_names_the_group(setup: Callable[[], Setup], column: str, tmp_path: Path) -> None:
    (finding,) = of_rule(checked("data", setup(), tmp_path / "run"))
    assert column in finding.summary
    assert finding.confidence is Confidence.LIKELY


def test_names_the_time(tmp_path: Path) -> None:
    (finding,) = of_rule(checked("data", a_slow_recording(), tmp_path / "run"))
    assert "in time (`position`)" in finding.summary
    assert finding.confidence is Confidence.HINT


def split_by_person() -> Setup:
    x, y, person = persons()
    data = Rows(x, y, patient=person.tolist())
    return training(Subset(data, list(range(600))), Subset(data, list(range(600, 800))))


def split_by_time() -> Setup:
    torch.manual_seed(5)
    x = torch.randn(1200, 8).cumsum(0) / 3
    y = (x[:, 0] > x[:, 0].median()).long()
    data = Rows(x, y, time=np.arange(1200.0))
    return training(Subset(data, list(range(900))), Subset(data, list(range(900, 1200))))


def unique_numbers() -> Setup:
    torch.manual_seed(2)
    y = torch.randint(3, (800,))
    x = 2 * torch.randn(3, 6)[y] + torch.randn(800, 6)
    return shuffled(Rows(x, y, identity=np.random.default_rng(0).permutation(800)), 800)


def a_category() -> Setup:
    """Twenty shops of different success: known whenever the model is used."""
    torch.manual_seed(4)
    shop = torch.randint(20, (1000,))
    x = torch.randn(1000, 6)
    y = (x[:, 0] + torch.randn(20)[shop] > 0).long()
    return shuffled(TensorDataset(torch.cat([x, shop[:, None].float()], 1), y), 1000)


def groups_without_a_part_in_it() -> Setup:
    """Persons who differ, and a task that has nothing to do with it."""
    torch.manual_seed(6)
    person = torch.arange(80).repeat_interleave(10)
    x = torch.randn(80, 6)[person] + torch.randn(800, 6)
    return shuffled(Rows(x, (x[:, 0] > 0).long(), patient=person.tolist()), 800)


def sorted_by_class() -> Setup:
    torch.manual_seed(7)
    y = torch.arange(40).repeat_interleave(20)
    return shuffled(TensorDataset(3 * torch.randn(40, 8)[y] + torch.randn(800, 8), y), 800)


def sorted_by_target() -> Setup:
    torch.manual_seed(8)
    y = torch.randn(800, 1).sort(0).values
    return shuffled(TensorDataset(torch.cat([y + 0.1 * torch.randn(800, 1), y**2], 1), y), 800)


def a_stationary_recording() -> Setup:
    torch.manual_seed(9)
    wave = (torch.arange(1300) / 5).sin() + 0.1 * torch.randn(1300)
    x = wave.unfold(0, 24, 1)[:1200]
    return shuffled(TensorDataset(x, wave[24:1224, None]), 1200)


@pytest.mark.parametrize(
    "setup",
    [
        *(split_by_person, split_by_time, unique_numbers, a_category),
        *(groups_without_a_part_in_it, sorted_by_class, sorted_by_target, a_stationary_recording),
    ],
)
def test_is_silent_on_other_columns(setup: Callable[[], Setup], tmp_path: Path) -> None:
    assert of_rule(checked("data", setup(), tmp_path / "run")) == []


def test_looked_at_what_it_is_silent_on(tmp_path: Path) -> None:
    said = checked("data", split_by_person(), tmp_path / "run")
    assert RULE in {verdict.rule for verdict in said.clear}


def of_rule(said: Checkup) -> list[Any]:
    return [finding for finding in said.findings if finding.rule == RULE]
