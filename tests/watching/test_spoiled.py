import pytest
import torch

from holter.watching.spoiled import spoiled


def script(function):
    """Run a function that raises, and return what is seen of its variables."""
    try:
        function()
    except RuntimeError as error:
        return spoiled(error)
    return None


def test_tensors_around_the_line_that_raised_are_named_in_order():
    def fails():
        fine = torch.ones(3)
        first = torch.tensor([1.0, float("nan")])
        second = first.sum() + fine
        raise RuntimeError(str(second))

    seen = script(fails)
    assert seen.names == ("first", "second")
    assert seen.where.startswith("test_spoiled.py:")


@pytest.mark.parametrize("value", [float("-inf"), 0.0])
def test_masks_and_finite_tensors_are_not_named(value):
    def fails():
        mask = torch.full((3, 3), value)
        raise RuntimeError(str(mask.shape))

    assert script(fails) is None
