"""The fused kernels against a float64 oracle: interpreted on a CPU, and compiled on a GPU.

`python tests/stats/test_fused.py` runs the same checks without pytest.
"""

import importlib.util
import json
import math
import os
import subprocess
import sys
import traceback
import warnings

import torch

from holter.record.signals.histograms import BINS, EXPONENTS, LOWEST, NONFINITE_BIN, ZERO_BIN
from holter.watching.stats.fused import SUM, Fused, Tiling, available, readable
from holter.watching.stats.summary import (
    Stat,
    difference,
    histogram,
    summarise,
)

DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
CHUNK = 1024 * 4 * 4  # elements of float32 that one program reads


def random(*shape, device, dtype=torch.float32, scale=1.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(*shape, generator=generator) * scale).to(dtype).to(device)


def same(got, want, rel=2e-6):
    """Equal to within `rel`, counting NaN and infinities as equal to themselves."""
    got, want = float(got), float(want)
    if math.isnan(want) or math.isinf(want):
        assert str(got) == str(want), (got, want)
    else:
        smallest = 1.5e-45  # that float32 can hold
        assert abs(got - want) <= rel * abs(want) + smallest, (got, want)


def norm_of(values):
    if values.isnan().any():
        return math.nan
    return float(values.double().norm()) if values.isfinite().all() else math.inf


def agrees(tensors, fused=None):
    rows = (fused or Fused()).summarise(tensors)
    assert rows.shape == (len(tensors), 5)
    assert rows.dtype == torch.float32
    for tensor, row in zip(tensors, rows.cpu(), strict=True):
        values = tensor.detach().double().cpu().flatten()
        same(row[Stat.NORM], norm_of(values))
        largest = values.abs().max().float() if values.numel() else 0.0
        same(row[Stat.ABSMAX], largest)
        assert row[Stat.NONFINITE] == (~values.isfinite()).sum()
        assert row[Stat.ZEROS] == (values == 0).sum()
        if values.isfinite().all() and values.sum().abs() < 3.4e38:
            off = abs(float(row[SUM]) - float(values.sum()))
            assert off <= 1e-5 * float(values.abs().sum()) + 1e-44, (row[SUM], values.sum())


def check_every_dtype(device):
    for dtype in DTYPES:
        agrees([random(37, 11, device=device, dtype=dtype)])


def check_mixed_list_keeps_its_order(device):
    sizes = (5, 100, 0, 1, 4097, 8, 16, 1000)
    agrees(
        [
            random(size, device=device, dtype=DTYPES[i % 4], seed=i, scale=10.0**i)
            for i, size in enumerate(sizes)
            if DTYPES[i % 4] != torch.float16 or i < 5
        ]
    )


def check_sizes_around_blocks_and_chunks(device):
    block = 1024 * 4
    sizes = (1, 2, 3, 4, 5, 7, block - 1, block, block + 1, CHUNK, CHUNK + 3, 2 * CHUNK + 4)
    agrees([random(size, device=device, seed=size) for size in sizes])
    agrees([random(size, device=device, seed=size).bfloat16() for size in (9, 8193, 2 * CHUNK + 1)])


def check_empty_and_scalar(device):
    empty = [torch.zeros(0, device=device), torch.zeros(3, 0, device=device)]
    assert Fused().summarise(empty).tolist() == [[0.0] * 5] * 2
    assert Fused().histogram(empty).sum() == 0
    assert Fused().difference(empty, empty).tolist() == [[0.0] * 3] * 2
    agrees([torch.tensor(-7.0, device=device), *empty, torch.tensor(0.0, device=device)])
    assert Fused().summarise([]).shape == (0, 5)
    assert Fused().difference([], []).shape == (0, 3)
    assert Fused().histogram([]).shape == (0, BINS)


def check_extremes(device):
    for value in (1e38, -3e38, 1e20, 1e-20, 1e-30, 1e-38, 1e-42, 1.4e-45):
        for size in (1, 3, 8, 64):
            values = torch.full((size,), value, device=device)
            if abs(value) * math.sqrt(size) < 3.4e38:
                agrees([values])
        mixed = torch.zeros(64, device=device)
        mixed[5], mixed[17] = value, -value / 2
        agrees([mixed])
    agrees([torch.full((300,), 6e4, device=device, dtype=torch.float16)])
    if device == "cuda":  # Triton's interpreter takes a bfloat16 under 1e-38 for zero
        agrees([torch.full((304,), 1e-40, device=device, dtype=torch.bfloat16)])
    agrees([torch.full((16,), 1e30, device=device, dtype=torch.float64)])
    large = torch.full((16,), 1e38, device=device)
    large[3:] = 1e-30  # of which nothing may be lost where it is alone
    agrees([large, large[4:].clone()])


def check_nonfinite(device):
    nan, inf = math.nan, math.inf
    for size in (6, 8, 4096 + 8, CHUNK + 8):
        for at in ([nan], [inf], [-inf], [nan, inf], [inf, -inf], [nan] * 5):
            for dtype in (torch.float32, torch.bfloat16):
                tensor = random(size, device=device, dtype=dtype)
                tensor[1 : 1 + len(at)] = torch.tensor(at, dtype=dtype, device=device)
                agrees([tensor, random(8, device=device)])
    agrees([torch.full((8,), nan, device=device), torch.full((8,), inf, device=device)])
    last = random(2 * CHUNK, device=device)
    last[-1] = nan
    agrees([last])


def check_zeros_and_signs(device):
    agrees([torch.zeros(5000, device=device), -torch.ones(9, device=device)])
    agrees([torch.tensor([-1.0, 0.0, -0.0], device=device)])
    sparse = torch.zeros(CHUNK + 17, device=device)
    sparse[::7] = -3
    agrees([sparse, sparse.bfloat16()])


def check_views_and_strides(device):
    whole = random(40, 24, device=device)
    agrees([whole.t(), whole[:, 3:9], whole[::2], whole[1:3], whole.flatten()[1:]])
    agrees([torch.ones(1, device=device).expand(6), random(4, 3, 2, 2, device=device).mT])
    agrees([random(2, 3, 4, 5, device=device).to(memory_format=torch.channels_last)])
    long = random(2 * CHUNK + 9, device=device)
    agrees([long[offset:] for offset in range(5)])
    agrees([long.bfloat16()[offset : 9000 + offset] for offset in (1, 7, 8)])
    assert readable(whole.t()).data_ptr() == whole.data_ptr()
    assert readable(whole[:, 3:9]).data_ptr() != whole[:, 3:9].data_ptr()


def check_sparse_and_complex(device):
    index = torch.tensor([[4, 1, 1]], device=device)
    stored = torch.tensor([1.0, 2.0, 3.0], device=device)
    gradient = torch.sparse_coo_tensor(index, stored, (10,), check_invariants=True)
    row = Fused().summarise([gradient])[0].tolist()
    assert row[1:] == [5.0, 0.0, 8.0, 6.0]
    same(row[0], math.sqrt(26))
    counts = Fused().histogram([gradient, stored])
    assert counts[:, ZERO_BIN].tolist() == [8, 0]
    assert counts.sum(1).tolist() == [10, 3]
    number = torch.tensor([3 + 4j, 0, 1j], device=device)
    for each in (number, number.conj()):
        same(Fused().summarise([each])[0, Stat.NORM], math.sqrt(26))
        assert Fused().summarise([each])[0, 1:4].tolist() == [5.0, 0.0, 1.0]


def check_declined(device):
    class Wrapped(torch.Tensor):
        pass

    one = torch.ones(3, device=device)
    for tensor in (one.long(), one.bool(), one.as_subclass(Wrapped), one[None].to_sparse_csr()):
        refuses(lambda tensor=tensor: Fused().summarise([one, tensor]))
    refuses(lambda: Fused().difference([one], [one[:2]]))
    refuses(lambda: Fused().difference([one], []))
    refuses(lambda: Fused().summarise([one, torch.ones(3, device="meta")]))


def refuses(call):
    try:
        call()
    except ValueError as error:
        assert str(error)
    else:
        raise AssertionError("nothing was declined")


def check_many_tiny_tensors(device):
    agrees([random(1 + i % 9, device=device, seed=i) for i in range(300)])


def check_float8(device):
    agrees([random(33, device=device).to(torch.float8_e4m3fn)])


def check_same_as_the_foreach_path(device):
    tensors = [random(31, 7, device=device, dtype=DTYPES[i % 4], seed=i) for i in range(8)]
    tensors += [torch.zeros(4, device=device), torch.tensor(2.0, device=device)]
    after = [each * 1.25 for each in tensors]
    after[0][3] = tensors[0][3]
    fused, foreach = Fused().summarise(tensors)[:, : len(Stat)], summarise(tensors)
    assert torch.allclose(fused, foreach, rtol=1e-5, atol=0)
    # The foreach path rounds the change to the dtype of the tensor.
    fused, foreach = Fused().difference(tensors, after), difference(tensors, after)
    assert torch.allclose(fused, foreach, rtol=5e-3, atol=0)


def check_difference(device):
    for dtype in DTYPES:
        for size in (4, 7, 8, 5000, CHUNK + 5, CHUNK + 8):
            before = random(size, device=device, dtype=dtype, seed=size)
            after = before.clone()
            after[: size // 2] += random(size // 2, device=device, dtype=dtype, seed=1)
            compares(before, after)
    line = random(101, device=device)
    compares(line[1:], line[1:] + 1)  # not aligned as its copy is
    compares(line[1:65], line[2:66])
    grid = random(8, 6, device=device)
    compares(grid.t(), (grid * 2).t())
    compares(grid.t(), (grid * 2).t().contiguous())
    compares(grid, grid.to(torch.bfloat16))
    compares(torch.zeros(8, device=device), torch.tensor([0.0, -0.0] * 4, device=device))
    for value in (1e-30, 1e30):
        compares(torch.full((9,), value, device=device), torch.full((9,), 2 * value, device=device))
    nan = torch.tensor([1.0, math.nan, 3.0, 4.0], device=device)
    change, old, unchanged = Fused().difference([nan], [nan])[0].tolist()
    assert math.isnan(change)
    assert math.isnan(old)
    assert unchanged == 3


def compares(before, after):
    change, old, unchanged = Fused().difference([before], [after])[0].tolist()
    first, second = before.double().cpu(), after.double().cpu()
    same(change, (second - first).norm(), 3e-6)
    same(old, first.norm(), 3e-6)
    assert unchanged == (first == second).sum(), (unchanged, (first == second).sum())


def check_histogram(device):
    exponents = torch.arange(-60, 40).double()
    tensors = [
        random(777, device=device, dtype=dtype, scale=1e-3, seed=i)
        for i, dtype in enumerate(DTYPES)
    ]
    tensors += [
        2.0 ** exponents.float().to(device),
        -(2.0 ** exponents.to(device)) * 1.5,
        torch.tensor([0.0, -0.0, math.nan, math.inf, -math.inf, 1e-42, 3e38], device=device),
        torch.tensor([1e-300, 1e300, 0.0], dtype=torch.float64, device=device),
        random(CHUNK * 2 + 8, device=device),
        random(CHUNK + 1, device=device)[1:],
    ]
    counts = Fused().histogram(tensors).cpu()
    assert torch.equal(histogram(tensors).cpu(), counts)
    for tensor, got in zip(tensors, counts, strict=True):
        values = tensor.double().cpu().flatten()
        finite = values[values.isfinite() & (values != 0)].abs()
        bins = (finite.log2().floor().long() - LOWEST).clamp(0, EXPONENTS - 1)
        want = torch.bincount(bins, minlength=BINS)
        want[ZERO_BIN] = (values == 0).sum()
        want[NONFINITE_BIN] = (~values.isfinite()).sum()
        assert torch.equal(got, want), (got, want)


def check_remembered_lists(device):
    fused = Fused(remembered=2)
    lists = [[random(9, device=device, seed=i), random(5, device=device)] for i in range(4)]
    for tensors in (*lists, *lists[::-1]):
        agrees(tensors, fused)
    assert len(fused._tables) == 2
    lists[0][0].mul_(2)  # the values may change where they lie
    agrees(lists[0], fused)
    # The same memory, read in another way.
    memory = torch.zeros(64, device=device)
    memory[::2] = 1
    views = [memory, memory[:32], memory[::2], memory[:32].bfloat16(), memory.view(8, 8)[:, :4]]
    views += [memory.view(torch.bfloat16), memory.view(torch.bfloat16)[:64], memory[1:33]]
    views += [memory[:32].view(8, 4).t(), memory.view(8, 8)[:4].t()]
    fused = Fused(remembered=32)
    for view in (*views, *views):
        agrees([view], fused)


def check_nothing_is_changed(device):
    tensor = random(100, device=device).requires_grad_()
    before = tensor.detach().clone()
    assert not Fused().summarise([tensor]).requires_grad
    Fused().histogram([tensor.t()])
    Fused().difference([tensor], [tensor[:]])
    assert torch.equal(tensor, before)
    assert tensor.grad is None


def check_other_tilings(device):
    for tiling in (Tiling(rows=256, steps=1, warps=4), Tiling(rows=2048, steps=8, warps=8)):
        agrees([random(9001, device=device), random(4096, device=device)], Fused(tiling=tiling))


def check_more_than_2_31_elements(device):
    if torch.cuda.mem_get_info()[0] < 20 * 2**30:
        return
    size = 2**31 + 4099
    tensor = torch.ones(size, device=device, dtype=torch.bfloat16)
    tensor[-1], tensor[-2], tensor[2**31 + 3] = 0, math.inf, -5
    norm, largest, nonfinite, zeros, total = Fused().summarise([tensor])[0].tolist()
    assert (norm, largest, nonfinite, zeros, total) == (math.inf, math.inf, 1, 1, math.inf)
    tensor[-2] = 1
    norm, largest, nonfinite, zeros, total = Fused().summarise([tensor])[0].tolist()
    same(norm, math.sqrt(size - 2 + 25))
    assert (largest, nonfinite, zeros) == (5, 0, 1)
    same(total, size - 2 - 5)
    counts = Fused().histogram([tensor])[0].tolist()
    assert (counts[-LOWEST], counts[ZERO_BIN], counts[2 - LOWEST]) == (size - 2, 1, 1)
    other = tensor.clone()
    other[2**31 + 1] = 3
    change, _, unchanged = Fused().difference([tensor], [other])[0].tolist()
    assert (change, unchanged) == (2, float(torch.tensor(size - 1, dtype=torch.float32)))


def check_no_synchronisation(device):
    fused, tensors = Fused(), [random(n, device=device) for n in (5, 4096, 70_000)]
    tensors.append(random(64, 48, device=device).bfloat16().t())
    odd = [*tensors, random(64, 48, device=device)[:, 1:7]]

    def every():
        for each in (tensors, odd):
            fused.summarise(each)
            fused.difference(each, [one.clone() for one in each])
            fused.histogram(each)

    every()  # compiles
    torch.cuda.synchronize()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that this mode of torch is a prototype
        torch.cuda.set_sync_debug_mode("error")
    try:
        every()
        every()
        Fused().summarise(tensors)
    finally:
        torch.cuda.set_sync_debug_mode("default")


def check_is_deterministic(device):
    tensors = [random(100_003, device=device, seed=i) for i in range(5)]
    first = Fused().summarise(tensors)
    for _ in range(5):
        assert torch.equal(Fused().summarise(tensors), first)


def check_adam(device):
    gradients = [random(*shape, device=device, seed=1) for shape in ((37, 11), (5,), (70_000,))]
    squares = [random(*each.shape, device=device, seed=2).square() for each in gradients]
    squares[0][:3] = 0.0
    divisors, epsilons = [0.5, 1.0, 0.1], [1e-8, 0.3, 1e-2]
    limits = torch.tensor([divisors, epsilons], device=device)
    rows = Fused().adam(gradients, squares, limits)
    for row, gradient, square, divisor, epsilon in zip(
        rows.cpu(), gradients, squares, divisors, epsilons, strict=True
    ):
        root = square.double().sqrt().cpu() / divisor
        same(row[Stat.NORM], norm_of(gradient.double().cpu() / root.clamp(min=epsilon)), rel=1e-5)
        assert row[Stat.ZEROS] == (root < epsilon).sum()


class Kind:
    """What lists have in common."""


def check_follows_lists_to_other_addresses(device):
    fused, kind = Fused(), Kind()
    sizes = (100, 7, 20_000)
    kept = []  # so that no address comes again
    for seed in range(5):
        tensors = [random(size, device=device, seed=seed) for size in sizes]
        kept += tensors
        rows = fused.summarise(tensors, like=kind)
        for tensor, row in zip(tensors, rows.cpu(), strict=True):
            same(row[Stat.NORM], norm_of(tensor.cpu()))
    odd = [random(size + 1, device=device, seed=9)[1:] for size in sizes]  # aligned differently
    for tensor, row in zip(odd, fused.summarise(odd, like=kind).cpu(), strict=True):
        same(row[Stat.NORM], norm_of(tensor.cpu()))
    expanded = [torch.ones(1, device=device).expand(size) for size in sizes]
    for size, row in zip(sizes, fused.summarise(expanded, like=kind).cpu(), strict=True):
        same(row[Stat.NORM], math.sqrt(size))


def check_differences_follow_as_well(device):
    fused, kind, kept = Fused(), Kind(), []
    for seed in range(3):
        before = [random(size, device=device, seed=seed) for size in (64, 4097)]
        after = [tensor + 1 for tensor in before]
        kept += [*before, *after]
        rows = fused.difference(before, after, like=kind).cpu()
        for tensor, row in zip(before, rows, strict=True):
            same(row[0], math.sqrt(tensor.numel()), rel=1e-5)
            same(row[1], norm_of(tensor.cpu()))


def check_side_stream(device):
    stream, fused = torch.cuda.Stream(), Fused()
    tensors = [random(50_000, device=device)]
    agrees(tensors, fused)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        agrees(tensors, fused)
    assert len(fused._tables) == 2


CHECKS = {
    name.removeprefix("check_"): check
    for name, check in list(globals().items())
    if name.startswith("check_")
}
GPU_ONLY = {"more_than_2_31_elements", "no_synchronisation", "is_deterministic", "side_stream"}


def outcomes(device):
    """What went wrong in each check, empty where nothing did."""
    found = {}
    for name, check in CHECKS.items():
        if device == "cuda" or name not in GPU_ONLY:
            try:
                check(device)
                found[name] = ""
            except Exception:
                found[name] = traceback.format_exc()
    return found


if importlib.util.find_spec("pytest"):
    import pytest

    interpreted = pytest.mark.skipif(
        importlib.util.find_spec("triton") is None, reason="Triton is not installed"
    )

    @pytest.fixture(scope="module")
    def in_the_interpreter():
        # Triton decides as it is imported, so it takes a process of its own.
        run = subprocess.run(
            [sys.executable, "-W", "ignore", __file__, "--interpret"],
            env={**os.environ, "TRITON_INTERPRET": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stderr
        return json.loads(run.stdout.splitlines()[-1])

    @interpreted
    @pytest.mark.parametrize("name", sorted(CHECKS.keys() - GPU_ONLY))
    def test_interpreted(name, in_the_interpreter):
        assert in_the_interpreter[name] == "", in_the_interpreter[name]

    @pytest.mark.cuda
    @pytest.mark.filterwarnings("ignore")  # sparse tensors warn of themselves
    @pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
    @pytest.mark.parametrize("name", sorted(CHECKS))
    def test_on_a_gpu(name):
        assert available()
        CHECKS[name]("cuda")

    def test_is_declined_without_a_gpu():
        if os.environ.get("TRITON_INTERPRET") != "1":
            with pytest.raises(ValueError, match="CUDA"):
                Fused().summarise([torch.ones(2)])


def main():
    """Run the checks here; print them for a reader, or as JSON for `in_the_interpreter`."""
    if "--interpret" in sys.argv:
        print(json.dumps(outcomes("cpu")))
        return 0
    found = outcomes("cuda" if torch.cuda.is_available() else "cpu")
    for name, wrong in found.items():
        print("FAILED" if wrong else "ok    ", name)
    print(*filter(None, found.values()), sep="\n")
    return int(any(found.values()))


if __name__ == "__main__":
    sys.exit(main())
