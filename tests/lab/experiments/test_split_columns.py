"""Columns that predict targets in one split only, and windows that both splits share."""

import numpy as np
import pytest
from torch.utils.data import DataLoader, Dataset

from holter.lab.experiments._samples.datasets import Served, Split
from holter.lab.experiments._samples.parts import sample_of
from holter.lab.experiments._samples.rewritten import rewritten
from holter.lab.experiments._samples.transfer import transfer
from holter.lab.experiments._samples.windows import overlapping_windows

DRAW = np.random.default_rng(0)


def split(name: str, inputs: list[object], targets: np.ndarray) -> Split:
    pairs = zip(inputs, targets, strict=True)
    samples = tuple(sample_of(pair, index) for index, pair in enumerate(pairs))
    return Split(name, len(samples), samples, None)


def bookings(name: str, codes: np.ndarray, count: int, *, classes: bool) -> Split:
    """Samples of two parts: a category, and two numbers of which the first matters."""
    kind, numbers = DRAW.integers(8, size=count), DRAW.normal(size=(count, 2))
    aim = EFFECT[kind] + numbers[:, 0] + 0.5 * DRAW.normal(size=count)
    targets = (aim > 0).astype(np.int64) if classes else aim
    return split(name, list(zip(codes[kind], numbers, strict=True)), targets)


EFFECT = DRAW.normal(size=8) * 2
SAME, OTHER = np.arange(8), np.roll(np.arange(8), 3)


@pytest.mark.parametrize("classes", [True, False])
def test_codes_of_another_order(*, classes: bool) -> None:
    train, valid = (bookings("s", SAME, count, classes=classes) for count in (1000, 400))
    kept = transfer(train, valid)
    lost = transfer(train, bookings("s", OTHER, 400, classes=classes))
    assert kept is not None
    assert lost is not None
    assert kept.train[0] > 0.2
    assert abs(kept.train[0] - kept.valid[0]) < 4 * kept.error[0]
    assert lost.train[0] - lost.valid[0] > 6 * lost.error[0]
    assert np.abs(lost.train[1:] - lost.valid[1:]).max() < 4 * lost.error[1:].max()
    assert abs(kept.train[2]) < 0.05  # says nothing


def test_a_mean_of_labels_that_includes_the_own() -> None:
    agents, labels = DRAW.integers(300, size=900), DRAW.integers(2, size=900)
    sums = np.bincount(agents, labels, minlength=300)
    rates = sums / np.maximum(np.bincount(agents, minlength=300), 1)
    train = split("train", [np.array([rates[a], DRAW.normal()]) for a in agents], labels)
    others = DRAW.integers(300, size=400)
    inputs = [np.array([rates[a], DRAW.normal()]) for a in others]
    found = transfer(train, split("valid", inputs, DRAW.integers(2, size=400)))
    assert found is not None
    assert found.train[0] > 0.2
    assert found.valid[0] < 0.05
    assert found.train[0] - found.valid[0] > 6 * found.error[0]


def test_unknown_values_and_images_are_not_compared() -> None:
    train = bookings("train", SAME, 300, classes=False)
    unseen = transfer(train, bookings("valid", SAME + 100, 300, classes=False))
    assert unseen is not None
    assert unseen.train[0] == unseen.valid[0] == 0
    images = split(
        "train", [DRAW.normal(size=(2, 4, 4)) for _ in range(200)], DRAW.normal(size=200)
    )
    assert transfer(images, images) is None


def windows(series: np.ndarray, starts: range) -> list[object]:
    return [series[:, start : start + 64].astype(np.float32) for start in starts]


def test_windows_of_one_recording_in_both_splits() -> None:
    series = DRAW.normal(size=(3, 8000))
    all_windows = windows(series, range(0, 7900, 16))
    order = DRAW.permutation(len(all_windows))
    shuffled = [all_windows[place] for place in order]
    labels = DRAW.integers(2, size=len(order))
    found = overlapping_windows(
        split("train", shuffled[100:], labels[100:]), split("valid", shuffled[:100], labels[:100])
    )
    assert found is not None
    assert len(found) > 95
    in_time = overlapping_windows(
        split("train", all_windows[:-100], labels[100:]),
        split("valid", all_windows[-100:], labels[:100]),
    )
    assert in_time is not None
    assert len(in_time) <= 3  # at the border


def test_what_many_samples_share_is_no_window() -> None:
    template = DRAW.normal(size=40)

    def pasted() -> np.ndarray:
        signal = np.zeros(200)
        start = DRAW.integers(150)
        signal[start : start + 40] = template
        return signal

    known, asked = [pasted() for _ in range(200)], [pasted() for _ in range(60)]
    labels = np.zeros(200)
    assert overlapping_windows(split("t", known, labels), split("v", asked, labels[:60])) == ()
    rows = [np.concatenate([template, DRAW.normal(size=4)]) for _ in range(60)]
    assert overlapping_windows(split("t", rows, labels[:60]), split("v", rows, labels[:60])) == ()


def test_tokens_have_no_pieces() -> None:
    texts = [DRAW.integers(20, size=64) for _ in range(60)]
    assert overlapping_windows(*(split(n, texts, np.zeros(60)) for n in ("t", "v"))) is None


class Images(Dataset):
    """Images that are changed when they are read: in place, in a copy, or only once."""

    def __init__(self, how: str) -> None:
        self.how, self.images = how, DRAW.normal(size=(20, 3, 4))

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> np.ndarray:
        image = self.images[index] if self.how != "copy" else self.images[index].copy()
        if self.how == "once":
            np.clip(image, -1, 1, out=image)
        elif self.how == "order":
            DRAW.shuffle(image)
        else:
            image += 1
        return image


@pytest.mark.parametrize(("how", "share"), [("place", 1), ("copy", 0), ("once", 0), ("order", 0)])
def test_reading_that_changes_what_is_stored(how: str, share: float) -> None:
    images = Images(how)
    inputs = [images.images[place] for place in range(20)]
    made = split("train", inputs, np.zeros(20))
    made = Split("train", 20, made.samples, Served(images, range(20), in_order=True))
    before = images.images.copy()
    assert rewritten(DataLoader(images), made) == share
    if how == "copy":
        assert (images.images == before).all()
    assert rewritten(DataLoader(images, num_workers=2), made) is None
