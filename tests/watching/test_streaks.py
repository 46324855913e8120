"""Streaks: light steps that go like the one before are recorded as all other steps are."""

import math
import os
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

import holter
from holter.watching.blackbox import kept_edits
from holter.watching.blackbox.capture import captures_in, load_capture
from holter.watching.budget import Budget
from holter.watching.collectors.moments import Depth
from holter.watching.light_rows import LightRows
from holter.watching.streak import Streak

STEPS = 120
TIMES = ("time.", "watch.", "memory.")  # signals that differ from run to run


@pytest.fixture(autouse=True)
def light(monkeypatch):
    """Read most steps lightly, and one in fifty whole."""

    def depth(_, step):
        return Depth.FULL if step < 5 or step % 50 == 0 else Depth.LIGHT

    def next_deep(_, step):
        return next(each for each in range(step, step + 100) if depth(_, each) > Depth.LIGHT)

    monkeypatch.setattr(Budget, "depth", depth)
    monkeypatch.setattr(Budget, "next_deep", next_deep)
    monkeypatch.setattr(Budget, "alert", lambda _, step: None)


class Training:
    """A small training; a test changes what a step does."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.ReLU(), nn.Linear(8, 3))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        self.x, self.y = torch.randn(8, 4), torch.randint(3, (8,))

    def loss(self) -> torch.Tensor:
        return functional.cross_entropy(self.model(self.x), self.y)

    def step(self, number: int, before: Callable[["Training", int], None]) -> None:
        self.optimizer.zero_grad()
        loss = self.loss()
        loss.backward()
        before(self, number)
        self.optimizer.step()


def plain(training, step):
    pass


def changes_the_rate(training, step):
    training.optimizer.param_groups[0]["lr"] = 0.01 if step < 70 else 0.02


def changes_a_setting(training, step):
    training.optimizer.param_groups[0]["momentum"] = 0.9 if step < 70 else 0.8


def clips(training, step):
    if step % 17 == 3:
        nn.utils.clip_grad_norm_(training.model.parameters(), 0.1)


def accumulates(training, step):
    if step in (30, 31, 77):
        training.loss().backward()


def discards(training, step):
    if step in (30, 31, 77):
        training.optimizer.zero_grad()
        training.loss().backward()


def has_another_loss(training, step):
    if step in (30, 31, 77):
        training.optimizer.zero_grad()
        (training.model(training.x) / 2).pow(2).mean().backward()


def evaluates(training, step):
    if step % 25 == 24:
        training.model.eval()
        with torch.no_grad():
            training.loss()
        training.model.train()


def sets_modes_by_hand(training, step):
    training.model.training = step < 60


def forgets_to_train(training, step):
    if step == 60:
        training.model[1].eval()


def steps_twice(training, step):
    if step in (40, 90):
        training.optimizer.step()


def skips_updates(training, step):
    if step in (40, 41, 90):
        training.loss().backward()
        training.optimizer.zero_grad()
        training.loss().backward()


def saves(training, step):
    if step == 60:
        torch.save(training.model.state_dict(), os.devnull)


def schedules(training, step):
    if step == 0:
        training.scheduler = torch.optim.lr_scheduler.StepLR(training.optimizer, 1, 0.5)
    if step % 40 == 39:
        training.scheduler.step()


def edits(training, step):
    if step in (20, 100):
        with torch.no_grad():
            training.model[0].weight.add_(0.01)


def adds_a_group(training, step):
    if step == 60:
        fresh = nn.Parameter(torch.zeros(2))
        training.optimizer.add_param_group({"params": [fresh], "lr": 0.5})


WAYS = [
    *(plain, changes_the_rate, changes_a_setting, clips, accumulates, discards, has_another_loss),
    *(evaluates, sets_modes_by_hand, forgets_to_train, steps_twice, skips_updates, saves),
    *(schedules, edits, adds_a_group),
]


class Ordinary(Training):
    """With what most scripts have in a step; a test changes it before the update."""

    batches, clip = 29, 0.5

    def __init__(self) -> None:
        super().__init__()
        self.data = TensorDataset(
            torch.randn(8 * self.batches, 4), torch.randint(3, (8 * self.batches,))
        )
        self.loader = DataLoader(self.data, batch_size=8, shuffle=True)
        self.fetched = self.delivered()
        self.scheduler = self.schedule()

    def schedule(self) -> lr_scheduler.LRScheduler:
        return lr_scheduler.CosineAnnealingLR(self.optimizer, STEPS)

    def delivered(self) -> Iterator[list[torch.Tensor]]:
        while True:
            yield from self.loader

    def step(self, number: int, before: Callable[["Ordinary", int], None]) -> None:
        self.x, self.y = next(self.fetched)
        self.optimizer.zero_grad()
        loss = self.loss()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        before(self, number)
        self.optimizer.step()
        self.scheduler.step()
        loss.item()


class Endless(Ordinary):
    """Batches of a loader that does not know how many it has."""

    def delivered(self) -> Iterator[list[torch.Tensor]]:
        while True:
            yield from DataLoader(Samples(self.data), batch_size=8)


class Samples(IterableDataset):
    """Some samples, without a length."""

    def __init__(self, data: TensorDataset) -> None:
        self.data = data

    def __iter__(self) -> Iterator[tuple[torch.Tensor, ...]]:
        return (self.data[place] for place in range(200))


class OneCycle(Ordinary):
    """A schedule that moves the momentum as well."""

    def schedule(self) -> lr_scheduler.LRScheduler:
        return lr_scheduler.OneCycleLR(self.optimizer, 0.1, total_steps=STEPS + 1)


class FetchesAhead(Ordinary):
    """The next batch is fetched before the backward of this one."""

    def loss(self) -> torch.Tensor:
        loss = super().loss()
        if torch.is_grad_enabled():
            self.x, self.y = next(self.fetched)
        return loss


class SchedulesFirst(Ordinary):
    """The scheduler is stepped before the next batch is fetched, by hand, in both groups."""

    def __init__(self) -> None:
        super().__init__()
        first, *others = self.model.parameters()
        self.optimizer = torch.optim.AdamW([{"params": [first]}, {"params": others, "lr": 0.01}])

    def step(self, number: int, before: Callable[["Ordinary", int], None]) -> None:
        for place, group in enumerate(self.optimizer.param_groups):
            group["lr"] = 0.01 * (place + 1) / (number // 3 + 1)
        self.x, self.y = next(self.fetched)
        self.loss().backward()
        before(self, number)
        self.optimizer.step()
        self.optimizer.zero_grad()


def clips_to_another_norm(training, step):
    training.clip = 0.1 if step > 70 else 0.5


def clips_again(training, step):
    if step in (40, 41, 90):
        nn.utils.clip_grad_norm_(training.model.parameters(), 0.1)


def clips_a_part(training, step):
    if step in (40, 41, 90):
        nn.utils.clip_grad_norm_(training.model[0].parameters(), 0.1)


def clips_values(training, step):
    if step in (40, 41, 90):
        nn.utils.clip_grad_value_(training.model.parameters(), 0.1)


def schedules_again(training, step):
    if step in (40, 41, 90):
        training.scheduler.step()


def fetches_again(training, step):
    if step in (20, 21, 80):
        next(training.fetched)


def fails_to_clip(training, step):
    if step in (40, 90):
        training.loss().backward()


def validates(training, step):
    if step % 25 == 24:
        training.model.eval()
        with torch.no_grad():
            for x, y in DataLoader(training.data, batch_size=64):
                functional.cross_entropy(training.model(x), y)
        training.model.train()


def looks_at_other_data(training, step):
    if step in (20, 80):
        with torch.no_grad():
            next(training.fetched)


ORDINARY = [
    *(plain, changes_the_rate, changes_a_setting, accumulates, discards, evaluates, saves, edits),
    *(
        forgets_to_train,
        steps_twice,
        adds_a_group,
        clips_to_another_norm,
        clips_again,
        clips_values,
    ),
    *(clips_a_part, schedules_again, fetches_again, fails_to_clip, validates, looks_at_other_data),
]
KINDS = [Endless, OneCycle, FetchesAhead, SchedulesFirst]


def recorded(
    path, before, *, streaks: bool = True, steps: int = STEPS, kind=Training, **options
) -> holter.Run:
    training = kind()
    with holter.watch(training.model, training.optimizer, path, quiet=True, **options) as watch:
        streak: Streak = watch._loop.streak
        streak.is_allowed = streaks
        begun = [False]
        for step in range(steps):
            training.step(step, before)
            begun.append(streak.is_on)
            assert watch.steps == step or before in (steps_twice, skips_updates)
        assert any(begun) is (streaks and kind is not FetchesAhead)
        assert watch.backwards >= steps
    return holter.Run.load(path)


def tables_of(run: holter.Run) -> dict[str, dict[str, list[tuple[int, float]]]]:
    return {
        signal: {
            owner: [
                (step, str(value))  # NaN is equal to NaN
                for step, value in zip(s.steps.tolist(), s.values.tolist(), strict=True)
            ]
            for owner, s in table.items()
        }
        for signal, table in run.tables.items()
        if not signal.startswith(TIMES)
    }


@pytest.mark.parametrize("before", WAYS)
def test_a_streak_changes_nothing_that_is_recorded(tmp_path, before):
    compare(tmp_path, before, Training)


@pytest.mark.parametrize("before", ORDINARY)
def test_a_streak_goes_on_with_loaders_clipping_and_schedulers(tmp_path, before):
    compare(tmp_path, before, Ordinary)


@pytest.mark.parametrize("kind", KINDS)
def test_a_streak_of_other_ordinary_loops_changes_nothing(tmp_path, kind):
    compare(tmp_path, plain, kind)
    compare(tmp_path / "again", clips_again, kind)


def compare(path, before, kind) -> None:
    """Compare what is recorded with streaks and without."""
    torch.set_num_threads(1)
    with_streaks = recorded(path / "with", before, kind=kind)
    without = recorded(path / "without", before, kind=kind, streaks=False)
    assert with_streaks.steps == without.steps
    one, other = tables_of(with_streaks), tables_of(without)
    assert one.keys() == other.keys()
    for signal in one:
        assert one[signal] == other[signal], signal
    kinds = [[type(e.what).__name__ for e in run.events] for run in (with_streaks, without)]
    assert kinds[0] == kinds[1]
    steps = [[e.step for e in run.events] for run in (with_streaks, without)]
    assert steps[0] == steps[1]
    assert not with_streaks.meta.notes or with_streaks.meta.notes == without.meta.notes


def test_a_streak_lasts_a_pass_over_a_loader(tmp_path, monkeypatch):
    monkeypatch.setattr(Budget, "next_deep", lambda _, step: 1 << 62)
    monkeypatch.setattr(Budget, "depth", lambda _, step: Depth.FULL if step < 5 else Depth.LIGHT)
    monkeypatch.setattr(Ordinary, "batches", 400)
    training, on = Ordinary(), 0
    with holter.watch(training.model, training.optimizer, tmp_path, quiet=True) as watch:
        for step in range(STEPS):
            training.step(step, plain)
            on += watch._loop.streak.is_on
    assert on > STEPS - 40  # the first batches of a pass are looked at


def test_times_of_batches_are_recorded(tmp_path):
    def waits(training, step):
        time.sleep(0.001)

    class Slow(Ordinary):
        def delivered(self):
            for batch in super().delivered():
                time.sleep(0.002)
                yield batch

    run = recorded(tmp_path / "run", waits, kind=Slow)
    tables = {name: next(iter(table.values())) for name, table in run.tables.items()}
    forward, step = tables["time.forward"].values[1:], tables["time.step"].values
    assert (step > 0.003).all()
    assert np.median(forward) > 0.002  # after the batch
    assert (tables["time.data_wait"].values < 0.01).mean() > 0.9


def test_captures_of_ordinary_loops_hold_each_batch(tmp_path, monkeypatch):
    monkeypatch.setattr(kept_edits, "_LOOK_SHARE", 1e-9)  # weights are looked at once

    def spoils(training, step):
        training.given = [*vars(training).get("given", ()), training.x]
        trainings.append(training)
        if step == 88:
            with torch.no_grad():
                training.model[0].weight[0, 0] = math.nan

    trainings: list[Ordinary] = []
    recorded(tmp_path / "run", spoils, steps=100, kind=Ordinary)
    capture = load_capture(captures_in(tmp_path / "run")[0])
    assert len(capture.steps) > 8
    rates = [step.rates[0][0] for step in capture.steps if step.step < 89]
    assert len(set(rates)) == len(rates)
    for step in capture.steps:
        assert step.stepped or step.step > 88
        (fetch,) = step.fetches
        assert fetch.whole
        assert torch.equal(fetch.batch[0], trainings[0].given[step.step])


def test_times_add_up_and_memory_is_read(tmp_path):
    run = recorded(tmp_path / "run", plain)
    tables = {name: next(iter(table.values())) for name, table in run.tables.items()}
    assert tables["time.step"].steps.tolist() == list(range(1, STEPS))
    step = tables["time.step"].values[60:]
    parts = sum(
        tables[name].values[-len(step) :]
        for name in ("time.forward", "time.backward", "time.optimizer")
    )
    assert (parts <= step + 1e-6).all()
    assert (parts > 0.5 * step).mean() > 0.9
    assert (tables["watch.time"].values > 0).all()
    without = recorded(tmp_path / "without", plain, streaks=False)
    memory = next(iter(without.tables["memory.process"].values()))
    assert tables["memory.process"].steps.tolist() == memory.steps.tolist()


def test_weights_are_the_same_bit_for_bit(tmp_path):
    bare, watched = Training(), Training()
    for step in range(STEPS):
        bare.step(step, clips)
    random = torch.get_rng_state()
    watched = Training()
    with holter.watch(watched.model, watched.optimizer, tmp_path / "run", quiet=True):
        for step in range(STEPS):
            watched.step(step, clips)
    assert torch.equal(random, torch.get_rng_state())
    for one, other in zip(bare.model.parameters(), watched.model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_loss_that_is_not_finite_ends_a_streak_and_is_captured_with_the_steps_before(tmp_path):
    def spoils(training, step):
        if step == 88:
            with torch.no_grad():
                training.model[0].weight[0, 0] = math.nan

    run = recorded(tmp_path / "run", spoils, steps=100)
    (loss,) = run.tables["loss"].values()
    assert not math.isfinite(loss.values[89])
    (folder, *_) = captures_in(tmp_path / "run")
    capture = load_capture(folder)
    numbers = [step.step for step in capture.steps]
    assert 89 in numbers
    assert numbers[0] <= 73
    assert [s.step for s in capture.steps if s.step < 89 and not (s.stepped and s.rates)] == []


def test_an_exception_leaves_all_steps_before_it(tmp_path):
    def fails(training, step):
        if step == 88:
            raise ValueError(step)

    with pytest.raises(ValueError, match="88"):
        recorded(tmp_path / "run", fails, steps=100)
    (loss,) = holter.Run.load(tmp_path / "run").tables["loss"].values()
    assert loss.steps.tolist() == list(range(88))


def test_an_error_in_a_streak_never_reaches_the_training(tmp_path, monkeypatch):
    def broken(self, now):
        raise RuntimeError("no room")

    monkeypatch.setattr(LightRows, "write", broken)
    run = recorded(tmp_path / "run", plain)
    assert any("no room" in note for note in run.meta.notes)


def test_a_forked_child_leaves_the_streak_alone(tmp_path):
    if not hasattr(os, "fork"):
        pytest.skip("no forks")

    def forks(training, step):
        if step == 88:
            child = os.fork()
            if child == 0:
                for _ in range(3):
                    training.step(0, plain)
                os._exit(0)
            os.waitpid(child, 0)

    run = recorded(tmp_path / "run", forks)
    (loss,) = run.tables["loss"].values()
    assert loss.steps.tolist() == list(range(STEPS))
