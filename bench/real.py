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
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from holter import Checkup, HolterError, Run, check, diagnose
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
class Launch:
    """A script, healthy or with one fault."""

    script: Script
    fault: Fault | None

    @property
    def name(self) -> str:
        """The script, and its fault."""
        return f"{self.script.name} {self.fault.name}" if self.fault else self.script.name

    @property
    def arguments(self) -> tuple[str, ...]:
        """What the script is called with."""
        if self.fault is None or self.script.by_variable:
            return self.script.arguments
        return (*self.script.arguments, "--fault", self.fault.name)

    @property
    def variables(self) -> dict[str, str]:
        """What is added to the environment."""
        told = {"FAULT": self.fault.name} if self.fault and self.script.by_variable else {}
        return {**self.script.variables, **told}

    @property
    def for_preflight(self) -> bool:
        """Whether preflight can know: a healthy script, or a fault present before training."""
        return self.fault is None or self.fault.before


@dataclass(frozen=True, slots=True)
class Outcome:
    """What holter recorded and said of one launch."""

    launch: Launch
    plain: Ended
    watched: Ended
    steps: int = 0
    training: Training = Training(0, 0, 0, 0)
    passes: Mapping[str, str] = field(default_factory=dict)  # recorded name by printed pass
    other_passes: tuple[str, ...] = ()  # recorded, but not what the script printed
    causes: tuple[str, ...] = ()  # rules of all findings, the leading one first
    severity: str = ""  # the worst
    captures: int = 0
    failures: tuple[str, ...] = ()  # of holter itself
    preflight: Preflight | None = None

    @property
    def identical(self) -> bool:
        """Whether the script printed the same, and ended the same but for holter's verdict."""
        verdict = self.plain.code == 0 and self.watched.code == 1
        ended = self.watched.code == self.plain.code or verdict
        return self.watched.out == self.plain.out and ended

    @property
    def exact(self) -> bool:
        """Whether all steps were counted."""
        return self.steps == self.launch.script.steps

    @property
    def losses_hold(self) -> bool:
        """Whether every printed training loss was recorded."""
        return self.training.equal == self.training.printed > 0

    @property
    def passes_hold(self) -> bool:
        """Whether every printed validation pass was recorded, and nothing else."""
        return set(self.passes) == set(self.launch.script.validation) and not self.other_passes

    @property
    def told(self) -> set[str]:
        """The rules that `run` or preflight reported."""
        return {*self.causes, *(self.preflight.causes if self.preflight else ())}

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
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--no-preflight", action="store_true", help="leave preflight out")
    parser.add_argument("--write", action="store_true", help="renew docs/real-scripts.md")
    args = parser.parse_args()
    chosen = [each for each in launches() if fnmatch.fnmatch(each.name, args.only)]
    outcomes = measured(chosen, workers=args.workers, with_preflight=not args.no_preflight)
    page = render(outcomes)
    print(page)
    if args.write:
        PAGE.write_text(page + kept_section())
    return 0


def launches() -> list[Launch]:
    """Every script, healthy and with each fault, whose packages are installed."""
    return [
        Launch(script, fault)
        for script in SCRIPTS.values()
        if all(find_spec(package) for package in script.packages)
        for fault in (None, *script.faults)
    ]


def measured(chosen: Sequence[Launch], *, workers: int, with_preflight: bool) -> list[Outcome]:
    """Measure all, with a line of progress."""

    def one(launch: Launch) -> Outcome:
        with tempfile.TemporaryDirectory() as folder:
            return measure(launch, Path(folder), with_preflight=with_preflight)

    outcomes = []
    with ThreadPoolExecutor(workers) as pool:
        for outcome in pool.map(one, chosen):
            outcomes.append(outcome)
            done = f"{len(outcomes)}/{len(chosen)} {outcome.launch.name}"
            print(done, file=sys.stderr, flush=True)
    return outcomes


def measure(launch: Launch, folder: Path, *, with_preflight: bool = True) -> Outcome:
    """Run a script plainly, watched and under preflight, and compare."""
    outcome = watch(launch, folder)
    if with_preflight and launch.for_preflight:
        return replace(outcome, preflight=ask_preflight(launch, folder))
    return outcome


def watch(launch: Launch, folder: Path) -> Outcome:
    """Run a script plainly and under `holter run`, in a folder each, and compare."""
    script = launch.script
    (folder / "plain").mkdir(parents=True)
    if script.first is not None:
        python(script.path, *script.first, cwd=folder / "plain", variables=script.variables)
    shutil.copytree(folder / "plain", folder / "watched")
    command = (script.path, *launch.arguments)
    plain = python(*command, cwd=folder / "plain", variables=launch.variables)
    watched = python(
        *("-m", "holter", "run", "--out", folder / "run"),
        *command,
        cwd=folder / "watched",
        variables=launch.variables,
    )
    try:
        run = Run.load(folder / "run")
    except HolterError:
        return Outcome(launch, plain, watched)
    checkup = check(run)
    passes, others = compare_validation(script, plain.out, run)
    findings = [finding for finding in checkup.findings if not finding.preview]
    return Outcome(
        launch,
        plain,
        watched,
        steps=run.steps,
        training=compare_training(script.train, plain.out, run),
        passes=passes,
        other_passes=others,
        causes=leading_first(checkup),
        severity=str(max((finding.severity for finding in findings), default="")),
        captures=len(run.events_of(CaptureWritten)),
        failures=tuple(event.what.where for event in run.events_of(HolterFailed)),
    )


def leading_first(checkup: Checkup) -> tuple[str, ...]:
    """Return the rules of the findings, that of the leading one first; preview rules left out."""
    leading = diagnose(checkup).leading
    found = [finding.rule for finding in checkup.findings if not finding.preview]
    return tuple(dict.fromkeys([leading.rule, *found] if leading else found))


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


def ask_preflight(launch: Launch, folder: Path) -> Preflight:
    """Run preflight where the script has run before, so that its files are there to be kept."""
    here, out = folder / "plain", folder / "preflight"
    before = hashes(here)
    ended = python(
        *("-m", "holter", "try", "preflight", "--out", out),
        *(launch.script.path, *launch.arguments),
        cwd=here,
        variables=launch.variables,
    )
    after = hashes(here)
    changed = tuple(sorted(name for name in before | after if before.get(name) != after.get(name)))
    try:
        run = Run.load(out)
    except HolterError:
        told = [line for line in ended.err.splitlines() if line.startswith("holter: ")]
        why = told[-1].removeprefix("holter: ") if told else ended.err[-300:]
        return Preflight(ended.code, why or "no reason", changed=changed, seconds=ended.seconds)
    checkup = check(run)
    answers = rows(run, checkup)

    def named(status: Status) -> tuple[str, ...]:
        return tuple(row.check.name for row in answers if row.status is status)

    return Preflight(
        ended.code,
        "",
        failed=named(Status.FAIL),
        warned=named(Status.WARN),
        passed=named(Status.PASS),
        causes=leading_first(checkup),
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
    """Return the page: counts, a row for each launch, and the truth of each fault."""
    healthy = [each for each in outcomes if each.launch.fault is None]
    faults = [each for each in outcomes if each.launch.fault is not None]
    lines = [
        "# Scripts as people have them",
        "",
        f"`python -m bench.real --write`, {datetime.now(UTC):%Y-%m-%d}, torch {version('torch')}.",
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
