"""holter on scripts as people have them: `python -m bench.real [--only PATTERN] [--write]`.

Runs every script of tests/scripts/real, healthy and with each of its faults: plainly, under
`holter run`, and, where the fault can be seen before training starts, under `holter try preflight`,
each in a process of its own. Compares what the script prints with what was recorded. `--write`
renews the table in docs/real-scripts.md and keeps the one of the first measurement there.
"""

import argparse
import fnmatch
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from holter import HolterError, Run, check, diagnose
from holter.diagnosis.checklist import Status, rows
from holter.record.events import CaptureWritten, HolterFailed
from holter.record.signals import LOSS, VAL_LOSS
from tests.scripts.real.truths import SCRIPTS, Fault, Printed, Script

PAGE = Path(__file__).parent.parent / "docs" / "real-scripts.md"
FIRST = "## At first sight"  # everything from here on is kept
TOLERANCE = 1e-4  # relative: losses are recorded as float32, scripts average in another order


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended."""

    code: int
    out: str
    err: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Training:
    """Printed training losses against recorded ones."""

    printed: int
    equal: int
    missing: int  # of which no loss was recorded
    kept: int  # steps with a recorded loss


@dataclass(frozen=True, slots=True)
class Preflight:
    """What `holter try preflight` said."""

    code: int
    declined: str  # why the step was not extracted, or nothing
    failed: tuple[str, ...] = ()
    warned: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()  # rules of all findings, the leading one first
    broken: tuple[str, ...] = ()  # checks in which holter itself failed
    changed: tuple[str, ...] = ()  # files of the user that it changed
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """One script, healthy or with one fault."""

    script: Script
    fault: Fault | None
    plain: Ended
    watched: Ended
    steps: int = 0
    training: Training = Training(0, 0, 0, 0)
    passes: Mapping[str, str] = field(default_factory=dict)  # recorded name by printed pass
    other_passes: tuple[str, ...] = ()  # recorded, but not what the script printed
    causes: tuple[str, ...] = ()  # rules of the findings that are no consequences, leading first
    severity: str = ""  # the worst
    captures: int = 0
    failures: tuple[str, ...] = ()  # of holter itself
    preflight: Preflight | None = None

    @property
    def name(self) -> str:
        """The script, and its fault."""
        return f"{self.script.name} {self.fault.name}" if self.fault else self.script.name

    @property
    def identical(self) -> bool:
        """Whether the script printed the same, and ended the same but for holter's verdict."""
        ended = self.watched.code == self.plain.code or (self.plain.code, self.watched.code) == (
            0,
            1,
        )
        return self.watched.out == self.plain.out and ended

    @property
    def ratio(self) -> float:
        """Wall time under holter over that of the plain script, start and report included."""
        return self.watched.seconds / self.plain.seconds


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="*", metavar="PATTERN", help="names, as in the table")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--no-preflight", action="store_true")
    parser.add_argument("--write", action="store_true", help="renew docs/real-scripts.md")
    parser.add_argument("--first", action="store_true", help="write the first-sight section")
    args = parser.parse_args()
    chosen = [each for each in launches() if fnmatch.fnmatch(name_of(*each), args.only)]
    outcomes = list(
        measured(chosen, workers=args.workers, with_preflight=not args.no_preflight)
    )
    page = render(outcomes)
    print(page)
    if args.first:
        write_first(outcomes)
    elif args.write:
        kept = PAGE.read_text().partition(FIRST) if PAGE.exists() else ("", "", "")
        PAGE.write_text(page + (f"\n{FIRST}{kept[2]}" if kept[1] else ""))
    return 0


def launches() -> list[tuple[Script, Fault | None]]:
    """Every script, healthy and with each fault, whose packages are installed."""
    return [
        (script, fault)
        for script in SCRIPTS.values()
        if all(find_spec(package) for package in script.packages)
        for fault in (None, *script.faults)
    ]


def name_of(script: Script, fault: Fault | None) -> str:
    """Return the name of a row."""
    return f"{script.name} {fault.name}" if fault else script.name


def measured(
    chosen: Sequence[tuple[Script, Fault | None]], *, workers: int, with_preflight: bool
) -> Iterator[Outcome]:
    """Measure each in turn, with a line of progress."""

    def one(launch: tuple[Script, Fault | None]) -> Outcome:
        with tempfile.TemporaryDirectory() as folder:
            return measure(*launch, Path(folder), with_preflight=with_preflight)

    with ThreadPoolExecutor(workers) as pool:
        for done, outcome in enumerate(pool.map(one, chosen), 1):
            print(f"{done}/{len(chosen)} {outcome.name}", file=sys.stderr, flush=True)
            yield outcome


def measure(
    script: Script, fault: Fault | None, folder: Path, *, with_preflight: bool = True
) -> Outcome:
    """Run a script plainly, watched and under preflight, and compare."""
    arguments = list(script.arguments)
    variables = dict(script.variables)
    if fault is not None and script.by_variable:
        variables["FAULT"] = fault.name
    elif fault is not None:
        arguments += fault.arguments if fault.arguments is not None else ("--fault", fault.name)
    plain_folder, watched_folder = folder / "plain", folder / "watched"
    plain_folder.mkdir(parents=True)
    if script.first is not None:
        python(script.path, *script.first, cwd=plain_folder, variables=variables)
    shutil.copytree(plain_folder, watched_folder)
    plain = python(script.path, *arguments, cwd=plain_folder, variables=variables)
    run_folder = folder / "run"
    holter_run = ("-m", "holter", "run", "--out", run_folder)
    watched = python(
        *holter_run, script.path, *arguments, cwd=watched_folder, variables=variables
    )
    preflight = None
    if with_preflight and (fault is None or fault.before):
        preflight = ask_preflight(script, arguments, plain_folder, folder, variables)
    try:
        run = Run.load(run_folder)
    except HolterError:
        return Outcome(script, fault, plain, watched, preflight=preflight)
    checkup = check(run)
    diagnosis = diagnose(checkup)
    leading = diagnosis.leading
    findings = [finding for finding in checkup.findings if not finding.preview]
    causes = [leading.rule] if leading else []
    causes += [finding.rule for finding in findings if finding.rule not in causes]
    passes, others = compare_validation(script, plain.out, run)
    return Outcome(
        script,
        fault,
        plain,
        watched,
        steps=run.steps,
        training=compare_training(script.train, plain.out, run),
        passes=passes,
        other_passes=others,
        causes=tuple(causes),
        severity=str(max((finding.severity for finding in findings), default="")),
        captures=len(run.events_of(CaptureWritten)),
        failures=tuple(event.what.where for event in run.events_of(HolterFailed)),
        preflight=preflight,
    )


def python(
    *arguments: str | Path, cwd: Path, variables: Mapping[str, str], timeout: float = 300
) -> Ended:
    """Run this Python with one thread, as a user would, and wait."""
    unset = ("FAULT", "RANK", "WORLD_SIZE", "NO_COLOR", "FORCE_COLOR", "HOLTER_DEBUG")
    kept = {name: value for name, value in os.environ.items() if name not in unset}
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env={**kept, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", **variables},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr, time.perf_counter() - began)


def ask_preflight(
    script: Script,
    arguments: Sequence[str],
    user_folder: Path,
    folder: Path,
    variables: Mapping[str, str],
) -> Preflight:
    """Run preflight where the script has run before, so that its files are there to be kept."""
    before = hashes(user_folder)
    out = folder / "preflight"
    command = ("-m", "holter", "try", "preflight", "--out", out)
    ended = python(*command, script.path, *arguments, cwd=user_folder, variables=variables)
    after = hashes(user_folder)
    changed = tuple(sorted(name for name in before | after if before.get(name) != after.get(name)))
    try:
        run = Run.load(out)
    except HolterError:
        said = [line for line in ended.err.splitlines() if line.startswith("holter: ")]
        why = said[-1].removeprefix("holter: ") if said else ended.err[-300:]
        return Preflight(ended.code, why or "no reason", changed=changed, seconds=ended.seconds)
    checkup = check(run)
    leading = diagnose(checkup).leading
    answers = rows(run, checkup)

    def named(status: Status) -> tuple[str, ...]:
        return tuple(row.check.name for row in answers if row.status is status)

    rules = [leading.rule] if leading else []
    rules += [each.rule for each in checkup.findings if each.rule not in rules]
    return Preflight(
        ended.code,
        "",
        failed=named(Status.FAIL),
        warned=named(Status.WARN),
        passed=named(Status.PASS),
        causes=tuple(rules),
        broken=tuple(event.what.where for event in run.events_of(HolterFailed)),
        changed=changed,
        seconds=ended.seconds,
    )


def hashes(folder: Path) -> dict[str, str]:
    """Hash the files of a folder, except holter's runs."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and "holter-runs" not in path.parts and "__pycache__" not in path.parts
    }


def numbers(pattern: str, out: str) -> list[float]:
    """Return what a script printed."""
    return [float(found) for found in re.findall(pattern, out, re.MULTILINE)]


def compare_training(printed: Iterable[Printed], out: str, run: Run) -> Training:
    """Compare each printed training loss with the mean of the recorded ones that it stands for."""
    recorded: dict[int, list[float]] = {}
    if LOSS in run:
        for series in run[LOSS].values():
            for step, value in zip(series.steps.tolist(), series.values.tolist(), strict=True):
                recorded.setdefault(step, []).append(value)
    count = equal = missing = 0
    for each in printed:
        values = numbers(each.pattern, out)
        assert len(values) == len(each.spans), (each.pattern, len(values), len(each.spans))
        count += len(values)
        results = [
            agrees(value, [recorded.get(step, []) for step in range(first, last + 1)], each.units)
            for value, (first, last) in zip(values, each.spans, strict=True)
        ]
        equal += results.count(True)
        missing += results.count(None)
    return Training(count, equal, missing, len(recorded))


def agrees(
    printed: float, recorded: Sequence[Sequence[float]], units: Sequence[float]
) -> bool | None:
    """Whether the mean of recorded losses is the printed one; None where one is missing."""
    if not all(recorded):
        return None
    means = {float(np.mean([values[0] for values in recorded]))}
    if len(recorded) == 1:  # several optimizers of one step: one of them
        means |= set(recorded[0])
    return any(same(mean, unit * printed) for mean in means for unit in units)


def same(one: float, other: float) -> bool:
    """Whether two losses are equal, as far as float32 can tell."""
    return bool(np.isclose(one, other, rtol=TOLERANCE, atol=1e-6, equal_nan=True))


def compare_validation(
    script: Script, out: str, run: Run
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Find the recorded pass for each printed one, and the recorded passes that match none."""
    recorded = (
        {owner: series.values.tolist() for owner, series in run[VAL_LOSS].items()}
        if VAL_LOSS in run
        else {}
    )
    passes = {}
    for name, pattern in script.validation.items():
        printed = numbers(pattern, out)
        assert printed, (script.name, pattern)
        for owner, values in recorded.items():
            if len(values) == len(printed) and any(
                all(same(a, unit * b) for a, b in zip(values, printed, strict=True))
                for unit in script.validation_units
            ):
                passes[name] = owner or "(unnamed)"
                break
    taken = set(passes.values())
    others = tuple(owner or "(unnamed)" for owner in recorded)
    return passes, tuple(owner for owner in others if owner not in taken)


def render(outcomes: Sequence[Outcome]) -> str:
    """The page: summary, table, and what each fault is."""
    healthy = [each for each in outcomes if each.fault is None]
    faults = [each for each in outcomes if each.fault is not None]
    lines = [
        "# Scripts as people have them",
        "",
        f"`python -m bench.real --write`, {datetime.now(UTC):%Y-%m-%d}, torch {version('torch')},"
        " one thread.",
        "",
        "The scripts of `tests/scripts/real` are written in the style of public projects, with",
        "synthetic data, small enough for a few seconds on one core. Each runs plainly, under",
        "`holter run` and under `holter try preflight`. `truths.py` in that folder says what is",
        "true of each; it was written before holter was run on any of them.",
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


def summary(healthy: Sequence[Outcome], faults: Sequence[Outcome]) -> list[str]:
    """Counts over all rows."""
    rows_ = [*healthy, *faults]
    asked = [each.preflight for each in healthy if each.preflight]
    named = [each for each in faults if set(each.causes[:1]) & set(each.fault.causes)]
    told = [each for each in faults if said(each) & set(each.fault.causes)]

    def share(part: int, whole: int) -> str:
        return f"{part} of {whole}"

    return [
        "| | |",
        "|---|--:|",
        f"| output identical | {share(sum(each.identical for each in rows_), len(rows_))} |",
        f"| step count exact | {share(sum(each.steps == each.script.steps for each in rows_), len(rows_))} |",
        f"| all printed training losses equal | {share(sum(losses_hold(each) for each in rows_), len(rows_))} |",
        f"| all printed validation passes equal | {share(sum(passes_hold(each) for each in rows_), len(rows_))} |",
        f"| healthy scripts without a finding | {share(sum(not each.causes for each in healthy), len(healthy))} |",
        f"| faults whose cause leads under `holter run` | {share(len(named), len(faults))} |",
        f"| faults named by `run` or preflight | {share(len(told), len(faults))} |",
        f"| healthy scripts that preflight recognises | {share(sum(not each.declined for each in asked), len(asked))} |",
        f"| of these with a FAIL | {sum(bool(each.failed) for each in asked)} |",
    ]


def said(outcome: Outcome) -> set[str]:
    """The rules that `run` or preflight reported."""
    return {*outcome.causes, *(outcome.preflight.causes if outcome.preflight else ())}


def losses_hold(outcome: Outcome) -> bool:
    """Whether every printed training loss was recorded."""
    return outcome.training.equal == outcome.training.printed > 0


def passes_hold(outcome: Outcome) -> bool:
    """Whether every printed validation pass was recorded, and nothing else."""
    return set(outcome.passes) == set(outcome.script.validation) and not outcome.other_passes


def table(outcomes: Sequence[Outcome]) -> list[str]:
    """One row for each."""
    lines = [
        "| script | identical | steps | training losses | validation | findings | exit | time |"
        " preflight |",
        "|---|---|--:|--:|---|---|--:|--:|---|",
    ]
    for each in outcomes:
        exact = each.steps == each.script.steps
        lines.append(
            f"| {each.name} | {'yes' if each.identical else '**no**'}"
            f" | {each.steps if exact else f'**{each.steps}** of {each.script.steps}'}"
            f" | {training_cell(each.training)} | {validation_cell(each)} | {findings_cell(each)}"
            f" | {each.watched.code} | x{each.ratio:.2f} | {preflight_cell(each)} |"
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
    if not outcome.script.validation and not outcome.other_passes:
        return "-"
    cells = [f"{name} = {owner}" for name, owner in outcome.passes.items()]
    cells += [f"**{name} lost**" for name in outcome.script.validation if name not in outcome.passes]
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


def preflight_cell(outcome: Outcome) -> str:
    """What preflight said, in a few words."""
    asked = outcome.preflight
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
    """What is true of each fault."""
    lines = ["| fault | truth | right answers |", "|---|---|---|"]
    lines += [f"| {each.name} | {each.fault.truth} | {each.fault.right} |" for each in faults]
    return lines


def write_first(outcomes: Sequence[Outcome]) -> None:
    """Write the section of the first measurement, which later ones keep."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    healthy = [each for each in outcomes if each.fault is None]
    faults = [each for each in outcomes if each.fault is not None]
    lines = [
        f"{FIRST}, {commit}",
        "",
        "The first measurement, with the code as it was before it had been run on any of these",
        "scripts. This section is not renewed.",
        "",
        *table(healthy),
        "",
        *table(faults),
    ]
    before = PAGE.read_text().partition(FIRST)[0] if PAGE.exists() else ""
    PAGE.write_text(before + "\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
