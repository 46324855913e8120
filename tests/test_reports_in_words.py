"""No report holds empty numbers, names of signals, reasons that are none, or a rule twice."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

from holter import Run, check, diagnose
from holter.diagnosis.absent import absent
from holter.diagnosis.engine import Checkup, all_rules
from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.outcome import OutcomeState
from holter.lab.experiments import all_experiments
from holter.record.signals import CATALOGUE, Per, Signal
from holter.record.table import Series
from holter.reports import text
from holter.reports._facts import steps_read
from holter.reports.experiments import all_results
from synthetic import run_of

RECORDINGS = sorted((Path(__file__).parent.parent / ".cache" / "zoo").glob("*/run"))

_DOTTED = "|".join(re.escape(name) for name in sorted(CATALOGUE, key=len) if "." in name)
EMPTY = {
    "a number that is none": re.compile(r"(?<![\w.])-?(nan|inf)(?![\w.]| is born)"),
    "a share of nothing": re.compile(r"(?<![\d.,])0 ?% of"),
    "the name of a signal": re.compile(rf"(?<![\w.])({_DOTTED})(?![\w.])"),
    "a need without its lack": re.compile(r"\bit takes \d|\bneeded are\b|in this run\b"),
}
_NEED = re.compile(r"(\d[\d,]*) of the (\d[\d,]*) [a-z][a-z -]* needed")
_COMMANDS = re.compile(r"^ *(more|prove|next|fix|meanwhile|details:) .*", re.M)


def faults(run: Run, checkup: Checkup) -> Iterator[str]:
    """Everything in the reports of a run that a reader should not have to read."""
    for whole in (False, True):
        shown = text.render(run, checkup, whole=whole)
        flat = " ".join(shown.split())
        for what, pattern in EMPTY.items():
            if match := pattern.search(flat):
                yield f"{what}: ...{flat[max(match.start() - 90, 0) : match.end() + 30]}..."
        for there, needed in _NEED.findall(flat):
            if int(there.replace(",", "")) >= int(needed.replace(",", "")):
                yield f"a need that is met: {there} of the {needed}"
        for rule, count in _named(shown).items():
            if count > 1:
                yield f"{rule} is named {count} times"
    good = run.steps and not checkup.findings and not checkup.outcome.bad
    if good and not all_results(run) and not checkup.failures:
        lines = text.render(run, checkup).splitlines()
        # Why an outcome is unknown, or what makes it plain, may take a second line.
        if len(lines) > (4 if checkup.outcome.state is OutcomeState.LEARNED else 5):
            yield f"{len(lines)} lines without a finding"


def _named(shown: str) -> Counter[str]:
    """How often each rule is named, commands and instructions left out."""
    words = re.findall(r"(?<![\w.-])[a-z]+(?:-[a-z]+)+(?![\w-])", _COMMANDS.sub("", shown))
    return Counter(word for word in words if word in all_rules())


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.parent.name)
def test_recordings(path: Path) -> None:
    run = Run.load(path)
    assert not list(faults(run, check(run)))


_SET = ("clip.limit", "amp.scale")  # by the script or by torch, and always finite


def _values(signal: Signal, kind: str, steps: int, random: np.random.Generator) -> np.ndarray:
    if signal.name.startswith("parameter."):
        return np.full(steps, signal.name != "parameter.optimizer")
    if signal.unit in ("0/1", "share"):
        return random.integers(2, size=steps) if kind == "noise" else np.full(steps, kind == "lost")
    if signal.unit not in ("", "ratio", "nats") or signal.name in _SET:  # a count
        return np.full(steps, 1 + random.integers(4))
    if kind == "constant":
        return np.zeros(steps)
    values = np.exp(random.normal(size=steps))
    if kind == "falling":
        return values * 0.97 ** np.arange(steps)
    if kind == "breaking":
        values[steps // 2 :] = np.nan
    if kind == "infinite":
        values[:] = np.inf
    if kind == "lost":
        values[random.random(steps) < 0.3] = np.nan
    return values


def _owners(signal: Signal) -> tuple[str, ...]:
    if signal.per is Per.PARAMETER:
        return ("0.weight", "0.bias", "2.weight")
    return {
        Per.MODULE: ("0", "1"),
        Per.LOSS_FUNCTION: ("cross_entropy",),
        Per.MODEL: ("Net",),
        Per.LOADER: ("train",),
        Per.ARGUMENT: ("Net, argument 2",),
        Per.METRIC: ("val_accuracy",),
    }.get(signal.per, ("",))


def made_up(kind: str, steps: int, seed: int) -> Run:
    """A run in which most signals of a training have readings of one kind."""
    random = np.random.default_rng(seed)
    chosen: dict[Signal, Mapping[str, Series]] = {}
    for signal in CATALOGUE.values():
        if signal.per is not Per.TRIAL and signal.bins == 1 and random.random() < 0.8:
            chosen[signal] = {
                owner: Series(
                    np.arange(steps), _values(signal, kind, steps, random).astype(np.float32)
                )
                for owner in _owners(signal)
            }
    return Run.of(chosen)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("steps", [0, 1, 2, 5, 40, 300])
@pytest.mark.parametrize("kind", ["constant", "falling", "breaking", "infinite", "lost", "noise"])
def test_made_up_runs(kind: str, steps: int, seed: int) -> None:
    with np.errstate(all="ignore"):
        run = made_up(kind, steps, seed)
        checkup = check(run)
    assert not checkup.failures
    assert not list(faults(run, checkup))


def test_the_reason_of_every_signal_is_in_words() -> None:
    run = run_of({})
    for name in CATALOGUE:
        reason = absent(run, (name,))
        assert not EMPTY["the name of a signal"].search(reason)


def test_every_signal_of_an_experiment_names_a_command_that_records_it() -> None:
    run = run_of({})
    for name, experiment in all_experiments().items():
        command = "preflight" if experiment.preflight else name
        for signal in experiment.emits:
            assert f"`holter try {command}`" in absent(run, (signal.name,)), signal.name


def test_every_signal_of_a_training_has_its_own_reason() -> None:
    loss = {CATALOGUE["loss"]: {"": [1.0]}, CATALOGUE["loss.summed"]: {"mse_loss": [0.0]}}
    run = run_of({**loss, CATALOGUE["activation.mean"]: {"0": [0.0]}})
    for name, signal in CATALOGUE.items():
        if signal.per is not Per.TRIAL:
            assert absent(run, (name,)) != "a signal that the rule needs was not recorded", name
            assert name == "loss" or absent(run, (name,)) != "no loss was recorded", name


def test_signals_that_were_read_at_no_step_are_left_out() -> None:
    run = run_of({CATALOGUE["loss"]: {"": [1.0]}, CATALOGUE["time.device_idle"]: {"": []}})
    assert steps_read(run) == [(1, ["loss"])]


def test_a_healthy_report_has_an_outcome_a_cost_and_a_path(tmp_path: Path) -> None:
    run = made_up("falling", 300, 0)
    shown = text.render(run, Checkup(outcome=Facts(run).run_outcome))
    assert diagnose(Checkup()).leading is None
    assert len(shown.splitlines()) <= 4
    assert "details: holter check" in shown
