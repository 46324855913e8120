"""How often preflight names the right check: `python -m bench.preflight [--only PATTERN]`.

Runs `holter try preflight` on the plain scripts of the zoo: the faults that are there before
training starts, and every healthy workload and oddity, on which nothing may fail. `--write` renews
the table in docs/preflight.md.
"""

import argparse
import fnmatch
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from holter import Run, check, diagnose
from holter.diagnosis.checklist import CHECKS, Status, rows
from zoo.recording import CACHE, recording
from zoo.specimens import Specimen, corpus

PAGE = Path(__file__).parent.parent / "docs" / "preflight.md"

# What comes into being only while a training runs, validates, or ends an epoch.
LATER_CAUSES = {
    *("overfitting", "underfitting", "validation-better-than-training", "constant-validation"),
    *("validation-in-train-mode", "validation-with-gradients", "training-in-eval-mode"),
    *("decayed-learning-rate", "restarted-schedule", "stalled-schedule"),
}
LATER = {
    "gan-log-of-zero": "the discriminator has to become sure first",
    "finetuning-log-of-zero": "the sigmoid has to round to 1 first",
    "regression-new-adam-each-epoch": "Adam is created again at the end of an epoch",
    "vae-reconstruction-averaged": "the latents have to collapse first",
    "cnn-weight-decay": "weights have to shrink first",
    "lm-weight-decay": "weights have to shrink first",
    "contrastive-weight-decay": "weights have to shrink first",
    "tabular-decayed-away": "weights have to shrink first",
    "lm-unscaled-attention": "logits have to grow first",
    "cnn-batches-of-two": "running statistics have to be used first",
}


@dataclass(frozen=True, slots=True)
class Judgement:
    """What preflight said of one script."""

    specimen: Specimen
    failed: tuple[str, ...]
    warned: tuple[str, ...]
    leading: str
    declined: str  # why the script was not recognised, or nothing

    @property
    def wanted(self) -> tuple[str, ...]:
        """The checks that an answer may come from."""
        rules = {self.specimen.cause, *self.specimen.accepts}
        return tuple(check.name for check in CHECKS if rules & set(check.rules))

    @property
    def verdict(self) -> str:
        """failed, warned, missed, declined; clear, alarm."""
        if self.specimen.healthy:
            return "declined" if self.declined else "alarm" if self.failed else "clear"
        if set(self.wanted) & set(self.failed):
            return "failed"
        if self.declined:
            return "declined"
        return "warned" if set(self.wanted) & set(self.warned) else "missed"


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="*", metavar="PATTERN", help="names of specimens")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="renew docs/preflight.md")
    args = parser.parse_args()
    chosen = [each for each in corpus() if is_asked(each) and fnmatch.fnmatch(each.name, args.only)]
    page = render(measure(chosen, workers=args.workers))
    print(page)
    if args.write:
        PAGE.write_text(page)
    return 0


def is_asked(specimen: Specimen) -> bool:
    """Whether preflight can know: faults that exist before training, and healthy scripts."""
    if "/" in specimen.workload:  # the twin of a case, which its own tests see to
        return False
    return specimen.cause not in LATER_CAUSES and specimen.name not in LATER


def measure(specimens: Sequence[Specimen], *, workers: int) -> list[Judgement]:
    """Try each script; what is kept from an earlier call is not tried again."""

    def outcome(specimen: Specimen) -> Judgement:
        try:
            path = recording(specimen, experiment="preflight")
        except RuntimeError:  # one that is declined has no run
            return Judgement(specimen, (), (), "", _why(specimen))
        return judge(specimen, Run.load(path))

    outcomes = []
    with ThreadPoolExecutor(workers) as pool:
        for each in pool.map(outcome, specimens):
            outcomes.append(each)
            if sys.stderr.isatty():
                print(f"\r{len(outcomes)}/{len(specimens)}", end="", file=sys.stderr, flush=True)
    return outcomes


def judge(specimen: Specimen, run: Run) -> Judgement:
    """The checks that failed, and the rule that leads."""
    checkup = check(run)
    answered = rows(run, checkup)
    leading = diagnose(checkup).leading
    return Judgement(
        specimen,
        tuple(row.check.name for row in answered if row.status is Status.FAIL),
        tuple(row.check.name for row in answered if row.status is Status.WARN),
        leading.rule if leading else "",
        "",
    )


def _why(specimen: Specimen) -> str:
    folders = sorted(CACHE.glob(f"preflight-{specimen.name}-0-*"), key=lambda p: p.stat().st_mtime)
    told = (folders[-1] / "output.txt").read_text() if folders else ""
    lines = [line for line in told.splitlines() if line.startswith("holter:")]
    return lines[-1].removeprefix("holter: ") if lines else "it failed"


def render(outcomes: Sequence[Judgement]) -> str:
    """The table, with every miss."""
    faults = [each for each in outcomes if not each.specimen.healthy]
    healthy = [each for each in outcomes if each.specimen.healthy]
    found = Counter(each.verdict for each in faults)
    told = found["failed"] + found["warned"]
    fine = Counter(each.verdict for each in healthy)
    lead = sum(each.leading in {each.specimen.cause, *each.specimen.accepts} for each in faults)
    lines = [
        "# How often preflight is right",
        "",
        "`python -m bench.preflight --write`: `holter try preflight` on the scripts of the zoo.",
        "Faults that arise only during training (overfitting, mistakes in validation, shrinking",
        "weights) are left out; `bench/preflight.py` lists them. These are in-sample figures:",
        "rules and checks were written with these scripts at hand.",
        "",
        f"Measured with torch {version('torch')}, one seed.",
        "",
        "| | |",
        "|---|--:|",
        f"| faults present before training | {len(faults)} |",
        f"| the right check is named | {told} ({_share(told, len(faults))}) |",
        f"| of these: by FAIL | {found['failed']} ({_share(found['failed'], len(faults))}) |",
        f"| by WARN (a hint) | {found['warned']} |",
        f"| missed | {found['missed']} |",
        f"| step not extracted | {found['declined']} |",
        f"| the cause leads the report | {lead} ({_share(lead, len(faults))}) |",
        f"| healthy scripts | {len(healthy)} |",
        f"| of these: no FAIL | {fine['clear']} |",
        f"| false FAIL | {fine['alarm']} |",
        f"| step not extracted | {fine['declined']} |",
        "",
        "## Misses, hints and false alarms",
        "",
        "| script | cause | outcome | failed checks | leading finding |",
        "|---|---|---|---|---|",
    ]
    for each in outcomes:
        if each.verdict not in ("failed", "clear"):
            said = each.declined.partition("\n")[0].replace("|", "/") or ", ".join(each.failed)
            lines.append(
                f"| {each.specimen.name} | {each.specimen.cause or 'healthy'} | {each.verdict} |"
                f" {said} | {each.leading} |"
            )
    warned = Counter(name for each in healthy for name in each.warned)
    if warned:
        which = ", ".join(f"{name} {count}" for name, count in warned.most_common())
        lines += ["", f"Warnings on healthy scripts: {which}."]
    return "\n".join(lines) + "\n"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


if __name__ == "__main__":
    sys.exit(main())
