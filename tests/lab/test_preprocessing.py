"""Two preprocessing paths on the same samples: the first difference, and what may cause it."""

import random

import numpy as np
import pytest
import torch

import holter

SAMPLES = [np.random.default_rng(n).integers(0, 256, (3, 6, 5)).astype(np.uint8) for n in range(4)]


def as_float(sample):
    return torch.from_numpy(sample).float() / 255


@pytest.mark.parametrize(
    ("second", "what", "hint"),
    [
        (lambda s: torch.from_numpy(s).float(), "values", "255 times the first"),
        (lambda s: (as_float(s) - 0.5) / 0.25, "values", "4 times the first - 2"),
        (lambda s: as_float(s).flip(0), "values", "RGB and BGR"),
        (lambda s: as_float(s).permute(1, 2, 0), "shape", "channels last"),
        (lambda s: as_float(s).reshape(3, 30), "shape", "another arrangement"),
        (lambda s: as_float(s)[:, :4], "shape", ""),
        (lambda s: as_float(s).double(), "dtype", ""),
        (lambda s: as_float(s).bfloat16(), "dtype", ""),
        (lambda s: as_float(s).half().numpy(), "dtype", ""),
        (lambda s: {"image": as_float(s)}, "kinds", ""),
        (lambda s: "text", "kinds", ""),
        (lambda s: as_float(s) + torch.linspace(0, 1, 5), "values", ""),
    ],
)
def test_the_first_difference_is_shown(second, what, hint):
    found = holter.compare_preprocessing(as_float, second, SAMPLES)
    assert (found.samples, found.differing) == (4, 4)
    assert found.first_difference.sample == 0
    assert found.first_difference.what == what
    assert hint in found.first_difference.hint
    assert str(found.first_difference) in repr(found)


def test_the_same():
    found = holter.compare_preprocessing(as_float, lambda sample: as_float(sample).numpy(), SAMPLES)
    assert found.is_same
    assert repr(found) == "both give the same for all 4 samples"


def test_keys_lengths_and_places():
    first = lambda n: {"x": [n, n + 1], "mask": torch.ones(2, 3)}  # noqa: E731
    compare = holter.compare_preprocessing
    found = compare(first, lambda n: {"x": [n, n + 1]}, [1]).first_difference
    assert found.what == "keys"
    found = compare(first, lambda n: {"x": [n], "mask": torch.ones(2, 3)}, [1]).first_difference
    assert (found.what, found.path) == ("length", "['x']")

    def third(n):
        mask = torch.ones(2, 3)
        mask[1, 2] = 0.5
        return {"x": [n, n + 1], "mask": mask}

    found = compare(first, third, [1]).first_difference
    assert (found.path, found.hint) == ("['mask'][1, 2]", "1 of 6 values differ, by up to 0.5")


def test_units_in_the_last_place():
    nearby = lambda s: torch.nextafter(as_float(s), torch.tensor(2.0))  # noqa: E731
    found = holter.compare_preprocessing(as_float, nearby, SAMPLES)
    assert "(1 units in the last place)" in found.first_difference.hint
    assert holter.compare_preprocessing(as_float, nearby, SAMPLES, ulps=1).is_same


def test_only_some_samples_differ():
    clipped = lambda s: np.minimum(s, 254)  # noqa: E731
    samples = [np.full((2, 2), 10, np.uint8), np.full((2, 2), 255, np.uint8)]
    found = holter.compare_preprocessing(lambda s: s, clipped, samples)
    assert (found.differing, found.first_difference.sample) == (1, 1)
    assert "255, range 255 to 255" in found.first_difference.first


def test_random_augmentation_gets_the_same_numbers_and_leaves_the_generators_alone():
    def noisy(sample):
        return as_float(sample) + torch.rand(()) + random.random() + np.random.rand()

    torch.manual_seed(0)
    random.seed(0)
    before = torch.get_rng_state(), random.getstate()
    found = holter.compare_preprocessing(noisy, noisy, SAMPLES)
    assert found.is_same
    assert not found.repeatable
    assert torch.equal(torch.get_rng_state(), before[0])
    assert random.getstate() == before[1]


def test_functions_that_write_into_their_sample():
    def in_place(sample):
        sample //= 2
        return sample

    kept = SAMPLES[0].copy()
    assert holter.compare_preprocessing(in_place, in_place, SAMPLES).is_same
    assert (SAMPLES[0] == kept).all()


def test_nothing_to_compare_and_nan():
    assert repr(holter.compare_preprocessing(as_float, as_float, [])) == "no samples to compare"
    nan = lambda _: torch.tensor([float("nan"), 1.0])  # noqa: E731
    assert holter.compare_preprocessing(nan, nan, [0]).is_same
    found = holter.compare_preprocessing(nan, lambda _: torch.tensor([0.0, 1.0]), [0])
    assert "nan, range 1 to 1, 1 not finite" in found.first_difference.first
