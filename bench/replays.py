"""How often a replay names the birth and the cure: `python -m bench.replays [--only PATTERN]`.

Runs `holter run` and `holter try replay` on trainings that end in a NaN, an Inf or a spike, as
plain scripts: faults of the corpus and `zoo/failures.py`, which has the truths. Compared are the
operation and its line, the least cure, and whether it is the data or the state. `--write` renews
docs/replays.md. `python -m zoo.births` judges the tracing of births alone, on many more steps.
"""

import argparse
import datetime as dt
import fnmatch
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from holter import Run
from holter.diagnosis.facts.replays import Replayed, replayed
from zoo.failures import DATA, FAILURES, NONE, STATE, TRUTHS, Truth
from zoo.recording import recording
from zoo.specimens import Specimen, corpus

PAGE = Path(__file__).parent.parent / "docs" / "replays.md"
HEAD = "| failure | reproduced | birth | smallest cure | data or state |\n|---|---|---|---|---|"


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """What a replay said."""

    specimen: Specimen
    truth: Truth
    found: Replayed | None
    error: str = ""

    @property
    def reproduced(self) -> str:
        """The verdict."""
        return self.error or ("-" if self.found is None else self.found.verdict)

    @property
    def kind(self) -> str:
        """What was born, or nothing."""
        birth = None if self.found is None else self.found.birth
        return "none" if birth is None else birth.kind

    @property
    def birth_is_right(self) -> bool:
        """Whether kind and line are right; a spike has neither."""
        if self.found is None or self.found.birth is None:
            return self.found is not None and not self.truth.kind
        told = self.found.birth
        return self.truth.kind == told.kind and self.truth.line in told.line

    @property
    def cure(self) -> str:
        """The smallest cure that was found."""
        if self.found is None or not self.found.all_tried:
            return "-"
        cure = self.found.minimal_cure
        return NONE if cure is None else cure.name

    @property
    def cure_is_right(self) -> bool:
        """Whether it is one of those that are."""
        return self.cure in self.truth.cures or (
            # An operation without a value for such operands: its safe form, whatever the batch.
            self.truth.is_singular and self.cure.startswith("guarded ")
        )

    @property
    def of(self) -> str:
        """Data, state, or what else was said."""
        triage = self.found.triage if self.found else None
        return "-" if triage is None else triage.says.partition(":")[0]

    @property
    def of_is_right(self) -> bool:
        """Whether data and state are told apart, where it is one of them."""
        return self.truth.of in ("", self.of)

    @property
    def misses(self) -> str:
        """What is wrong, with the truth."""
        wrong = []
        if not self.birth_is_right:
            told = "" if self.found is None or not self.found.birth else self.found.birth.line
            wanted = f"{self.truth.kind or 'none'}, `{self.truth.line}`"
            wrong.append(f"born: {self.kind}, `{told.strip()}`; it is {wanted}")
        if not self.cure_is_right:
            wrong.append(f"cure: {self.cure}; it is {' or '.join(self.truth.cures)}")
        if not self.of_is_right:
            wrong.append(f"{self.of}; it is {self.truth.of}")
        return "; ".join(wrong).replace("|", "/")


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="*", metavar="PATTERN", help="names of specimens")
    parser.add_argument("--workers", type=int, default=2, help="processes to use (default 2)")
    parser.add_argument("--write", action="store_true", help="write docs/replays.md")
    args = parser.parse_args()
    outcomes = []
    print(HEAD)
    for each in measure(args.only, workers=args.workers):
        print(row(each), flush=True)
        outcomes.append(each)
    print("", *totals(outcomes), *misses(outcomes), sep="\n")
    if args.write:
        PAGE.write_text(render(outcomes))
    return 0


def measure(pattern: str, *, workers: int) -> Iterator[ReplayResult]:
    """Replay each failure."""
    chosen = [
        specimen
        for specimen in (*corpus(), *FAILURES)
        if specimen.name in TRUTHS and fnmatch.fnmatch(specimen.name, pattern)
    ]
    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(_replay, chosen)


def _replay(specimen: Specimen) -> ReplayResult:
    truth = TRUTHS[specimen.name]
    try:
        path = recording(specimen, experiment="replay")
        return ReplayResult(specimen, truth, replayed(Run.load(path)))
    except RuntimeError as error:
        return ReplayResult(specimen, truth, None, str(error).partition(":")[0])


def row(each: ReplayResult) -> str:
    """A line of the table."""
    birth = _marked(each.kind, each.birth_is_right)
    cure = _marked(each.cure, each.cure_is_right)
    of = _marked(each.of, each.of_is_right) if each.truth.of else f"({each.of})"
    return f"| {each.specimen.name} | {each.reproduced} | {birth} | {cure} | {of} |"


def totals(outcomes: Sequence[ReplayResult]) -> list[str]:
    """The numbers."""
    count = len(outcomes)
    born = [each for each in outcomes if each.truth.kind]
    judged = [each for each in outcomes if each.truth.of in (DATA, STATE)]
    spikes = [each for each in outcomes if not each.truth.kind]
    return [
        "| | |",
        "|---|--:|",
        f"| failures | {count} |",
        f"| reproduced bit for bit | {_share([e.reproduced == 'bit for bit' for e in outcomes])} |",
        f"| operation and line of the birth right | {_share([e.birth_is_right for e in born])} |",
        f"| spikes: no birth is reported | {_share([e.birth_is_right for e in spikes])} |",
        f"| smallest cure right | {_share([e.cure_is_right for e in outcomes])} |",
        f"| data or state right, where it is one | {_share([e.of_is_right for e in judged])} |",
    ]


def misses(outcomes: Sequence[ReplayResult]) -> list[str]:
    """Return each failure with a wrong answer."""
    wrong = [f"- {each.specimen.name}: {each.misses}" for each in outcomes if each.misses]
    return ["", "Misses:", "", *wrong] if wrong else ["", "No misses."]


def render(outcomes: Sequence[ReplayResult]) -> str:
    """The page."""
    lines = [
        "# How often a replay is right",
        "",
        "`python -m bench.replays --write`: `holter run` and `holter try replay` on scripts of the",
        "zoo that end in a NaN, an Inf or a spike. The truths are in `zoo/failures.py`.",
        "",
        "These are in-sample figures: replays were improved with these scripts at hand. Scripts by",
        "other authors: [replays at first sight](blind-failures.md).",
        "",
        "When 25 of these failures were new, 18 smallest cures were right, 16 of 20 births, and 15",
        "of 22 verdicts on data or state. Since then, `regression-outlier-targets`,",
        "`lstm-outlier-readings` and `regression-raised-rate` were changed to fail at later steps,",
        "where the loss falls slowly enough for a spike to show. `tabular-half-epsilon` and",
        "`tabular-growing-weights` replace two that failed at the first step or never. The two",
        "`vae-black-image-in-...` were added. `tabular-half-exponential` and",
        "`tabular-growing-weights` need both data and state, and are not judged by that.",
        "",
        f"Measured on {dt.datetime.now(tz=dt.UTC).date()} with torch {version('torch')}, one seed.",
        "",
        *totals(outcomes),
        *misses(outcomes),
        "",
        "## Each failure",
        "",
        "Wrong answers are struck out. If the cause is neither data nor state alone (wrong code,",
        "or a batch and weights together), the answer is in parentheses.",
        "",
        HEAD,
        *map(row, outcomes),
    ]
    return "\n".join(lines) + "\n"


def _marked(said: str, right: bool) -> str:
    return said if right else f"~~{said}~~"


def _share(rights: Sequence[bool]) -> str:
    if not rights:
        return "-"
    return f"{sum(rights)} of {len(rights)} ({100 * sum(rights) / len(rights):.1f} %)"


if __name__ == "__main__":
    sys.exit(main())
