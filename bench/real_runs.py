"""Run a script of tests/scripts/real plainly, watched and under preflight, and compare."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from holter import Checkup, HolterError, Run, check, diagnose
from holter.diagnosis.checklist import Status, rows
from holter.record.events import CaptureWritten, HolterFailed
from holter.record.signals import LOSS, VAL_LOSS
from tests.scripts.real.truths import SCRIPTS, Fault, Printed, Script

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
        """Whether every printed validation pass was recorded, and no other that computes a loss."""
        script = self.launch.script
        are_others_wrong = bool(self.other_passes) and not script.without_loss
        return set(self.passes) == set(script.validation) and not are_others_wrong

    @property
    def told(self) -> set[str]:
        """The rules that `run` or preflight reported."""
        return {*self.causes, *(self.preflight.causes if self.preflight else ())}

    @property
    def ratio(self) -> float:
        """Wall time under holter over that of the plain script, start and report included."""
        return self.watched.seconds / self.plain.seconds


def launches() -> list[Launch]:
    """Every script, healthy and with each fault, whose packages are installed."""
    return [
        Launch(script, fault)
        for script in SCRIPTS.values()
        if all(find_spec(package) for package in script.packages)
        for fault in (None, *script.faults)
    ]


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
    *arguments: str | Path, cwd: Path, variables: Mapping[str, str], timeout: float = 900
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
    if ended.code == 2 or not out.exists():
        told = [line for line in ended.err.splitlines() if line.startswith("holter: ")]
        why = told[-1].removeprefix("holter: ") if told else ended.err[-300:]
        return Preflight(ended.code, why or "no reason", changed=changed, seconds=ended.seconds)
    run = Run.load(out)
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
