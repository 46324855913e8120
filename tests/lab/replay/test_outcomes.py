"""What the steps of a replay gave."""

import math

import pytest
import torch

from holter.lab.replay.outcomes import gradient_norm


def test_a_norm_is_finite_where_all_elements_are() -> None:
    large = torch.tensor([3e30, 4e30])
    assert gradient_norm([large, torch.zeros(2)]) == pytest.approx(5e30)
    assert gradient_norm([torch.tensor([3.0]), torch.tensor([4.0])]) == 5
    assert gradient_norm([]) == 0


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_norm_is_not_finite_where_an_element_is_not(bad: float) -> None:
    assert not math.isfinite(gradient_norm([torch.ones(3), torch.tensor([bad])]))
