"""What every collector, present and future, has to keep."""

import functools
import gc
import sys
import tempfile
import weakref
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.nn import functional
from torch.optim import Optimizer, lr_scheduler, optimizer
from torch.utils.data import DataLoader, dataloader

from holter import Run
from holter.record.events import HolterFailed
from holter.record.signals import (
    CATALOGUE,
    LOSS,
    LR,
    MEMORY_ALLOCATED,
    MEMORY_PEAK,
    MEMORY_RESERVED,
    MEMORY_RETRIES,
    WATCH_DEVICE_TIME,
    WATCH_TIME,
    Per,
)
from holter.watching.budget import Budget
from holter.watching.collectors import STEP, Collector, Reading, all_collectors
from holter.watching.collectors.device_phases import DevicePhases
from holter.watching.collectors.lane import LightCollector
from holter.watching.collectors.moments import BackwardBegins, BeforeUpdate, Depth
from watching.collectors.trainings import (
    TRAININGS,
    everything,
    gan,
    open_watch,
    record,
    rng_states,
    seed,
)

NAMES = [type(each).__name__ for each in all_collectors()]
LIGHT = [type(each).__name__ for each in all_collectors() if isinstance(each, LightCollector)]
OTHERS = [type(each).__name__ for each in all_collectors() if isinstance(each, Collector)]


def chosen(name):
    """A fresh collector by name; all of them for "all"."""
    return [each for each in all_collectors() if name in ("all", type(each).__name__)]


@functools.cache
def unwatched(make):
    seed()
    training = make()
    training.loop(lambda **_: None)
    return training.weights(), rng_states()


class Overheard:
    """A collector seen through: keeps what it gave."""

    def __init__(self, inner, heard):
        self.emits, self.at, self.depth = inner.emits, inner.at, inner.depth
        self.wakes_at = inner.wakes_at
        self._inner, self._heard = inner, heard

    def read(self, moment):
        for reading in self._inner.read(moment):
            if isinstance(reading, Reading):  # and no event
                self._heard.append((type(self._inner).__name__, reading))
            yield reading


@functools.cache
def everything_emitted():
    """All readings of all trainings, each with its collector."""
    heard = []
    for make in TRAININGS:
        with tempfile.TemporaryDirectory() as folder:
            record(
                Path(folder) / "run",
                make,
                [Overheard(each, heard) for name in OTHERS for each in chosen(name)],
            )
    return heard


def test_there_are_collectors():
    assert len(NAMES) >= 12
    assert len(set(NAMES)) == len(NAMES)


@pytest.fixture(params=["whole", "sampled"])
def regime(request, monkeypatch):
    """Read all steps whole, or to all depths in turn."""
    if request.param == "sampled":
        turns = (Depth.LIGHT, Depth.FULL, Depth.LIGHT, Depth.REGULAR, Depth.LIGHT)
        monkeypatch.setattr(Budget, "depth", lambda _, step: turns[step % len(turns)])
    return request.param


@pytest.mark.parametrize("make", TRAININGS, ids=lambda make: make.__name__)
@pytest.mark.parametrize(
    ("name", "regime"),
    [*((name, "whole") for name in [*NAMES, "all"]), ("all", "sampled")],
    indirect=["regime"],
)
@pytest.mark.usefixtures("regime")
def test_training_is_bit_identical(name, make, tmp_path):
    training, run, generators = record(tmp_path / "run", make, chosen(name))
    weights, untouched = unwatched(make)
    assert all(torch.equal(a, b) for a, b in zip(training.weights(), weights, strict=True))
    assert generators == untouched
    assert run.meta.notes == () or "failed" not in str(run.meta.notes)
    assert run.steps > 0


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_declared_is_emitted(name):
    declared = {signal for each in chosen(name) for signal in each.emits}
    emitted = {reading.signal for who, reading in everything_emitted() if who == name}
    assert emitted == declared
    assert all(CATALOGUE[each.name] is each for each in declared)


@functools.cache
def written_by_the_lane():
    """The signals in the runs of all trainings, recorded by the light collectors alone."""
    written = set()
    for make in TRAININGS:
        with tempfile.TemporaryDirectory() as folder:
            light = [each for name in LIGHT for each in chosen(name)]
            written |= set(record(Path(folder) / "run", make, light)[1].tables)
    return written - {WATCH_TIME.name}


# Of trainings on a GPU; `tests/watching/test_timing_cuda.py` sees that they are written.
OF_A_GPU = {
    *DevicePhases.emits,
    *(MEMORY_ALLOCATED, MEMORY_RESERVED, MEMORY_PEAK, MEMORY_RETRIES),
}


def declared_by(name):
    return {s.name for each in chosen(name) for s in each.emits if s not in OF_A_GPU}


@pytest.mark.parametrize("name", LIGHT)
def test_what_a_light_collector_declares_is_written(name):
    assert declared_by(name) <= written_by_the_lane()


def test_the_lane_writes_nothing_that_is_not_declared():
    assert written_by_the_lane() == {signal for name in LIGHT for signal in declared_by(name)}


@pytest.mark.parametrize("name", OTHERS)
def test_a_value_for_each_owner(name):
    for who, reading in everything_emitted():
        if who == name:
            expected = len(reading.owners) if reading.at is None else len(reading.at)
            assert len(reading.values) == expected, reading.signal
            assert len(set(reading.owners)) == len(reading.owners), reading.signal
            if reading.at is not None:
                assert all(0 <= place < len(reading.owners) for place in reading.at)


def test_no_two_collectors_emit_one_signal():
    declared = [signal.name for each in all_collectors() for signal in each.emits]
    assert len(declared) == len(set(declared))
    of_trainings = {each.name for each in CATALOGUE.values() if each.per is not Per.TRIAL}
    assert set(declared) | {WATCH_TIME.name, WATCH_DEVICE_TIME.name} == of_trainings


def entry_points():
    """Everything in torch that a watch might have touched."""
    found = {
        ("autograd", "backward"): torch.autograd.backward,
        ("Tensor", "backward"): torch.Tensor.backward,
        ("Optimizer", "add_param_group"): vars(Optimizer)["add_param_group"],
        ("Module", "train"): vars(nn.Module)["train"],
        ("Module", "load_state_dict"): vars(nn.Module)["load_state_dict"],
        ("torch", "load"): torch.load,
        ("torch", "save"): torch.save,
        ("gc", "callbacks"): len(gc.callbacks),
        ("distributed", "init_process_group"): torch.distributed.init_process_group,
        ("Join", "__enter__"): vars(Join)["__enter__"],
        ("Module", "__call__"): nn.Module.__call__,
        ("DataLoader", "__iter__"): vars(DataLoader)["__iter__"],
        ("iterator", "__next__"): vars(dataloader._BaseDataLoaderIter)["__next__"],
        ("torch", "nan_to_num"): torch.nan_to_num,
        ("torch", "nan_to_num_"): torch.nan_to_num_,
        ("Tensor", "its own"): len(vars(torch.Tensor)),
    }
    for owner in (functional, nn.utils, nn.utils.clip_grad, torch.amp.GradScaler):
        found |= {(str(owner), name): each for name, each in vars(owner).items() if callable(each)}
    for kind in vars(lr_scheduler).values():
        if isinstance(kind, type) and "step" in vars(kind):
            found[kind.__name__, "step"] = vars(kind)["step"]
    return found


def global_hooks():
    module = sys.modules["torch.nn.modules.module"]
    return {
        **{name: dict(each) for name, each in vars(module).items() if name.startswith("_global_")
           and hasattr(each, "keys")},
        **{name: dict(each) for name, each in vars(optimizer).items()
           if name.startswith("_global_") and hasattr(each, "keys")},
    }  # fmt: skip


@pytest.mark.usefixtures("regime")
@pytest.mark.parametrize("make", TRAININGS, ids=lambda make: make.__name__)
def test_no_hook_is_left(make, tmp_path):
    seed()
    training = make()
    before, hooks = entry_points(), global_hooks()
    with open_watch(tmp_path / "run", training) as watch:
        assert any(entry_points()[name] is not each for name, each in before.items())
        training.loop(watch.log)
    after = entry_points()
    assert [name for name, each in before.items() if after[name] is not each] == []
    assert global_hooks() == hooks
    for each in training.optimizers:
        assert not each._optimizer_step_pre_hooks
        assert not each._optimizer_step_post_hooks
    for model in training.models:
        for module in model.modules():
            assert not module._forward_hooks
            assert not module._forward_pre_hooks
            assert not module._backward_hooks
            assert not {"train", "forward", "__call__"} & set(vars(module))
        for parameter in model.parameters():
            assert not parameter._backward_hooks
            assert not parameter._post_accumulate_grad_hooks


class Broken:
    """Raises at the second moment it sees."""

    emits = ()
    at = (BackwardBegins, BeforeUpdate)
    depth = Depth.LIGHT
    wakes_at = ()

    def __init__(self):
        self.seen = 0

    def read(self, moment):
        self.seen += 1
        if self.seen > 1:
            raise ZeroDivisionError(f"moment {self.seen}")
        return ()


def test_a_collector_that_raises_is_told_of_once_and_left_out(tmp_path, capfd):
    broken = Broken()
    training, run, generators = record(tmp_path / "run", everything, [broken, *all_collectors()])
    weights, untouched = unwatched(everything)
    assert all(torch.equal(a, b) for a, b in zip(training.weights(), weights, strict=True))
    assert generators == untouched
    assert broken.seen == 2
    assert capfd.readouterr().err.count("collector broken failed") == 1
    assert [each for each in run.meta.notes if "collector broken failed" in each]
    (event,) = run.events_of(HolterFailed)
    assert "ZeroDivisionError" in event.what.error


@pytest.mark.usefixtures("regime")
@pytest.mark.parametrize("place", [0, 3])
def test_the_others_go_on_without_a_gap(place, tmp_path):
    others = all_collectors()
    others.insert(place, Broken())
    _, run, _ = record(tmp_path / "broken", everything, others)
    _, whole, _ = record(tmp_path / "whole", everything)
    for name, table in whole.tables.items():
        for owner, series in table.items():
            assert run.tables[name][owner].steps.tolist() == series.steps.tolist(), (name, owner)


class BrokenLight:
    """A light collector that raises at the second backward."""

    emits = ()

    def __init__(self):
        self.seen = 0

    def join(self, lane):
        lane.at_backward.append(self.backward)
        lane.at_end.append(self.end)

    def backward(self, *_):
        self.seen += 1
        if self.seen > 1:
            raise ZeroDivisionError(f"moment {self.seen}")

    def end(self, *_):
        assert self.seen < 2


@pytest.mark.usefixtures("regime")
def test_a_light_collector_that_raises_is_dropped_alone(tmp_path, capfd):
    broken = BrokenLight()
    _, run, _ = record(tmp_path / "broken", everything, [broken, *all_collectors()])
    _, whole, _ = record(tmp_path / "whole", everything)
    assert broken.seen == 2
    assert capfd.readouterr().err.count("collector brokenlight failed") == 1
    for name, table in whole.tables.items():
        for owner, series in table.items():
            assert run.tables[name][owner].steps.tolist() == series.steps.tolist(), (name, owner)


class Ragged:
    """Gives two values for one owner."""

    emits = (LOSS,)
    at = (BeforeUpdate,)
    depth = Depth.LIGHT
    wakes_at = ()

    def read(self, moment):
        yield Reading(LOSS, STEP, torch.zeros(2))


def test_a_collector_that_gives_nonsense_does_not_cost_the_steps(tmp_path, capfd):
    _, run, _ = record(tmp_path / "run", everything, [Ragged(), *chosen("Hyperparameters")])
    assert run.steps == 8
    assert len(run[LR]["group 0"]) == 8
    assert "failed" in capfd.readouterr().err


class Hopeless(Broken):
    def read(self, moment):
        raise RuntimeError("always")


def test_a_run_of_failing_collectors_is_still_a_run(tmp_path, capfd):
    _, run, _ = record(tmp_path / "run", everything, [Hopeless()])
    assert run.meta.status == "finished"
    assert len(run[WATCH_TIME][""]) == 8
    assert capfd.readouterr().err.count("failed") == 1


@pytest.mark.usefixtures("regime")
@pytest.mark.parametrize("make", [everything, gan], ids=["everything", "gan"])
@pytest.mark.parametrize("close", [True, False], ids=["closed", "open"])
def test_nothing_is_kept_alive(make, close, tmp_path):
    seed()
    training = make()
    watch = open_watch(tmp_path / "run", training)
    training.loop(watch.log)
    kept = [weakref.ref(each) for each in (*training.models, *training.optimizers)]
    if close:
        watch.close()
    del training
    gc.collect()
    alive = [type(each()).__name__ for each in kept if each() is not None]
    watch.close()
    assert alive == []
    assert Run.load(tmp_path / "run").steps > 0
