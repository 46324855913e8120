"""Packing many values into one buffer."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from holter.stats import pack


def test_mixed_shapes_and_dtypes_come_back_in_order():
    values = [
        torch.tensor(1.5),
        torch.tensor([2.0, 3.0], dtype=torch.float64),
        torch.zeros(0),
        torch.tensor([True, False]),
        torch.tensor([[4.0], [5.0]], dtype=torch.bfloat16),
    ]
    packed = pack(values)
    assert len(packed.buffers) == 1
    assert [each.tolist() for each in packed.unpack()] == [[1.5], [2, 3], [], [1, 0], [4, 5]]


def test_nan_and_infinities_survive():
    (back,) = pack([torch.tensor([float("nan"), float("inf"), -float("inf")])]).unpack()
    np.testing.assert_array_equal(back, np.array([np.nan, np.inf, -np.inf], np.float32))


def test_a_packed_value_does_not_follow_its_source():
    source = torch.ones(3)
    packed = pack([source, torch.zeros(1)])
    source.zero_()
    assert packed.unpack()[0].tolist() == [1, 1, 1]


def test_one_value_does_not_follow_its_source_either():
    source = torch.ones(3)
    packed = pack([source])
    source.zero_()
    assert packed.unpack()[0].tolist() == [1, 1, 1]


def test_nothing_to_pack():
    assert pack([]).unpack() == []


def test_no_graph_is_kept():
    packed = pack([torch.ones(2, requires_grad=True) * 2])
    assert not packed.buffers[0].requires_grad


@settings(deadline=None, max_examples=40)
@given(st.lists(st.lists(st.floats(width=32), max_size=5), max_size=8))
def test_round_trip(lists):
    back = pack([torch.tensor(each, dtype=torch.float32) for each in lists]).unpack()
    assert len(back) == len(lists)
    for want, got in zip(lists, back, strict=True):
        np.testing.assert_array_equal(got, np.array(want, np.float32))
