"""Packing many values into one buffer."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from holter.watching.stats import Packed


def test_mixed_shapes_and_dtypes_come_back_in_order():
    values = [
        torch.tensor(1.5),
        torch.tensor([2.0, 3.0], dtype=torch.float64),
        torch.zeros(0),
        torch.tensor([True, False]),
        torch.tensor([[4.0], [5.0]], dtype=torch.bfloat16),
    ]
    packed = Packed(values)
    assert packed.arrived
    assert [each.tolist() for each in packed.unpack()] == [[1.5], [2, 3], [], [1, 0], [4, 5]]


def test_nan_and_infinities_survive():
    (back,) = Packed([torch.tensor([float("nan"), float("inf"), -float("inf")])]).unpack()
    np.testing.assert_array_equal(back, np.array([np.nan, np.inf, -np.inf], np.float32))


def test_values_of_a_cpu_are_not_copied():
    source = torch.ones(3)
    (value,) = Packed([source]).unpack()
    assert np.shares_memory(value, source.numpy())


@pytest.mark.cuda
@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
def test_values_of_a_gpu_arrive_without_waiting_and_in_order():
    values = [torch.arange(3.0, device="cuda"), torch.ones(2), torch.tensor(7.0, device="cuda")]
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        packed = Packed(values)
        values[1].zero_()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert [each.tolist() for each in packed.unpack()] == [[0, 1, 2], [1, 1], [7]]
    assert packed.arrived


def test_nothing_to_pack():
    assert Packed([]).unpack() == []


@settings(deadline=None, max_examples=40)
@given(st.lists(st.lists(st.floats(width=32), max_size=5), max_size=8))
def test_round_trip(lists):
    back = Packed([torch.tensor(each, dtype=torch.float32) for each in lists]).unpack()
    assert len(back) == len(lists)
    for want, got in zip(lists, back, strict=True):
        np.testing.assert_array_equal(got, np.array(want, np.float32))
