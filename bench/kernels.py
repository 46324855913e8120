"""How near the kernels come to the memory floor: `python bench/kernels.py [--check] [--tune]`.

Needs a CUDA device. From a checkout without installing: `PYTHONPATH=src python3 bench/kernels.py`.
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from holter.watching.stats.fused import Fused, Tiling, available
from holter.watching.stats.summary import summarise

Shapes = list[tuple[int, ...]]
Measure = Callable[[Sequence[Tensor]], object]
ROTATED = (
    256 * 2**20
)  # bytes that are read between two reads of the same ones: several times the L2
CHECKS = Path(__file__).parents[1] / "tests" / "stats" / "test_fused.py"


@dataclass(frozen=True, slots=True)
class Case:
    """A list of gradients to be measured."""

    name: str
    shapes: Shapes
    dtype: torch.dtype

    @property
    def size(self) -> int:
        """Bytes of the whole list."""
        elements = sum(torch.Size(shape).numel() for shape in self.shapes)
        return elements * self.dtype.itemsize


def main() -> int:
    """Check, if asked, then measure and print tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="check the numbers first")
    parser.add_argument("--tune", action="store_true", help="compare tilings as well")
    options = parser.parse_args()
    if not torch.cuda.is_available() or not available():
        print("bench/kernels.py needs an NVIDIA GPU and Triton", file=sys.stderr)
        return 2
    describe()
    failed = (
        subprocess.run([sys.executable, CHECKS], check=False).returncode if options.check else 0
    )
    cases = [
        Case("GPT 124M", gpt(12, 768), torch.bfloat16),
        Case("GPT 124M", gpt(12, 768), torch.float32),
        Case("GPT 759M", gpt(36, 1280), torch.bfloat16),
        Case("GPT 759M", gpt(36, 1280), torch.float32),
        Case("ResNet-50", resnet50(), torch.bfloat16),
        Case("ResNet-50", resnet50(), torch.float32),
        Case("MLP", mlp(), torch.float32),
        Case("2000 of 100", [(100,)] * 2000, torch.bfloat16),
    ]
    bandwidth = copy_bandwidth()
    print(f"\na copy reads and writes {bandwidth / 1e12:.2f} TB/s\n")
    table(
        "list", "tensors", "MB", "floor ms", "sum ms", "fused ms", "of floor",
        "host us", "host us new", "difference ms", "histogram ms", "foreach ms", "loop ms",
        rows=[row(case, bandwidth) for case in cases],
    )  # fmt: skip
    if options.tune:
        tilings = [
            Tiling(rows=rows, steps=steps, warps=warps)
            for rows, warps in ((512, 4), (512, 8), (1024, 4), (1024, 8), (2048, 8), (2048, 16))
            for steps in (2, 4, 8, 16)
        ]
        print("\nms of summarise by tiling\n")
        heads = [f"{case.name} {short(case)}" for case in cases]
        measured = [
            [f"{t.rows} rows, {t.steps} steps, {t.warps} warps", *(tuned(c, t) for c in cases)]
            for t in tilings
        ]
        table("tiling", *heads, rows=measured)
    return failed


def row(case: Case, bandwidth: float) -> list[str]:
    """One line of the table: times of all ways to measure the list."""
    say(f"{case.name} {short(case)}")
    lists = rotated(case)
    fused = Fused(remembered=4 * len(lists))
    before = {id(each): [tensor.clone() for tensor in each] for each in lists[:2]}
    floor = case.size / bandwidth * 1e3
    flat = [torch.randn(case.size // 4, device="cuda") for _ in lists]
    took = device_ms(fused.summarise, lists)
    return [
        f"{case.name} {short(case)}",
        str(len(case.shapes)),
        f"{case.size / 1e6:.1f}",
        f"{floor:.4f}",
        # The fastest reduction torch has, over as many bytes in one piece.
        f"{device_ms(torch.sum, flat):.4f}",
        f"{took:.4f}",
        f"{took / floor:.2f}",
        f"{host_us(fused.summarise, lists):.0f}",
        f"{host_us(lambda each: Fused().summarise(each), lists):.0f}",
        f"{device_ms(lambda each: fused.difference(before[id(each)], each), lists[:2]):.4f}",
        f"{device_ms(fused.histogram, lists):.4f}",
        f"{device_ms(summarise, lists, times=5):.3f}",
        f"{device_ms(one_by_one, lists, times=5):.3f}",
    ]


def tuned(case: Case, tiling: Tiling) -> str:
    """Time of the fused pass with another tiling."""
    lists = rotated(case)
    return f"{device_ms(Fused(remembered=len(lists), tiling=tiling).summarise, lists):.4f}"


def one_by_one(tensors: Sequence[Tensor]) -> None:
    """What articles recommend, waiting left out: three reductions for each parameter."""
    for each in tensors:
        each.norm()
        each.abs().max()
        torch.isfinite(each).all()


def rotated(case: Case) -> list[list[Tensor]]:
    """Several copies of the list, so that none is still in the cache when it is read again."""
    copies = max(2, min(12, -(-ROTATED // case.size)))
    return [
        [torch.randn(shape, device="cuda").mul_(1e-3).to(case.dtype) for shape in case.shapes]
        for _ in range(copies)
    ]


def device_ms(measure: Callable[..., object], lists: Sequence[object], times: int = 30) -> float:
    """Median milliseconds of the device for one call, launches hidden behind a long kernel."""
    for each in lists:
        measure(each)
    torch.cuda.synchronize()
    delay = torch.empty(2**28, device="cuda", dtype=torch.float32)
    took = []
    for i in range(times):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        # The host must be ahead, or its own time is measured: this keeps the device busy.
        for _ in range(4):
            delay.zero_()
        start.record()
        measure(lists[i % len(lists)])
        stop.record()
        torch.cuda.synchronize()
        took.append(start.elapsed_time(stop))
    return statistics.median(took)


def host_us(measure: Callable[..., object], lists: Sequence[object], times: int = 60) -> float:
    """Median microseconds that a call takes of the host, the device being idle."""
    for each in lists:
        measure(each)
    took = []
    for i in range(times):
        torch.cuda.synchronize()
        before = time.perf_counter()
        measure(lists[i % len(lists)])
        took.append(time.perf_counter() - before)
    return statistics.median(took) * 1e6


def copy_bandwidth() -> float:
    """Bytes a second that a large copy moves, read and written."""
    source = torch.randn(2**30, device="cuda")
    target = torch.empty_like(source)
    took = device_ms(target.copy_, [source] * 2, times=10)
    return 2 * source.nbytes / took * 1e3


def gpt(layers: int, width: int) -> Shapes:
    """Parameters of a GPT-2."""
    block: Shapes = [
        (width,), (width,), (3 * width, width), (3 * width,), (width, width), (width,),
        (width,), (width,), (4 * width, width), (4 * width,), (width, 4 * width), (width,),
    ]  # fmt: skip
    return [(50257, width), (1024, width), *block * layers, (width,), (width,)]


def resnet50() -> Shapes:
    """Parameters of a ResNet-50."""
    shapes: Shapes = [(64, 3, 7, 7), (64,), (64,)]
    inputs = 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            output = 4 * width
            shapes += [(width, inputs, 1, 1), (width,), (width,)]
            shapes += [(width, width, 3, 3), (width,), (width,)]
            shapes += [(output, width, 1, 1), (output,), (output,)]
            if block == 0:
                shapes += [(output, inputs, 1, 1), (output,), (output,)]
            inputs = output
    return [*shapes, (1000, 2048), (1000,)]


def mlp() -> Shapes:
    """Parameters of three layers for digits."""
    return [(256, 784), (256,), (256, 256), (256,), (10, 256), (10,)]


def short(case: Case) -> str:
    """The dtype as people write it."""
    return {torch.bfloat16: "bf16", torch.float32: "fp32"}[case.dtype]


def table(*heads: str, rows: Sequence[Sequence[str]]) -> None:
    """Print a Markdown table."""
    for cells in (heads, ["---", *["--:"] * (len(heads) - 1)], *rows):
        print("| " + " | ".join(cells) + " |", flush=True)


def describe() -> None:
    """Say what is measured on."""
    import triton

    print(
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}, triton {triton.__version__}, "
        f"Python {sys.version.split()[0]}, {time.strftime('%Y-%m-%d')}",
        flush=True,
    )


def say(what: str) -> None:
    """Tell on standard error what is being measured."""
    print(f"{what} ...", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
