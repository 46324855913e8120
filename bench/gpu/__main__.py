"""holter on a GPU: `python -m bench.gpu [--only PATTERN] [--write] [--json FILE]`.

Runs each script of `bench/gpu/table.py` twice in processes of their own, bare and under `holter
run`, and prints whether the output is identical, steps and losses are complete, and the fault is
named. Scripts run in deterministic mode. Several run at once, so that the ratio of wall times is
only indicative. `--write` writes docs/gpu.md.
"""

import argparse
import datetime as dt
import fnmatch
import json
import platform
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path

import torch

from bench.gpu.running import Result, result
from bench.gpu.table import SPECIMENS, Specimen

PAGE = Path(__file__).parent.parent.parent / "docs" / "gpu.md"
COMMAND = "PYTHONPATH=src:. python3 -m bench.gpu --write"
HEAD = (
    "| script | leading cause | verdict | output | steps | losses | captures | time |\n"
    "|---|---|---|---|--:|--:|--:|--:|"
)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.gpu",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default="*", metavar="PATTERN", help="names of scripts")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--workers", type=int, default=6, help="scripts at a time (default 6)")
    parser.add_argument("--write", action="store_true", help="write docs/gpu.md")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to FILE")
    args = parser.parse_args()
    if args.device == "cuda" and not torch.cuda.is_available():
        print("There is no CUDA device; --device cpu runs the scripts that need none.")
        return 2
    chosen = [
        specimen
        for specimen in SPECIMENS
        if fnmatch.fnmatch(specimen.name, args.only) and (specimen.cpu or args.device == "cuda")
    ]
    began = dt.datetime.now(tz=dt.UTC)
    results = []
    print(HEAD)
    for each in measured(chosen, device=args.device, workers=args.workers):
        print(row(each), flush=True)
        results.append(each)
    results.sort(key=lambda each: chosen.index(each.specimen))
    print("", *totals(results), *misses(results), sep="\n")
    print(f"\n{(dt.datetime.now(tz=dt.UTC) - began).total_seconds():.0f} s")
    if args.json:
        args.json.write_text(json.dumps([_document(each) for each in results], indent=1))
    if args.write:
        PAGE.write_text(page(results, device=args.device))
    return 0


def measured(specimens: Sequence[Specimen], *, device: str, workers: int) -> Iterator[Result]:
    """Yield results as they come; scripts that compile take longest and start first."""
    ordered = sorted(specimens, key=lambda specimen: specimen.script != "compiled")
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(workers) as pool:
        futures = [
            pool.submit(result, each, device=device, folder=Path(folder)) for each in ordered
        ]
        for future in as_completed(futures):
            yield future.result()


def row(each: Result) -> str:
    """Return a line of the table; what is wrong is struck out."""
    if each.failure:
        return f"| {each.specimen.name} | | ~~failed~~ | | | | | |"
    steps, losses = f"{each.steps:,}", f"{each.losses:,}"
    if each.specimen.replayed:
        steps, losses = f"({steps})", f"({losses})"
    else:
        steps = _marked(steps, each.steps == each.true_steps)
        losses = _marked(losses, each.losses == each.true_steps and not each.wrong_losses)
    leading = f"{each.leading}, {each.confidence}" if each.leading else ""
    cells = (
        each.specimen.name,
        leading,
        _marked(each.verdict, each.right),
        _marked(each.output, each.same_output),
        steps,
        losses,
        str(len(each.captures) or ""),
        f"{each.holter_seconds / each.bare_seconds:.2f}",
    )
    return f"| {' | '.join(cells)} |"


def totals(results: Sequence[Result]) -> list[str]:
    """Return the numbers."""
    faults = [each for each in results if not each.specimen.healthy]
    healthy = [each for each in results if each.specimen.healthy]
    compared = [each for each in results if each.output in ("identical", "differs")]
    named = _share([each.verdict == "named" for each in faults])
    complete = _share([each.counted for each in results if not each.failure])
    captured = _share([each.verdict == "named" or bool(each.captures) for each in faults])
    return [
        "| | |",
        "|---|--:|",
        f"| faults: the cause leads | {named} |",
        f"| faults: named or captured | {captured} |",
        f"| healthy scripts without a warning or error | {_share([e.right for e in healthy])} |",
        f"| output identical | {_share([each.output == 'identical' for each in compared])} |",
        f"| all steps and losses recorded | {complete} |",
    ]


def misses(results: Sequence[Result]) -> list[str]:
    """Return a sentence for everything that is wrong."""
    wrong = []
    for each in results:
        says = []
        if each.failure:
            says.append(each.failure)
        elif not each.right:
            told = ", ".join(each.findings) or "nothing"
            says.append(f"{each.specimen.truth or 'it is healthy'}; found: {told}")
        if not each.failure and not each.same_output:
            says.append("the output differs from that of the bare run")
        if not each.counted:
            says.append(
                f"{each.steps:,} of {each.true_steps:,} steps, {each.losses:,} losses,"
                f" {each.wrong_losses:,} with another value"
            )
        says += [f"internal error: {error}" for error in each.internal_errors]
        if says:
            wrong.append(f"- {each.specimen.name}: {'; '.join(says)}")
    return ["", "Misses:", "", *wrong] if wrong else ["", "No misses."]


FIRST_SIGHT = (
    "At first sight (2026-11-15, torch 2.11) the cause led in 22 of 24 faults, 26 of 27",
    "healthy scripts were silent, and 49 of 49 outputs were identical: *captured-step* failed",
    "under holter, *channels-last-dead-relus* and *streams-forgotten-model* were missed.",
)


def page(results: Sequence[Result], *, device: str) -> str:
    """Return docs/gpu.md."""
    name = torch.cuda.get_device_name() if device == "cuda" else f"{platform.processor()} (CPU)"
    date = dt.datetime.now(tz=dt.UTC).date()
    lines = [
        "# holter on a GPU",
        "",
        f"`{COMMAND}`: small training scripts, each run bare and under `holter run`. The truths in",
        "`bench/gpu/table.py` were written before holter had seen any of the scripts.",
        "",
        *FIRST_SIGHT,
        "",
        f"Measured on {date} on {name} with torch {torch.__version__}, in deterministic mode.",
        "",
        *totals(results),
        *misses(results),
        "",
        "## Each script",
        "",
        "Wrong results are struck out. *Named*: the cause leads the report; *listed*: it is",
        "reported below another; *captured*: it is not reported, but the black box has written a",
        "capture for a replay. *Note*: only findings of severity info or preview. Steps of a",
        "replayed CUDA graph run no Python code and are not recorded; their counts are in",
        "parentheses. *Time* is the wall time under holter divided by that of the bare run, with",
        "the start of Python and the report, several scripts at once: an indication only.",
        "",
        HEAD,
        *map(row, results),
        "",
        "## Truths",
        "",
        "| script | command | what is wrong | accepted as its name |",
        "|---|---|---|---|",
        *map(_truth, results),
    ]
    return "\n".join(lines) + "\n"


def _truth(each: Result) -> str:
    specimen = each.specimen
    command = f"{specimen.script}.py {specimen.arguments}".strip()
    accepted = ", ".join(specimen.accepts)
    return f"| {specimen.name} | `{command}` | {specimen.truth or 'nothing'} | {accepted} |"


def _document(each: Result) -> dict[str, object]:
    return {"verdict": each.verdict, **asdict(each)}


def _marked(said: str, right: bool) -> str:
    return said if right else f"~~{said}~~"


def _share(rights: Sequence[bool]) -> str:
    if not rights:
        return "-"
    return f"{sum(rights)} of {len(rights)} ({100 * sum(rights) / len(rights):.0f} %)"


if __name__ == "__main__":
    sys.exit(main())
