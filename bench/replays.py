"""How often a replay names the birth and the cure: `python -m bench.replays [--only PATTERN]`.

Runs `holter run` and `holter try replay` on faults of the zoo that end in a NaN, an Inf or a spike,
as plain scripts, and compares the operation, its line and the least cure with the truth below.
`python -m zoo.births` judges the tracing of births alone, on many more steps.
"""

import argparse
import fnmatch
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from holter import Run
from holter.rules._replays import Replayed, replayed
from zoo.recording import recording
from zoo.specimens import corpus

NONE = "nothing"  # every batch fails on any weights: the code has to change
BATCH = ("skip the step", "previous batch", "another batch")
SMALLER = ("learning rate / 3", "learning rate / 10", "clip to 1.0")


@dataclass(frozen=True, slots=True)
class Truth:
    """What a replay has to say: the kind of the birth, a piece of its line, what cures it."""

    kind: str
    line: str
    cures: tuple[str, ...]


TRUTHS = {
    "critic-log-of-zero": Truth("log of zero", "log", (NONE,)),
    "lm-manual-cross-entropy": Truth("log of zero", "log", (NONE,)),
    "contrastive-overflow": Truth("exp overflow", "exp", (NONE,)),
    "contrastive-root-of-zero": Truth("root at zero", "sqrt", (NONE,)),
    "encoder-inverted-mask": Truth("masked row", "", (NONE, *BATCH)),
    "encoder-empty-text": Truth("masked row", "", BATCH),
    "finetuning-log-of-zero": Truth("log of zero", "log", (*BATCH, *SMALLER)),
    "gan-log-of-zero": Truth("log of zero", "log", (*BATCH, *SMALLER)),
    "tagger-unlabelled-batches": Truth("empty mean", "", BATCH),
    "tagger-empty-mean": Truth("zero by zero", "sum", BATCH),
    "lstm-missing-readings": Truth("bad input", "", BATCH),
    "regression-square-root-at-zero": Truth("root at zero", "sqrt", (NONE, *BATCH)),
    "resnet-log-of-zero": Truth("log of zero", "log", (NONE,)),
    "tabular-missing-values": Truth("bad input", "", BATCH),
    "tabular-constant-column": Truth("bad input", "", (NONE,)),
    "tabular-unlabelled-batches": Truth("empty mean", "", BATCH),
    "vae-exponential-overflow": Truth("exp overflow", "exp", (NONE, *SMALLER, *BATCH)),
    "regression-lr-too-high": Truth("overflow", "", SMALLER),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a replay said."""

    name: str
    truth: Truth
    found: Replayed | None

    @property
    def reproduced(self) -> str:
        """The verdict."""
        return "-" if self.found is None else self.found.verdict

    @property
    def birth(self) -> bool:
        """Whether kind and line are right."""
        if self.found is None or self.found.birth is None:
            return False
        told = self.found.birth
        return self.truth.kind in ("", told["kind"]) and self.truth.line in told["line"]

    @property
    def cure(self) -> str:
        """The least cure that was found."""
        ladder = None if self.found is None else self.found.ladder
        return "-" if ladder is None else ladder["minimal"] or NONE


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="*", metavar="PATTERN", help="names of specimens")
    args = parser.parse_args()
    outcomes = list(measure(args.only))
    births = sum(each.birth for each in outcomes)
    cures = sum(each.cure in each.truth.cures for each in outcomes)
    exact = sum(each.reproduced == "bit for bit" for each in outcomes)
    print(f"\n{len(outcomes)} failures: {exact} reproduced bit for bit, {births} births right,")
    print(f"{cures} least cures right")
    return 0


def measure(pattern: str) -> Iterator[Outcome]:
    """Replay each failure."""
    print("| failure | reproduced | birth | least cure | right |\n|---|---|---|---|---|")
    for specimen in corpus():
        truth = TRUTHS.get(specimen.name)
        if truth is None or not fnmatch.fnmatch(specimen.name, pattern):
            continue
        try:
            found = replayed(Run.load(recording(specimen, experiment="replay")))
        except RuntimeError as error:
            print(f"| {specimen.name} | {error} | | | |")
            found = None
        each = Outcome(specimen.name, truth, found)
        birth = "-" if found is None or found.birth is None else found.birth["says"][:90]
        right = ("birth " if each.birth else "") + ("cure" if each.cure in truth.cures else "")
        print(f"| {each.name} | {each.reproduced} | {birth} | {each.cure} | {right} |", flush=True)
        yield each


if __name__ == "__main__":
    sys.exit(main())
