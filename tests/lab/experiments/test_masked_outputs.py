"""Outputs with a mask: a constant far beyond the other values says nothing about their spread."""

import pytest
import torch

from holter.lab.experiments._probing.probe import difference, rounding, spread


@pytest.mark.parametrize("mask", [-1e9, torch.finfo(torch.float32).min, float("-inf")])
def test_a_mask_does_not_hide_changes(mask: float) -> None:
    scores = torch.randn(6, 6, generator=torch.Generator().manual_seed(0))
    masked = scores.masked_fill(torch.eye(6, dtype=torch.bool), mask)
    assert spread(masked) == pytest.approx(1.0, rel=0.5)
    assert rounding(masked, masked) < 1e-5
    assert float(difference(masked, masked + 0.1).max()) > 0.05


def test_large_values_that_differ_are_no_mask() -> None:
    values = torch.tensor([0.1, -0.2, 0.3, 4e7, -9e7])
    assert spread(values) > 1e7


def test_outputs_that_are_all_zero_have_a_spread() -> None:
    assert spread(torch.zeros(3)) == 1.0
    assert rounding(torch.zeros(3), torch.zeros(3)) < 1e-5
