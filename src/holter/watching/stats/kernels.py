"""What runs on the device: Triton's kernels, each compiled as it is first launched for a dtype."""

import torch
import triton
import triton.language as tl

KINDS = {
    torch.float32: tl.float32,
    torch.bfloat16: tl.bfloat16,
    torch.float16: tl.float16,
    torch.float64: tl.float64,
}


@triton.jit
def place(table, tensors, chunk, kind: tl.constexpr, size: tl.constexpr):
    """Whose the chunk is, where it begins, and which of its elements are the tensor's."""
    tensor = tl.load(table + tensors * 7 + chunk)
    row = table + tensor * 7
    start = (chunk - tl.load(row + 4)) * size
    low = tl.maximum(tl.load(row + 2) - start, 0).to(tl.int32)
    high = tl.minimum(tl.load(row + 3) - start, size).to(tl.int32)
    source = tl.multiple_of(tl.load(row).to(tl.pointer_type(kind)), 16) + start
    other = tl.multiple_of(tl.load(row + 1).to(tl.pointer_type(kind)), 16) + start
    return tensor, source, other, low, high


@triton.jit
def read(source, at, low, high, wide: tl.constexpr, rows: tl.constexpr, exact: tl.constexpr):
    """Rows of 16 bytes; zero where a row (if exact: an element) is not the tensor's alone."""
    begin = at + tl.arange(0, rows) * wide
    index = begin[:, None] + tl.arange(0, wide)[None, :]
    if exact:
        inside = (index >= low) & (index < high)
    else:  # the same for the whole of a row, so that it stays one load
        inside = ((begin >= low) & (begin + wide <= high))[:, None]
    return tl.load(source + index, mask=inside, other=0.0)


@triton.jit
def measure(
    source, other, low, high, divisor, least,
    mode: tl.constexpr, wide: tl.constexpr, rows: tl.constexpr, exact: tl.constexpr,
):  # fmt: skip
    """Squares, largest, non-finite, zeros and sum of a chunk.

    In mode 1 the squares and zeros are those of the change to the other chunk, and the sum is that
    of the squares before. In mode 2 elements are divided by the root of the other's, and roots that
    are less than the least are counted instead of zeros.
    """
    number: tl.constexpr = (
        tl.float64 if exact or source.dtype.element_ty == tl.float64 else tl.float32
    )
    squares = tl.zeros([rows], number)
    largest = tl.zeros([rows], number)
    total = tl.zeros([rows], number)
    zeros = tl.zeros([rows], tl.int32)
    nonfinite = tl.zeros([rows], tl.int32)
    for at in range(0, high, rows * wide):
        x = read(source, at, low, high, wide, rows, exact).to(number)
        if mode == 2:
            root = tl.sqrt(read(other, at, low, high, wide, rows, exact).to(number)) / divisor
            zeros += tl.sum((root < least).to(tl.int32), 1)
            x = x / tl.where(root < least, least, root)
        elif mode == 1:
            total += tl.sum(x * x, 1)
            x = read(other, at, low, high, wide, rows, exact).to(number) - x
            zeros += tl.sum((x == 0).to(tl.int32), 1)
        else:
            total += tl.sum(x, 1)
            largest = tl.maximum(largest, tl.max(tl.abs(x), 1))
            if exact:
                nonfinite += tl.sum(tl.where(tl.abs(x) < float("inf"), 0, 1), 1)
            zeros += tl.sum((x == 0).to(tl.int32), 1)
        squares += tl.sum(x * x, 1)
    padding = tl.cdiv(high, rows * wide) * (rows * wide) - (high - low)
    return (
        tl.sum(squares, 0).to(tl.float64),
        tl.max(largest, 0).to(tl.float64),
        tl.sum(nonfinite, 0).to(tl.float64),
        (tl.sum(zeros, 0) - padding).to(tl.float64),
        tl.sum(total, 0).to(tl.float64),
    )


@triton.jit(do_not_specialize=["tensors", "chunks", "first"])
def scan(
    table, partials, tensors, chunks, first, limits, kind: tl.constexpr, mode: tl.constexpr,
    wide: tl.constexpr, rows: tl.constexpr, steps: tl.constexpr,
):  # fmt: skip
    """A column of the partial results: what `measure` finds in one chunk."""
    chunk = first + tl.program_id(0)
    tensor, source, other, low, high = place(table, tensors, chunk, kind, wide * rows * steps)
    divisor = 1.0
    least = 0.0
    if mode == 2:
        divisor = tl.load(limits + tensor)
        least = tl.load(limits + tensors + tensor)
    ragged = (low % wide != 0) | (high % wide != 0)
    squares, largest, nonfinite, zeros, total = measure(
        source, other, low, tl.where(ragged, 0, high), divisor, least, mode, wide, rows, False
    )
    # Read again, in float64, what overflowed or vanished in float32 or is not finite.
    again = ragged | ((squares < 3e38) == 0) | ((squares < 1e-24) & (zeros < high - low))
    if mode == 1:
        again = again | ((total < 3e38) == 0) | (total < 1e-24)
    if again:
        squares, largest, nonfinite, zeros, total = measure(
            source, other, low, high, divisor, least, mode, wide, rows // 4, True
        )
    tl.store(partials + chunk, squares)
    tl.store(partials + chunks + chunk, largest)
    tl.store(partials + 2 * chunks + chunk, nonfinite)
    tl.store(partials + 3 * chunks + chunk, zeros)
    tl.store(partials + 4 * chunks + chunk, total)


@triton.jit(do_not_specialize=["chunks"])
def combine(table, partials, chunks, result, mode: tl.constexpr, block: tl.constexpr):
    """The row of one tensor, of the partial results of its chunks."""
    tensor = tl.program_id(0)
    row = table + tensor * 7
    count = tl.load(row + 5)
    partials += tl.load(row + 4)
    lane = tl.arange(0, block)
    squares = tl.zeros([block], tl.float64)
    largest = tl.zeros([block], tl.float64)
    nonfinite = tl.zeros([block], tl.float64)
    zeros = tl.zeros([block], tl.float64)
    total = tl.zeros([block], tl.float64)
    for at in range(0, count, block):
        inside = at + lane < count
        here = partials + at + lane
        squares += tl.load(here, mask=inside, other=0.0)
        largest = tl.maximum(largest, tl.load(here + chunks, mask=inside, other=0.0))
        nonfinite += tl.load(here + 2 * chunks, mask=inside, other=0.0)
        zeros += tl.load(here + 3 * chunks, mask=inside, other=0.0)
        total += tl.load(here + 4 * chunks, mask=inside, other=0.0)
    norm = tl.sqrt(tl.sum(squares, 0))
    absent = tl.load(row + 6)
    if mode == 1:
        tl.store(result + tensor * 3, norm)
        tl.store(result + tensor * 3 + 1, tl.sqrt(tl.sum(total, 0)))
        tl.store(result + tensor * 3 + 2, tl.sum(zeros, 0))
    else:
        # The maximum of a NaN and a number is the number; the norm has kept the NaN.
        tl.store(result + tensor * 5, norm)
        tl.store(result + tensor * 5 + 1, tl.where(norm >= 0, tl.max(largest, 0), norm))
        tl.store(result + tensor * 5 + 2, tl.sum(nonfinite, 0))
        tl.store(result + tensor * 5 + 3, tl.sum(zeros, 0) + absent)
        tl.store(result + tensor * 5 + 4, tl.sum(total, 0))


@triton.jit(do_not_specialize=["tensors", "first"])
def count(
    table, counts, tensors, first, kind: tl.constexpr,
    lowest: tl.constexpr, exponents: tl.constexpr,
    wide: tl.constexpr, rows: tl.constexpr, steps: tl.constexpr,
):  # fmt: skip
    """Adds the elements of one chunk to the bins of its tensor."""
    chunk = first + tl.program_id(0)
    tensor, source, _, low, high = place(table, tensors, chunk, kind, wide * rows * steps)
    ragged = (low % wide != 0) | (high % wide != 0)
    bins = tl.arange(0, 128)
    found = tl.zeros([128], tl.int32)
    for at in range(0, high, rows * wide):
        if ragged:
            x = read(source, at, low, high, wide, rows, True)
        else:
            x = read(source, at, low, high, wide, rows, False)
        if kind == tl.float64:
            power = ((x.to(tl.int64, bitcast=True) >> 52) & 2047).to(tl.int32) - 1023
        else:
            power = ((x.to(tl.float32).to(tl.int32, bitcast=True) >> 23) & 255) - 127
        which = tl.minimum(tl.maximum(power - lowest, 0), exponents - 1)
        which = tl.where(tl.abs(x) < float("inf"), which, exponents + 1)
        which = tl.where(x == 0, exponents, which)
        found += tl.histogram(tl.reshape(which, [rows * wide]), 128)
    padding = tl.cdiv(high, rows * wide) * (rows * wide) - (high - low)
    found = tl.where(bins == exponents, found - padding, found)
    tl.atomic_add(counts + tensor * (exponents + 2) + bins, found.to(tl.int64), mask=found > 0)
