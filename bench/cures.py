"""How often the right cure is named: `python -m bench.cures [--only PATTERN] [--sample N]`.

Runs `holter try cures` on the faults of the zoo that one of the changes removes, each in a process
of its own, and on healthy scripts, for which nothing may be proposed. A change is right if it
implies the cause of the fault, as `holter.diagnosis.facts.cure_causes` says. `--sample N` takes N
faults and half as many healthy scripts at random; `--write` renews docs/cures.md.
"""

import argparse
import fnmatch
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from holter import Run, check, diagnose
from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.cure_causes import CURE_CAUSES, cause_of
from holter.record.trials import TrialKind, TrialName
from zoo.recording import folder_of, recording
from zoo.specimens import Specimen, corpus

PAGE = Path(__file__).parent.parent / "docs" / "cures.md"
_FACTORS = ("0.1", "10")  # of the learning rate: what a lower and a higher one imply


@dataclass(frozen=True, slots=True)
class Judgement:
    """What `holter try cures` proposed for one script."""

    specimen: Specimen
    outcome: str
    named: str = ""  # the change that is proposed
    others: tuple[str, ...] = ()  # further changes that restore learning or help
    failed: str = ""  # why there is no run
    bad: bool = False  # whether there was something to cure

    @property
    def verdict(self) -> str:
        """failed; smallest, listed, wrong, none, learned; of a healthy script clear or proposed."""
        if self.failed:
            return "failed"
        if self.specimen.healthy:
            return "proposed" if self.named else "clear"
        if self.named and is_right(self.specimen, self.named):
            return "smallest"
        if any(is_right(self.specimen, name) for name in self.others):
            return "listed"
        if self.named:
            return "wrong"
        return "none" if self.bad else "learned"


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", nargs="+", default=["*"], metavar="PATTERN", help="names of specimens"
    )
    parser.add_argument("--sample", type=int, metavar="N", help="N faults, half as many healthy")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--list", action="store_true", help="print the names of scripts only")
    parser.add_argument("--kept", action="store_true", help="only scripts that were tried before")
    parser.add_argument("--write", action="store_true", help="renew docs/cures.md")
    args = parser.parse_args()
    chosen = [
        each
        for each in asked()
        if any(fnmatch.fnmatch(each.name, pattern) for pattern in args.only)
    ]
    if args.sample is not None:
        chosen = sampled(chosen, args.sample, args.seed)
    if args.kept:
        chosen = [each for each in chosen if (folder_of(each, 0, "cures") / "done").exists()]
    if args.list:
        print("\n".join(each.name for each in chosen))
        return 0
    which = "" if args.sample is None else f" --sample {args.sample} --seed {args.seed}"
    which += " --kept" if args.kept else ""
    page = render(measure(chosen, workers=args.workers), which)
    print(page)
    if args.write:
        PAGE.write_text(page)
    return 0


def asked() -> list[Specimen]:
    """Return the faults that some change removes, and the healthy scripts."""
    removable = {rule for trial in _trials() for rule in cause_of(trial).implies}
    return [each for each in corpus() if each.healthy or each.cause in removable]


def _trials() -> Iterator[str]:
    """Return a trial of each kind that is a fix."""
    for kind, cause in CURE_CAUSES.items():
        if kind is TrialKind.LEARNING_RATE:
            yield from (str(TrialName(kind, factor)) for factor in _FACTORS)
        elif not cause.is_swap:
            yield str(TrialName(kind))


def is_right(specimen: Specimen, trial: str) -> bool:
    """Whether a change removes the cause of a fault."""
    return not {specimen.cause, *specimen.accepts}.isdisjoint(cause_of(trial).implies)


def sampled(specimens: Sequence[Specimen], count: int, seed: int) -> list[Specimen]:
    """Return so many faults, and half as many healthy scripts, at random."""
    draw = random.Random(seed)
    faults = [each for each in specimens if not each.healthy]
    healthy = [each for each in specimens if each.healthy]
    return [
        *draw.sample(faults, min(count, len(faults))),
        *draw.sample(healthy, min(count // 2, len(healthy))),
    ]


def measure(specimens: Sequence[Specimen], *, workers: int) -> list[Judgement]:
    """Try each script; what is kept from an earlier call is not tried again."""

    def judged(specimen: Specimen) -> Judgement:
        try:
            return judge(specimen, Run.load(recording(specimen, experiment="cures")))
        except RuntimeError as error:
            return Judgement(specimen, "", failed=str(error))

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(judged, specimens))


def judge(specimen: Specimen, run: Run) -> Judgement:
    """Return what the trials on a script propose."""
    facts = Facts(run)
    outcome = f"{facts.run_outcome.title}: {facts.run_outcome.says}"
    checkup = check(run)
    cures, leading = facts.cures, diagnose(checkup).leading
    if cures is None:
        return Judgement(specimen, outcome, bad=facts.run_outcome.bad)
    told = sorted(checkup.findings, key=lambda finding: finding is not leading)
    confirmed = dict.fromkeys(finding.confirmed_by for finding in told if finding.confirmed_by)
    named, *others = (*confirmed, "")[: max(len(confirmed), 1)]
    restoring = (change.name for change in (*cures.cures, *cures.improving, *cures.swaps))
    others = [name for name in dict.fromkeys((*others, *restoring)) if name != named]
    bad = cures.failed or facts.run_outcome.bad
    return Judgement(specimen, outcome, named, tuple(others), bad=bad)


def render(judgements: Sequence[Judgement], which: str = "") -> str:
    """Return the page: the figures, every miss, and every proposal for a healthy script."""
    faults = Counter(each.verdict for each in judgements if not each.specimen.healthy)
    healthy = Counter(each.verdict for each in judgements if each.specimen.healthy)
    count, right = sum(faults.values()), faults["smallest"]
    failing = count - faults["learned"]
    lines = [
        "# How often the right cure is named",
        "",
        f"`python -m bench.cures{which} --write`: `holter try cures` on the faults of the zoo that",
        "a change of its library removes, and on healthy scripts. A change is right if it implies",
        "the cause of the fault (`holter/diagnosis/facts/cure_causes.py`). These are in-sample",
        "figures: the library was written with these scripts at hand.",
        "",
        f"Measured with torch {version('torch')}, one seed."
        + (" Scripts that were not tried yet are not counted." if "--kept" in which else ""),
        "",
        "| | |",
        "|---|--:|",
        f"| faults that a change removes | {count} |",
        f"| of these: the training learns nevertheless, nothing to cure | {faults['learned']} |",
        f"| the right change is named | {right} ({_share(right, count)}) |",
        f"| of those with something to cure | {_share(right, failing)} |",
        f"| the right change restores learning, a smaller one is named | {faults['listed']} |",
        f"| only another change is named | {faults['wrong']} |",
        f"| no change is named | {faults['none']} |",
        f"| not measured | {faults['failed'] + healthy['failed']} |",
        f"| healthy scripts | {sum(healthy.values())} |",
        f"| of these: a change is proposed | {healthy['proposed']} |",
        "",
        "| script | cause | verdict | change named | others | outcome |",
        "|---|---|---|---|---|---|",
    ]
    order = sorted(judgements, key=lambda each: (each.specimen.healthy, each.verdict))
    for each in order:
        if each.verdict not in ("smallest", "clear"):
            others = ", ".join(each.others) or "-"
            lines.append(
                f"| {each.specimen.name} | {each.specimen.cause or 'healthy'} | {each.verdict} |"
                f" {each.named or '-'} | {others} | {each.failed or each.outcome} |"
            )
    return "\n".join(lines) + "\n"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "-"


if __name__ == "__main__":
    sys.exit(main())
