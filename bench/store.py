"""How fast and how large the run store is: `python bench/store.py [--quick]`."""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from holter.record import Run, Writer
from holter.record.format import Block, checksum, encode_header, record_dtype
from holter.record.writer import SEGMENT_BYTES

Line = tuple[str, str]
SCALARS = tuple((f"signal.{i}", ("",)) for i in range(50))
PARAMETERS = (("grad.norm", tuple(f"model.layers.{i}.weight" for i in range(2000))),)
Layout = tuple[tuple[str, tuple[str, ...]], ...]

WRITE_ON = """
import sys, numpy as np
sys.path.insert(0, {here!r})
import store
from holter.record import Writer
writer = Writer({path!r}, resume=True)
rows = store.rows_of(store.SCALARS)
for step in range({first}, 10**9):
    writer.write("steps", step, rows)
"""


def main() -> None:
    """Measure everything and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the work")
    share = 10 if parser.parse_args().quick else 1
    lines: list[Line] = []
    with tempfile.TemporaryDirectory(prefix="holter-bench-") as folder:
        scratch = Path(folder)
        lines += appending(scratch / "a", "steps", SCALARS, 200_000 // share)
        lines += appending(scratch / "b", "parameters", PARAMETERS, 20_000 // share)
        lines += reading(scratch / "c", "steps", SCALARS, 1_000_000 // share, "signal.7")
        lines += reading(scratch / "d", "parameters", PARAMETERS, 10_000 // share, "grad.norm")
        lines += while_writing(scratch / "c", 1_000_000 // share)
    width = max(len(what) for what, _ in lines)
    print(f"| {'what':<{width}} | measured |\n|{'-' * (width + 2)}|---|")
    for what, measured in lines:
        print(f"| {what:<{width}} | {measured} |")


def appending(path: Path, stream: str, layout: Layout, count: int) -> list[Line]:
    """Time of one `Writer.write`, and what it takes on disk."""
    progress(f"appending {count:,} records to {stream}")
    writer, rows, clock = Writer(path), rows_of(layout), time.perf_counter
    took = np.empty(count)
    for step in range(count):
        before = clock()
        writer.write(stream, step, rows)
        took[step] = clock() - before
    writer.close()
    micro = took * 1e6
    size = sum(file.stat().st_size for file in path.rglob("*.seg")) / count
    name = describe(layout)
    mean, middle, high = micro.mean(), *np.percentile(micro, [50, 99])
    return [
        (f"append, {name}", f"mean {mean:.1f} us, p50 {middle:.1f} us, p99 {high:.1f} us"),
        (f"size of a record, {name}", f"{size:.0f} bytes"),
    ]


def reading(path: Path, stream: str, layout: Layout, steps: int, signal: str) -> list[Line]:
    """Time to load a run and to read one series of it."""
    progress(f"making a run of {steps:,} steps, {describe(layout)}")
    make(path, stream, layout, steps)
    owner = layout[-1][1][-1]
    name = f"{steps:,} steps x {describe(layout)}"
    load = best(lambda: Run.load(path))
    first = best(lambda: Run.load(path).tables[signal][owner])
    run = Run.load(path)
    hot = best(lambda: run.tables[signal][owner])
    assert len(run.tables[signal][owner]) == steps
    window = best(lambda: Run.load(path).tables[signal].rows(steps - 512, steps))
    hot_window = best(lambda: run.tables[signal].rows(steps - 512, steps))
    lines = [
        (f"Run.load, {name}", f"{load:.1f} ms"),
        (f"load and first series, {name}", f"{first:.1f} ms"),
        (f"another series, {name}", f"{hot:.1f} ms"),
        (f"load and rows of 512 steps, {name}", f"{window:.1f} ms"),
        (f"rows of 512 steps again, {name}", f"{hot_window:.1f} ms"),
    ]
    if drop_page_cache():
        cold = best(lambda: Run.load(path).tables[signal][owner], times=1)
        lines.append((f"load and first series, page cache dropped, {name}", f"{cold:.0f} ms"))
    return lines


def while_writing(path: Path, steps: int) -> list[Line]:
    """Time to load a run that another process is writing to."""
    progress("loading beside a writer")
    code = WRITE_ON.format(here=str(Path(__file__).parent), path=str(path), first=steps)
    writer = subprocess.Popen([sys.executable, "-c", code])
    try:
        time.sleep(1.0)
        load = best(lambda: Run.load(path))
        first = best(lambda: Run.load(path).tables["signal.7"][""])
    finally:
        writer.kill()
        writer.wait()
    return [
        ("Run.load beside a writer", f"{load:.1f} ms"),
        ("  with one series", f"{first:.1f} ms"),
    ]


def make(path: Path, stream: str, layout: Layout, steps: int) -> None:
    """A run as the writer would leave it, made many records at a time."""
    Writer(path).close()
    blocks, start = [], 0
    for signal, owners in layout:
        blocks.append(Block(signal, owners, start))
        start = blocks[-1].stop
    header, dtype = encode_header(stream, tuple(blocks)), record_dtype(start)
    each = SEGMENT_BYTES // dtype.itemsize
    for index, first in enumerate(range(0, steps, each)):
        records = np.zeros(min(each, steps - first), dtype)
        records["step"] = np.arange(first, first + len(records))
        records["values"] = records["step"][:, None] * np.float32(1e-3)
        records["crc"][-1] = checksum(records[-1].tobytes())
        with (path / "rank-0" / f"{stream}-{index:06d}.seg").open("wb") as file:
            file.write(header)
            file.write(records.tobytes())


def rows_of(layout: Layout) -> list[tuple[str, tuple[str, ...], np.ndarray]]:
    """One record's readings."""
    return [(signal, owners, np.ones(len(owners), np.float32)) for signal, owners in layout]


def describe(layout: Layout) -> str:
    """What a record of this layout holds."""
    if len(layout) > 1:
        return f"{len(layout)} step-level series"
    return f"{len(layout[0][1]):,} parameters"


def best(work: Callable[[], object], times: int = 5) -> float:
    """Milliseconds of the fastest of a few tries."""
    took = []
    for _ in range(times):
        before = time.perf_counter()
        work()
        took.append(time.perf_counter() - before)
    return min(took) * 1e3


def drop_page_cache() -> bool:
    """Forget what the kernel keeps of files; only root may."""
    try:
        subprocess.run(["sync"], check=True)
        Path("/proc/sys/vm/drop_caches").write_text("1")
    except OSError:
        return False
    return True


def progress(what: str) -> None:
    """Say on standard error what is being measured."""
    print(f"{what} ...", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
