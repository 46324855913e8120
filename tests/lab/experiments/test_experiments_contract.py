"""What every experiment must satisfy, whoever wrote it."""

import inspect
import re
from pathlib import Path

import pytest
import torch
from setups import KINDS

from holter import check
from holter.diagnosis.engine import all_rules
from holter.lab.experiments import Experiment, all_experiments
from holter.lab.running import run
from holter.lab.setup import Setup
from holter.lab.state import State
from holter.record.events import ExperimentFailed
from holter.record.signals import CATALOGUE, CURE_LOSS, REPLAY_LOSS, REPLAY_NORM, Per

experiments = pytest.mark.parametrize("each", all_experiments().values(), ids=lambda e: e.name)
kinds = pytest.mark.parametrize("kind", KINDS)


def after_a_step(setup: Setup) -> list[torch.Tensor]:
    """Train for one more step: weights, buffers and random numbers that follow."""
    setup.step(next(setup.endless()))
    states = [each for model in setup.models.values() for each in model.state_dict().values()]
    return [*(each.detach().clone().float() for each in states), torch.rand(3)]


def warmed_up(kind: str) -> Setup:
    """A setup in the middle of its training: optimizer states and gradients are there."""
    setup = KINDS[kind]()
    for batch in setup.batches(3):
        setup.step(batch)
    torch.manual_seed(1)
    return setup


@experiments
def test_is_named_like_its_file_and_says_what_it_asks(each: Experiment) -> None:
    module = inspect.getmodule(each.function)
    assert module is not None
    assert module.__name__ == f"holter.lab.experiments.{each.name.replace('-', '_')}"
    assert module.__doc__
    assert each.title.endswith(("?", "."))
    assert all(re.search(rf"`{option}`", each.doc) for option in each.options)


@experiments
def test_emits_signals_of_trials(each: Experiment) -> None:
    assert each.emits
    assert all(CATALOGUE[signal.name] is signal for signal in each.emits)
    assert all(signal.per is Per.TRIAL for signal in each.emits)


@experiments
@kinds
def test_the_next_step_is_the_same_and_what_it_writes_can_be_checked(
    each: Experiment, kind: str, tmp_path: Path
) -> None:
    alone = after_a_step(warmed_up(kind))
    setup = warmed_up(kind)
    before = State(setup).digest
    made = run(each.name, setup, tmp_path / "run")
    assert State(setup).digest == before
    for ours, theirs in zip(after_a_step(setup), alone, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0, equal_nan=True)
    assert not made.events_of(ExperimentFailed)
    assert not check(made).failures


@experiments
def test_a_crash_restores_too(
    each: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup = warmed_up("with_batch_norm_dropout_and_schedule")
    before, calls = State(setup).digest, 0
    forward = type(setup.model).forward

    def sometimes(self: torch.nn.Module, *args: object) -> object:
        nonlocal calls
        calls += self is setup.model
        if calls == 3:
            raise RuntimeError("no more")
        return forward(self, *args)

    monkeypatch.setattr(type(setup.model), "forward", sometimes)
    run(each.name, setup, tmp_path / "run")
    monkeypatch.undo()
    assert State(setup).digest == before


OF_OTHERS = {REPLAY_LOSS, REPLAY_NORM, CURE_LOSS}  # of replays and cures


def test_every_signal_of_a_trial_has_an_experiment() -> None:
    emitted = {signal.name for each in all_experiments().values() for signal in each.emits}
    others = {signal.name for signal in OF_OTHERS}
    assert {s.name for s in CATALOGUE.values() if s.per is Per.TRIAL} == emitted | others


def test_rules_of_trials_have_what_they_need_from_one_experiment() -> None:
    for rule in all_rules().values():
        needed = {signal for signal in rule.needs if signal.per is Per.TRIAL}
        if needed - OF_OTHERS:
            emitters = [e for e in all_experiments().values() if needed <= set(e.emits)]
            assert emitters, rule.name
