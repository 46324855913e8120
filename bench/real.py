"""holter on scripts as people have them: `python -m bench.real [--only PATTERN] [--write]`.

With `--keep FOLDER` the outcome of each launch is kept there with its commit, and the page is made
of all that the folder holds: launches can be measured again one by one.

Runs every script of tests/scripts/real, healthy and with each of its faults: plainly, under
`holter run`, and, where the fault can be seen before training starts, under `holter try preflight`,
each in a process of its own. Compares what the script prints with what was recorded. `--write`
renews the table in docs/real-scripts.md and keeps the one of the first measurement there.
"""

import argparse
import fnmatch
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from bench.real_kept import Kept, current_commit, keep, kept, measured_on
from bench.real_runs import Launch, Outcome, Preflight, Training, ask_preflight, launches, watch

PAGE = Path(__file__).parent.parent / "docs" / "real-scripts.md"
FIRST = "## At first sight"  # everything from here on is kept


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="*", metavar="PATTERN", help="names, as in the table")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--no-preflight", action="store_true", help="leave preflight out")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="outcomes, with their commits")
    parser.add_argument("--write", action="store_true", help="renew docs/real-scripts.md")
    args = parser.parse_args()
    chosen = [each for each in launches() if fnmatch.fnmatch(each.name, args.only)]
    commit = current_commit()
    outcomes = measured(
        chosen, workers=args.workers, with_preflight=not args.no_preflight, keep_in=args.keep
    )
    entries = [Kept(outcome, commit, commit) for outcome in outcomes]
    page = render(kept(args.keep, launches()) if args.keep else entries)
    print(page)
    if args.write:
        PAGE.write_text(page + kept_section())
    return 0


def measured(
    chosen: Sequence[Launch], *, workers: int, with_preflight: bool, keep_in: Path | None = None
) -> list[Outcome]:
    """Measure all, with a line of progress."""
    commit = current_commit()

    def one(launch: Launch) -> Outcome:
        with tempfile.TemporaryDirectory() as folder:
            return measure(launch, Path(folder), with_preflight=with_preflight)

    outcomes = []
    with ThreadPoolExecutor(workers) as pool:
        for outcome in pool.map(one, chosen):
            outcomes.append(outcome)
            if keep_in is not None:
                keep(keep_in, outcome, commit)
            done = f"{len(outcomes)}/{len(chosen)} {outcome.launch.name}"
            print(done, file=sys.stderr, flush=True)
    return outcomes


def measure(launch: Launch, folder: Path, *, with_preflight: bool = True) -> Outcome:
    """Run a script plainly, watched and under preflight, and compare."""
    outcome = watch(launch, folder)
    if with_preflight and launch.for_preflight:
        return replace(outcome, preflight=ask_preflight(launch, folder))
    return outcome


def render(entries: Sequence[Kept]) -> str:
    """Return the page: counts, a row for each launch, and the truth of each fault."""
    outcomes = [entry.outcome for entry in entries]
    healthy = [each for each in outcomes if each.launch.fault is None]
    faults = [each for each in outcomes if each.launch.fault is not None]
    lines = [
        "# Scripts in the style of public projects",
        "",
        f"`python -m bench.real --write`, {datetime.now(UTC):%Y-%m-%d}, torch {version('torch')}.",
        measured_on(entries, len(launches())),
        "",
        "The scripts of `tests/scripts/real` are written in the style of public projects, with",
        "synthetic data, and take a few seconds on one core. Each runs without holter, under",
        "`holter run` and under `holter try preflight`. `truths.py` in that folder states the",
        "truth of each; it was written before holter was run on any of them.",
        "",
        *summary(healthy, faults),
        "",
        "## Healthy scripts",
        "",
        *table(healthy),
    ]
    if faults:
        lines += ["", "## Injected faults", "", *table(faults), "", *described(faults)]
    return "\n".join(lines) + "\n"


def kept_section() -> str:
    """Return the section of the first measurement, which is never renewed."""
    text = PAGE.read_text() if PAGE.exists() else ""
    return "\n" + text[text.index(FIRST) :] if FIRST in text else ""


def summary(healthy: Sequence[Outcome], faults: Sequence[Outcome]) -> list[str]:
    """Count over all rows."""
    everything = [*healthy, *faults]
    asked = [each.preflight for each in healthy if each.preflight]
    recognised = [each for each in asked if not each.declined]
    causes = [(each, set(each.launch.fault.causes)) for each in faults if each.launch.fault]
    counts = {
        "output identical": [each.identical for each in everything],
        "step count exact": [each.exact for each in everything],
        "all printed training losses equal": [each.losses_hold for each in everything],
        "all printed validation passes equal": [each.passes_hold for each in everything],
        "healthy scripts without a finding": [not each.causes for each in healthy],
        "faults whose cause leads under `run`": [
            bool(set(each.causes[:1]) & right) for each, right in causes
        ],
        "faults named by `run` or preflight": [bool(each.told & right) for each, right in causes],
        "healthy scripts that preflight recognises": [not each.declined for each in asked],
        "of these without a FAIL": [not each.failed for each in recognised],
    }
    lines = ["| | |", "|---|--:|"]
    return lines + [f"| {what} | {sum(held)} of {len(held)} |" for what, held in counts.items()]


def table(outcomes: Sequence[Outcome]) -> list[str]:
    """Return one row for each."""
    columns = "script identical steps training validation findings exit time preflight"
    lines = [f"| {' | '.join(columns.split())} |", "|---|---|--:|--:|---|---|--:|--:|---|"]
    for each in outcomes:
        steps = f"{each.steps}" if each.exact else f"**{each.steps}** of {each.launch.script.steps}"
        lines.append(
            f"| {each.launch.name} | {'yes' if each.identical else '**no**'} | {steps}"
            f" | {training_cell(each.training)} | {validation_cell(each)} | {findings_cell(each)}"
            f" | {each.watched.code} | x{each.ratio:.2f} | {preflight_cell(each.preflight)} |"
        )
    return lines


def training_cell(training: Training) -> str:
    """Printed training losses against recorded ones, in a few words."""
    if training.equal == training.printed:
        return f"{training.equal} equal"
    missing = f", {training.missing} missing" if training.missing else ""
    return f"**{training.equal} of {training.printed}**{missing}"


def validation_cell(outcome: Outcome) -> str:
    """Validation passes against recorded ones, in a few words."""
    printed = outcome.launch.script.validation
    if not printed and not outcome.other_passes:
        return "-"
    cells = [f"{name} = {owner}" for name, owner in outcome.passes.items()]
    cells += [f"**{name} lost**" for name in printed if name not in outcome.passes]
    if outcome.launch.script.without_loss:
        cells += [f"(by holter: {owner})" for owner in outcome.other_passes]
    else:
        cells += [f"**{owner}: other values**" for owner in outcome.other_passes]
    return ", ".join(cells)


def findings_cell(outcome: Outcome) -> str:
    """The findings that are no consequences of others, the leading one first."""
    cells = [*outcome.causes[:3]]
    if len(outcome.causes) > 3:
        cells.append(f"{len(outcome.causes) - 3} more")
    if outcome.severity:
        cells.append(f"({outcome.severity})")
    if outcome.captures:
        cells.append(f"[{outcome.captures} captures]")
    if outcome.failures:
        cells.append(f"**internal error in {', '.join(outcome.failures)}**")
    return " ".join(cells) or "-"


def preflight_cell(asked: Preflight | None) -> str:
    """Return what preflight said, in a few words."""
    if asked is None:
        return ""
    if asked.declined:
        cells = [f"declined: {' '.join(asked.declined.split())[:160].replace('|', '/')}"]
    else:
        cells = [f"{len(asked.passed)} pass"]
        cells += [f"FAIL {', '.join(asked.failed)}"] if asked.failed else []
        cells += [f"WARN {', '.join(asked.warned)}"] if asked.warned else []
    cells += [f"**internal error in {', '.join(asked.broken)}**"] if asked.broken else []
    cells += [f"**changed {', '.join(asked.changed)}**"] if asked.changed else []
    return f"{'; '.join(cells)} (exit {asked.code}, {asked.seconds:.0f} s)"


def described(faults: Sequence[Outcome]) -> list[str]:
    """Return what is true of each fault."""
    known = [(each.launch.name, each.launch.fault) for each in faults if each.launch.fault]
    return [
        *("| fault | truth | right answers |", "|---|---|---|"),
        *(f"| {name} | {fault.truth} | {fault.right} |" for name, fault in known),
    ]


if __name__ == "__main__":
    sys.exit(main())
