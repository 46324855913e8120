"""Statistics of tensors against a slow oracle in float64."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from holter.record.signals.histograms import BINS, EXPONENTS, LOWEST, NONFINITE_BIN, ZERO_BIN
from holter.watching.stats.summary import (
    Stat,
    difference,
    histogram,
    norms,
    summarise,
)


def oracle(tensor):
    """Norm, largest magnitude, non-finite and zero elements, in plain float64."""
    dense = tensor.detach().to_dense() if tensor.is_sparse else tensor.detach()
    kind = torch.complex128 if dense.is_complex() else torch.float64
    values = dense.to(kind).numpy().ravel()
    sizes = np.abs(values)
    return [
        math.sqrt(math.fsum(each * each for each in sizes)) if np.isfinite(sizes).all() else None,
        (np.nan if np.isnan(sizes).any() else sizes.max()) if sizes.size else 0.0,
        float((~np.isfinite(values)).sum()),
        float((values == 0).sum()),
    ]


def agrees(tensor, row=None):
    row = summarise([tensor])[0] if row is None else row
    norm, absmax, nonfinite, zeros = oracle(tensor)
    if norm is None:
        assert not torch.isfinite(row[Stat.NORM])
    else:
        assert float(row[Stat.NORM]) == pytest.approx(norm, rel=2e-3 if norm < 1e-37 else 1e-5)
        assert float(norms([tensor])[0]) == float(row[Stat.NORM])
    assert float(row[Stat.ABSMAX]) == pytest.approx(absmax, rel=1e-6, nan_ok=True)
    assert float(row[Stat.NONFINITE]) == nonfinite
    assert float(row[Stat.ZEROS]) == zeros


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_every_dtype_agrees_with_the_oracle(dtype):
    torch.manual_seed(1)
    tensor = torch.randn(37, 11).to(dtype)
    tensor[3, 4] = 0
    agrees(tensor)
    assert summarise([tensor]).dtype == torch.float32


def test_half_precision_norm_does_not_overflow():
    tensor = torch.full((1_000_000,), 300.0, dtype=torch.float16)
    row = summarise([tensor])[0]
    assert float(row[Stat.NORM]) == pytest.approx(300.0 * 1000, rel=1e-3)
    assert float(row[Stat.NONFINITE]) == 0


def test_mixed_dtypes_keep_their_order():
    tensors = [
        torch.full((4,), 2.0, dtype=torch.bfloat16),
        torch.full((9,), 1.0),
        torch.full((1,), 5.0, dtype=torch.float64),
        torch.full((16,), 0.5, dtype=torch.float16),
    ]
    assert norms(tensors).tolist() == [4.0, 3.0, 5.0, 2.0]
    for tensor, row in zip(tensors, summarise(tensors), strict=True):
        agrees(tensor, row)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.zeros(0),
        torch.zeros(3, 0),
        torch.tensor(-7.0),
        torch.zeros(5, 5),
        torch.arange(12.0).reshape(3, 4).t(),
        torch.arange(40.0)[::7],
        torch.ones(1).expand(6),
        torch.tensor([3 + 4j, 0, 1j]),
        torch.tensor([3 + 4j, 0, 1j]).conj(),
        torch.tensor([-1.0, 0.0, -0.0]),
    ],
    ids=["empty", "empty 2-d", "0-d", "zeros", "transposed", "strided", "expanded", "complex",
         "conjugated", "negative zero"],
)  # fmt: skip
def test_shapes_and_kinds(tensor):
    agrees(tensor)


def test_sparse_counts_what_is_not_stored_as_zero():
    embedding = torch.nn.Embedding(10, 3, sparse=True)
    embedding(torch.tensor([1, 1, 4])).sum().backward()
    gradient = embedding.weight.grad
    assert gradient.is_sparse
    agrees(gradient)
    assert float(summarise([gradient])[0, Stat.ZEROS]) == 24


@pytest.mark.parametrize("value", [1e20, -3e37, 1e-20, 1e-25, 1e-38])
def test_squares_that_do_not_fit_float32(value):
    agrees(torch.full((7,), value))
    agrees(torch.tensor([value, value / 2, 0.0]))


def test_mending_one_norm_leaves_the_others():
    assert norms([torch.ones(4), torch.full((4,), 1e30), torch.zeros(3)]).tolist() == [
        2.0,
        pytest.approx(2e30),
        0.0,
    ]


def test_nonfinite_elements_are_counted():
    tensor = torch.tensor([1.0, math.nan, math.inf, -math.inf, 0.0])
    row = summarise([tensor])[0]
    assert row[Stat.NONFINITE] == 3
    assert row[Stat.ZEROS] == 1
    assert torch.isnan(row[Stat.NORM])
    infinite = summarise([torch.tensor([1.0, -math.inf])])[0]
    assert torch.isinf(infinite[Stat.NORM])
    assert infinite[Stat.ABSMAX] == math.inf


def test_no_tensors():
    assert summarise([]).shape == (0, len(Stat))
    assert norms([]).shape == (0,)
    assert difference([], []).shape == (0, 3)


@settings(deadline=None, max_examples=80)
@given(
    hnp.arrays(
        np.float32,
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=6),
        elements=st.floats(width=32, allow_nan=True, allow_infinity=True, allow_subnormal=False),
    )
)
def test_any_float32_array_agrees_with_the_oracle(array):
    tensor = torch.from_numpy(array.copy())
    norm = oracle(tensor)[0]
    if norm is None or norm < 3.4e38:
        agrees(tensor)


def test_nothing_is_changed_and_nothing_tracked():
    tensor = torch.randn(4, requires_grad=True)
    before = tensor.detach().clone()
    assert not summarise([tensor]).requires_grad
    assert not norms([tensor]).requires_grad
    assert torch.equal(tensor, before)
    assert tensor.grad is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_difference(dtype):
    before = torch.tensor([3.0, 4.0, 1.0, 0.0]).to(dtype)
    after = torch.tensor([3.0, 4.0, 3.0, 0.0]).to(dtype)
    change, old, unchanged = difference([before], [after])[0].tolist()
    assert (change, old, unchanged) == (2.0, pytest.approx(math.sqrt(26), rel=1e-3), 3.0)


def test_difference_of_several_kinds_at_once():
    before = [torch.tensor(2.0), torch.tensor([3 + 4j, 0]), torch.zeros(0)]
    after = [torch.tensor(2.5), torch.tensor([3 + 4j, 1j]), torch.zeros(0)]
    assert difference(before, after).tolist() == [[0.5, 2.0, 0.0], [1.0, 5.0, 1.0], [0.0, 0.0, 0.0]]


def test_difference_sees_nan():
    change, _, unchanged = difference([torch.ones(2)], [torch.tensor([1.0, math.nan])])[0]
    assert torch.isnan(change)
    assert unchanged == 1


def test_histogram_by_powers_of_two():
    values = torch.tensor([0.0, -0.0, 1.0, -1.5, 2.0, 3.99, 2.0**-60, 1e30, math.nan, -math.inf])
    sparse = torch.tensor([0.0, 4.0, 0.0, 5.0] + [0.0] * 6).to_sparse()
    counts = histogram([values, values.double(), torch.zeros(0), sparse])
    expected = torch.zeros(BINS, dtype=torch.int64)
    expected[ZERO_BIN], expected[NONFINITE_BIN] = 2, 2
    expected[-LOWEST], expected[1 - LOWEST] = 2, 2  # from 1 up to 2, from 2 up to 4
    expected[0], expected[EXPONENTS - 1] = 1, 1  # what lies outside is in the outermost bins
    assert counts[0].tolist() == counts[1].tolist() == expected.tolist()
    assert counts[2].sum() == 0
    assert counts[3][ZERO_BIN] == 8
    assert counts[3][2 - LOWEST] == 2
    assert histogram([]).shape == (0, BINS)
