"""Run a script bare and under `holter run`, and compare the two with each other and the truth."""

import math
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.gpu.table import Specimen
from holter import Run, Severity, check, diagnose
from holter.record.events import CaptureWritten, HolterFailed
from holter.record.signals import LOSS

SCRIPTS = Path(__file__).parent / "scripts"
LIMIT = 200.0  # seconds for one process
ROUNDING = 2e-3  # relative; losses in float16 are rounded to 5e-4


@dataclass(frozen=True, slots=True)
class Process:
    """One process that has ended."""

    code: int
    output: str
    errors: str
    seconds: float

    @property
    def last_line(self) -> str:
        """What it said last on standard error."""
        return (self.errors.strip().splitlines() or [f"exit code {self.code}"])[-1]

    @property
    def losses(self) -> dict[int, float]:
        """The losses that it printed, by step."""
        lines = [line.split() for line in self.output.splitlines() if line.startswith("loss ")]
        return {int(step): float.fromhex(loss) for _, step, loss in lines}


@dataclass(frozen=True, slots=True)
class Result:
    """What holter did with one script; empty where the script failed."""

    specimen: Specimen
    failure: str = ""  # why there is nothing to judge
    output: str = ""  # "identical", "differs", "varies by itself", "not compared"
    true_steps: int = 0
    steps: int = 0
    losses: int = 0  # recorded
    wrong_losses: int = 0  # recorded with another value than the script printed
    leading: str = ""
    confidence: str = ""
    findings: tuple[str, ...] = ()
    alarms: tuple[str, ...] = ()  # warnings and errors of stable rules
    captures: tuple[int, ...] = ()
    internal_errors: tuple[str, ...] = ()
    bare_seconds: float = 0.0
    holter_seconds: float = 0.0
    report: tuple[str, ...] = field(default=(), repr=False)  # what `holter run` printed

    @property
    def verdict(self) -> str:
        """Silent, note or alarm on a healthy script; named, listed, captured or missed else."""
        if self.failure:
            return "failed"
        if self.specimen.healthy:
            return "alarm" if self.alarms else "note" if self.findings else "silent"
        accepted = set(self.specimen.accepts)
        if self.leading in accepted:
            return "named"
        if accepted & set(self.findings):
            return "listed"
        return "captured" if self.captures else "missed"

    @property
    def right(self) -> bool:
        """Whether the cause is named or captured, or a healthy script has no alarm."""
        return self.verdict in ("silent", "note", "named", "captured")

    @property
    def same_output(self) -> bool:
        """Whether watching changed nothing that could be compared."""
        return self.output in ("identical", "varies by itself", "not compared")

    @property
    def counted(self) -> bool:
        """Whether all steps were counted and all losses recorded as they were."""
        if self.specimen.replayed:
            return True
        return (
            self.steps == self.true_steps == self.losses and not self.wrong_losses
        ) or self.verdict == "failed"


def result(specimen: Specimen, *, device: str, folder: Path) -> Result:
    """Run the script twice, one after the other, and judge what holter recorded."""
    command = [str(SCRIPTS / f"{specimen.script}.py"), "--device", device]
    command += ["--deterministic"] * specimen.deterministic
    command += specimen.arguments.split()
    recording = folder / specimen.name
    watched = ["-m", "holter", "run", "--fail-on", "never", "--out", str(recording)]
    environment = _environment(folder)
    bare = _process(command, environment)
    if bare.code:
        return Result(specimen, f"the script itself fails: {bare.last_line}")
    under = _process([*watched, *command], environment)
    if under.code:
        return Result(specimen, f"it fails under holter: {under.last_line}")
    output = "identical" if under.output == bare.output else "differs"
    if not specimen.deterministic:
        output = "not compared"
    elif output == "differs" and _process(command, environment).output != bare.output:
        output = "varies by itself"
    return _judged(specimen, output, bare, under, Run.load(recording))


def _judged(specimen: Specimen, output: str, bare: Process, under: Process, run: Run) -> Result:
    checkup = check(run)
    leading = diagnose(checkup).leading
    true_losses = under.losses
    recorded = _losses(run)
    wrong = [
        step
        for step, loss in recorded.items()
        if step in true_losses and not _equal(loss, true_losses[step])
    ]
    return Result(
        specimen,
        output=output,
        true_steps=len(true_losses),
        steps=run.steps,
        losses=len(recorded),
        wrong_losses=len(wrong),
        leading=leading.rule if leading else "",
        confidence=str(leading.confidence) if leading else "",
        findings=tuple(finding.rule for finding in checkup.findings),
        alarms=tuple(finding.rule for finding in checkup.at_least(Severity.WARNING)),
        captures=tuple(event.step for event in run.events_of(CaptureWritten)),
        internal_errors=tuple(str(event.what) for event in run.events_of(HolterFailed)),
        bare_seconds=bare.seconds,
        holter_seconds=under.seconds,
        report=tuple(under.errors.strip().splitlines()),
    )


def _losses(run: Run) -> dict[int, float]:
    """Return the recorded training losses by step; every script has one optimizer."""
    if LOSS not in run:
        return {}
    return {
        int(step): float(loss)
        for series in run[LOSS].values()
        for step, loss in zip(series.steps, series.values, strict=True)
    }


def _equal(recorded: float, printed: float) -> bool:
    if math.isnan(recorded) or math.isnan(printed):
        return math.isnan(recorded) and math.isnan(printed)
    return recorded == printed or math.isclose(
        recorded, printed, rel_tol=ROUNDING, abs_tol=ROUNDING / 10
    )


def _process(command: list[str], environment: Mapping[str, str]) -> Process:
    began = time.perf_counter()
    try:
        ended = subprocess.run(
            [sys.executable, *command],
            capture_output=True,
            text=True,
            timeout=LIMIT,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Process(124, "", f"not finished after {LIMIT:.0f} s", LIMIT)
    return Process(ended.returncode, ended.stdout, ended.stderr, time.perf_counter() - began)


def _environment(folder: Path) -> dict[str, str]:
    # With one cache for all, the second run of a script gets the kernels of its first.
    return {
        **os.environ,
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
        "OMP_NUM_THREADS": "1",
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
        "TORCHINDUCTOR_COMPILE_THREADS": "2",
    }
