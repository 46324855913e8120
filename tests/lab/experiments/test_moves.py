"""Flips and rotations between versions of a sample, and the experiment that compares them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from data_kinds import training
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from holter.lab.experiments._samples.moves import IDENTITY, Pair, move, moves, pair_of
from holter.lab.running import run
from holter.lab.setup import Roles
from holter.record import Run
from holter.record.signals import REFETCH_JUDGED, REFETCH_TORN

NUMBERS = np.random.default_rng(0)
FLIPS: Mapping[str, Callable[[Any], Any]] = {
    IDENTITY: lambda made: made,
    "left-right flip": lambda made: np.flip(made, -1),
    "up-down flip": lambda made: np.flip(made, -2),
    "rotation by 180 degrees": lambda made: np.rot90(made, 2, (-2, -1)),
}
TURNS: Mapping[str, Callable[[Any], Any]] = {
    "rotation by 90 degrees": lambda made: np.rot90(made, 1, (-2, -1)),
    "rotation by 270 degrees": lambda made: np.rot90(made, 3, (-2, -1)),
    "transposition": lambda made: made.swapaxes(-1, -2),
    "anti-transposition": lambda made: np.rot90(made, 2, (-2, -1)).swapaxes(-1, -2),
}


def image(*shape: int) -> Any:
    return NUMBERS.normal(size=shape)


def mask(size: int = 40) -> Any:
    rows, columns = np.mgrid[:size, :size]
    return ((rows - 9) ** 2 + (columns - 14) ** 2 < 40).astype(np.int64) + 2 * (columns > 33)


def pair(given: Any, target: Any) -> Pair:
    made = pair_of(given, target)
    assert made is not None
    return made


@pytest.mark.parametrize("name", [*FLIPS, *TURNS])
@pytest.mark.parametrize("size", [4, 24, 100, 101])
def test_moves_of_square_images(name: str, size: int) -> None:
    turn = {**FLIPS, **TURNS}[name]
    one = image(3, size, size)
    assert move(pair(one, one).input, pair(turn(one), one).input) == name


@pytest.mark.parametrize("name", FLIPS)
def test_moves_of_images_that_are_not_square(name: str) -> None:
    one, target = image(3, 30, 50), image(30, 50)
    assert move(pair(one, target).input, pair(FLIPS[name](one), target).input) == name
    assert move(pair(one, target).target, pair(one, FLIPS[name](target)).target) == name


@pytest.mark.parametrize("name", FLIPS)
@pytest.mark.parametrize(
    "change",
    [
        lambda made: made + 0.2 * image(*made.shape),
        lambda made: 0.5 * made + 3,
        lambda made: made * np.asarray([0.5, 1, 2])[:, None, None] + 0.1 * image(*made.shape),
    ],
    ids=["noise", "brightness", "colours"],
)
def test_photometric_changes(name: str, change: Callable[[Any], Any]) -> None:
    one, target = image(3, 32, 32), mask(32)
    assert move(pair(one, target).input, pair(change(FLIPS[name](one)), target).input) == name


@pytest.mark.parametrize("shift", [3, 8, 16])
def test_a_roll_is_no_symmetry(shift: int) -> None:
    one = image(1, 32, 32)
    assert move(pair(one, one).input, pair(np.roll(one, shift, -1), one).input) is None


def test_what_a_symmetry_does_not_change_is_not_judged() -> None:
    half = image(1, 32, 16)
    faces = np.concatenate([half, half[..., ::-1]], axis=-1)
    noisy = faces + 0.05 * image(1, 32, 32)
    for other in (faces, faces[..., ::-1], noisy):
        assert move(faces, other) is None
    assert move(np.ones((1, 8, 8)), np.ones((1, 8, 8))) is None
    assert move(np.full((1, 8, 8), np.nan), image(1, 8, 8)) is None
    assert move(image(1, 8, 8), image(1, 8, 8)) is None  # another image


@pytest.mark.parametrize("name", [*FLIPS, *TURNS])
@pytest.mark.parametrize("size", [40, 64])
def test_masks(name: str, size: int) -> None:
    turn = {**FLIPS, **TURNS}[name]
    given, classes = image(3, size, size), mask(size)
    hot = np.eye(4)[classes].transpose(2, 0, 1)
    for target in (classes, classes[None], classes == 1, classes.astype(np.uint8), hot):
        assert moves(pair(given, target), pair(turn(given), turn(target))) == (
            [] if name == IDENTITY else [(name, name)]
        )
    last = np.moveaxis(turn(hot), 0, -1)  # channels last
    images = [np.moveaxis(each, 0, -1) for each in (given, turn(given))]
    one, other = pair(images[0], np.moveaxis(hot, 0, -1)), pair(images[1], last)
    assert move(one.target, other.target) == name


def test_super_resolution() -> None:
    large = image(3, 48, 64)
    small = large.reshape(3, 24, 2, 32, 2).mean((2, 4))
    flip = FLIPS["left-right flip"]
    one = pair(small, large)
    assert moves(one, pair(flip(small), flip(large))) == [("left-right flip",) * 2]
    assert moves(one, pair(flip(small), large)) == [("left-right flip", IDENTITY)]
    assert moves(one, pair(small, flip(large))) == [(IDENTITY, "left-right flip")]


def test_exchanged_key_points_and_signs() -> None:
    given = image(3, 32, 32)
    flip = FLIPS["left-right flip"]
    for target, changed in (
        (points := np.exp(3 * image(2, 32, 32)), flip(points)[::-1]),
        (flow := image(2, 32, 32), flip(flow) * np.asarray([-1, 1])[:, None, None]),
    ):
        assert moves(pair(given, target), pair(flip(given), changed)) == [("left-right flip",) * 2]


@pytest.mark.parametrize(
    ("given", "target"),
    [
        ((3, 32, 32), ()),
        ((3, 32, 32), (10,)),
        ((3, 32, 32), (3, 24, 24)),
        ((3, 32, 32), (3, 16, 32)),
        ((96, 7), (24, 7)),
        ((32, 3), (32, 3)),
        ((100,), (100,)),
    ],
)
def test_shapes_that_do_not_match(given: tuple[int, ...], target: tuple[int, ...]) -> None:
    assert pair_of(image(*given), image(*target)) is None


class Scenes(Dataset):
    """Images with masks; `change` gets both."""

    def __init__(self, change: Callable[[Tensor, Tensor], Any], channels: int = 3) -> None:
        torch.manual_seed(0)
        self.images, self.change = torch.rand(40, channels, 16, 16), change

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> Any:
        image = self.images[index]
        return self.change(image, (image[:1] > 0.6).float())


def flipped(*made: Tensor) -> Any:
    made = tuple(each.flip(-1) for each in made) if torch.rand(()) < 0.5 else made
    return made if len(made) > 1 else made[0]


def fetched(data: Dataset, folder: Path, roles: Roles | None = None, **options: Any) -> Run:
    setup = training([(torch.rand(8, 3, 16, 16), torch.zeros(8))], None, nn.Conv2d(3, 1, 1))
    loaders = {"train": DataLoader(data, 8)}
    setup = type(setup)(setup.models, setup.phases, setup.train, loaders=loaders, roles=roles)
    return run("augmentation", setup, folder / "run", **options)


@pytest.mark.parametrize(
    ("change", "share"),
    [
        (lambda image, mask: (flipped(image), mask), 1.0),
        (lambda image, mask: (image, flipped(mask)), 1.0),
        (lambda image, mask: (flipped(image), flipped(mask)), 0.67),
        (lambda image, mask: {"image": flipped(image), "mask": mask}, 1.0),
        (lambda image, mask: (flipped(image), image), 1.0),  # a target of the same shape
        (flipped, 0.0),
    ],
    ids=["image", "mask", "independent", "dict", "same shape", "both"],
)
def test_share_of_torn_pairs(
    change: Callable[[Tensor, Tensor], Any], share: float, tmp_path: Path
) -> None:
    made = fetched(Scenes(change), tmp_path)
    assert made[REFETCH_TORN]["train"].values[-1] == pytest.approx(share, abs=0.2)
    assert made[REFETCH_JUDGED]["train"].values[-1] >= 20


@pytest.mark.parametrize(
    "change",
    [
        lambda image, mask: (image, mask),
        lambda image, mask: (image + torch.randn(()), mask),
        lambda image, mask: (flipped(image), flipped(image)),  # two views
        lambda image, _: (flipped(image), 1),
        lambda image, mask: (flipped(image), torch.ones_like(mask)),
    ],
    ids=["nothing moves", "brightness", "views", "classes", "empty masks"],
)
def test_nothing_to_judge(change: Callable[[Tensor, Tensor], Any], tmp_path: Path) -> None:
    made = fetched(Scenes(change), tmp_path)
    assert REFETCH_TORN not in made
    assert REFETCH_JUDGED not in made


def test_roles_tell_targets_from_views(tmp_path: Path) -> None:
    data = Scenes(lambda image, _: (flipped(image), flipped(image), 7))
    made = fetched(data, tmp_path, Roles("[1]", ("[0]",)))
    assert made[REFETCH_TORN]["train"].values[-1] > 0.4


def test_too_few_pairs(tmp_path: Path) -> None:
    data = Scenes(lambda image, mask: (flipped(image), mask))
    assert REFETCH_TORN not in fetched(data, tmp_path, seconds=0.0)
