from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from data_kinds import HEALTHY, Pictures, checked, flipped, pictures, training
from torch import Tensor
from torch.utils.data import DataLoader, get_worker_info, random_split

from holter.record.findings import Confidence, Finding

_NUMBERS = np.random.default_rng(0)


@pytest.mark.parametrize("kind", HEALTHY)
def test_says_nothing_of_healthy_data(kind: str, tmp_path: Path) -> None:
    assert checked("augmentation", HEALTHY[kind](), tmp_path / "run").findings == ()


@pytest.mark.parametrize(
    ("kind", "exception"),
    [
        ("denoising", "random-task"),
        ("two_views", "random-task"),
        ("made_on_the_fly", "drawn-again"),
    ],
)
def test_notes_what_is_random_by_design(kind: str, exception: str, tmp_path: Path) -> None:
    said = checked("augmentation", HEALTHY[kind](), tmp_path / "run")
    (normal,) = said.normal
    assert normal.rule == "augmented-validation"
    assert normal.exception == exception


def test_needs_positions(tmp_path: Path) -> None:
    said = checked("augmentation", HEALTHY["streams"](), tmp_path / "run")
    assert len(said.not_examined) == 2
    assert "fetched again" in said.not_examined[0].because


@pytest.mark.parametrize(
    "change",
    [
        flipped,
        lambda x: x + torch.randn_like(x) * 0.1,
        lambda x: x.roll(int(torch.randint(-2, 3, ())), -1),
        lambda x: x * torch.rand(()),
        lambda x: x[:, : int(torch.randint(4, 8, ()))],
    ],
    ids=["flip", "noise", "shift", "brightness", "crop"],
)
def test_finds_augmentation_of_validation(change: Any, tmp_path: Path) -> None:
    torch.manual_seed(0)
    base, y = torch.rand(10, 1, 8, 8), torch.randint(10, (600,))
    x = base[y] + 0.3 * torch.rand(600, 1, 1, 1) + 0.3 * torch.rand(600, 1, 8, 8)
    train, valid = random_split(Pictures(x, y, change), [500, 100])
    setup = training([(x[:8], y[:8])])
    setup = type(setup)(
        setup.models,
        setup.phases,
        setup.train,
        loaders={"train": DataLoader(train, 8), "valid": DataLoader(valid, 8)},
    )
    (finding,) = checked("augmentation", setup, tmp_path / "run").findings
    assert finding.rule == "augmented-validation"
    assert finding.confidence is Confidence.LIKELY


def test_data_that_is_written_into_is_a_hint(tmp_path: Path) -> None:
    class Fading(Pictures):
        def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
            self.x[index] *= 0.9
            return self.x[index], self.y[index]

    torch.manual_seed(0)
    x, y = pictures()
    setup = training(Pictures(x[:500], y[:500]), Fading(x[500:], y[500:]))
    (finding,) = checked("augmentation", setup, tmp_path / "run").findings
    assert finding.confidence is Confidence.HINT
    assert "write into" in finding.fix


class OwnNumbers(Pictures):
    """Noise from a generator that is made once."""

    def __init__(self) -> None:
        super().__init__(*pictures(100))
        self.numbers = np.random.default_rng(0)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.x[index] + float(self.numbers.normal()), self.y[index]


class NumbersOfTheModule(Pictures):
    def __init__(self) -> None:
        super().__init__(*pictures(100))

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.x[index] + float(_NUMBERS.normal()), self.y[index]


class NumbersOfNumpy(NumbersOfTheModule):
    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.x[index] + float(np.random.normal()), self.y[index]


def _by_worker_alone(worker: int) -> None:
    np.random.seed(worker)


def _as_documented(_: int) -> None:
    np.random.seed(torch.initial_seed() % 2**32)


def _made_anew(_: int) -> None:
    worker: Any = get_worker_info()
    worker.dataset.numbers = np.random.default_rng(torch.initial_seed())


def found(data: Pictures, folder: Path, **how: Any) -> tuple[Finding, ...]:
    torch.manual_seed(0)
    setup = training([(torch.rand(8, 1, 8, 8), torch.zeros(8, dtype=torch.long))])
    loaders = {"train": DataLoader(data, 8, **how)}
    setup = type(setup)(setup.models, setup.phases, setup.train, loaders=loaders)
    return checked("augmentation", setup, folder / "run").findings


@pytest.mark.parametrize(
    ("data", "how", "where"),
    [
        (OwnNumbers, {"num_workers": 2}, "in all workers and in every epoch"),
        (NumbersOfTheModule, {"num_workers": 2}, "in all workers and in every epoch"),
        (OwnNumbers, {"num_workers": 2, "persistent_workers": True}, "in all workers:"),
        (OwnNumbers, {"num_workers": 1}, "identical in every epoch"),
        (
            NumbersOfNumpy,
            {"num_workers": 2, "worker_init_fn": _by_worker_alone},
            "identical in every epoch",
        ),
    ],
)
def test_finds_workers_that_repeat_one_another(
    data: type, how: dict[str, Any], where: str, tmp_path: Path
) -> None:
    (finding,) = found(data(), tmp_path, **how)
    assert finding.rule == "identical-augmentation"
    assert finding.confidence is Confidence.CERTAIN
    assert where in finding.summary


@pytest.mark.parametrize(
    ("data", "how"),
    [
        (OwnNumbers, {}),
        (NumbersOfNumpy, {"num_workers": 2}),
        (NumbersOfNumpy, {"num_workers": 2, "worker_init_fn": _as_documented}),
        (OwnNumbers, {"num_workers": 2, "worker_init_fn": _made_anew}),
    ],
)
def test_workers_of_different_seeds_are_fine(
    data: type, how: dict[str, Any], tmp_path: Path
) -> None:
    assert found(data(), tmp_path, **how) == ()
