"""Buffers whose elements share one array that the loop overwrites."""

import gc
import random
import weakref
from collections import deque, namedtuple
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import nn

from holter import Run
from holter.record.signals import SAMPLE_ALIASED
from watching.collectors.trainings import rng_states, values, watching

STEPS = 40

Transition = namedtuple("Transition", "state action")


@dataclass
class Sample:
    state: np.ndarray
    action: int


@dataclass(slots=True)
class Slotted:
    state: np.ndarray
    action: int


class Memory:
    def __init__(self):
        self.data = deque(maxlen=24)

    def push(self, *fields):
        self.data.append(fields)


class Agent:
    def __init__(self):
        self.memory = Memory()

    def run(self, step):
        state = np.zeros(4)
        for number in range(STEPS):
            state += 1
            self.memory.push(state, number)
            step()


def train(tmp_path, loop):
    """Record a loop that is given a function that makes a step."""
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        optimizer.zero_grad()
        model(torch.randn(3, 4)).pow(2).mean().backward()
        optimizer.step()

    with watching(tmp_path / "run", model, optimizer):
        loop(step)
    run = Run.load(tmp_path / "run")
    assert "aliases failed" not in str(run.meta.notes)
    return run


def filling(buffer, element_of, state=None):
    """Return a loop that fills a buffer with elements made of a state and the number of the step.

    The state is one array that is updated in place.
    """

    def loop(step):
        memory, current = buffer, np.zeros(4) if state is None else state
        for number in range(STEPS):
            current += 1
            memory.append(element_of(current, number))
            step()

    return loop


@pytest.mark.parametrize(
    "element_of",
    [
        lambda state, number: (state, number),
        lambda state, number: [number, state],
        lambda state, number: {"state": state, "action": number},
        Transition,
        Sample,
        Slotted,
        lambda state, number: (state[:2], torch.tensor(number)),
        lambda state, number: (torch.from_numpy(state), np.float64(number)),
    ],
)
@pytest.mark.parametrize("kind", [list, deque])
def test_one_array_in_all_elements(kind, element_of, tmp_path):
    run = train(tmp_path, filling(kind(), element_of))
    assert values(run, SAMPLE_ALIASED, "memory") == [1.0] * (STEPS - 15)
    assert set(run[SAMPLE_ALIASED]) == {"memory"}  # not `buffer` beside it


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.bool, torch.complex64])
def test_one_tensor_in_all_elements(dtype, tmp_path):
    def loop(step):
        state, memory = torch.zeros(4, 2, dtype=dtype), []
        for number in range(STEPS):
            state.copy_(torch.full((4, 2), number % 2))
            memory.append((state.t(), number))
            step()

    assert values(train(tmp_path, loop), SAMPLE_ALIASED, "memory")[-1] == 1.0


def test_a_state_that_moves_but_keeps_its_sum(tmp_path):
    def loop(step):
        state, memory = np.eye(4)[0], []
        for number in range(STEPS):
            state[:] = np.roll(state, 1)
            memory.append((state, number))
            step()

    assert values(train(tmp_path, loop), SAMPLE_ALIASED, "memory")[-1] == 1.0


def test_a_deque_that_is_full(tmp_path):
    memory = deque(((np.zeros(4), -n) for n in range(24)), maxlen=24)
    run = train(tmp_path, filling(memory, lambda state, number: (state, number)))
    shares = values(run, SAMPLE_ALIASED, "memory")
    assert shares[0] == pytest.approx(2 / 24)
    assert shares[-1] == 1.0
    assert len(shares) == STEPS - 1


def test_attributes_of_objects(tmp_path):
    run = train(tmp_path, Agent().run)
    assert values(run, SAMPLE_ALIASED, "self.memory.data")[-1] == 1.0

    def loop(step):
        memory, state = Memory(), torch.zeros(4)
        histories = {"latest": []}
        for number in range(STEPS):
            state += 1
            memory.push(state, number)
            histories["latest"].append((state, number))
            step()

    run = train(tmp_path / "local", loop)
    assert set(run[SAMPLE_ALIASED]) == {"memory.data", "histories['latest']"}
    assert values(run, SAMPLE_ALIASED, "memory.data")[-1] == 1.0


def test_neighbours_share_an_array_in_healthy_buffers(tmp_path):
    def loop(step):
        memory, state = deque(maxlen=30), np.zeros(4)
        for number in range(STEPS):
            next_state = state + 1
            memory.append((state, number, next_state))
            state = next_state
            step()

    shares = values(train(tmp_path, loop), SAMPLE_ALIASED, "memory")
    assert shares
    assert not any(shares)


def test_copies_of_a_state_that_is_updated(tmp_path):
    run = train(tmp_path, filling([], lambda state, number: (state.copy(), number)))
    assert not any(values(run, SAMPLE_ALIASED, "memory"))


def test_a_constant_goal(tmp_path):
    goal = np.array([1.0, np.nan, 0.0])
    run = train(tmp_path, filling([], lambda state, number: (state.copy(), number, goal)))
    assert not any(values(run, SAMPLE_ALIASED, "memory"))


def test_a_goal_that_changes_when_the_buffer_is_cleared(tmp_path):
    def loop(step):
        memory, goal = [], np.zeros(4)
        for number in range(STEPS):
            if number % 20 == 0:
                memory.clear()
                goal += 1
            memory.append((np.zeros(4), number, goal))
            step()

    assert not any(values(train(tmp_path, loop), SAMPLE_ALIASED, "memory"))


def test_one_element_many_times(tmp_path):
    def loop(step):
        state = np.zeros(4)
        x = (state, 1)
        filled = [x] * 64
        longer = [x] * 64
        alike = []
        for _ in range(STEPS):
            state += 1
            longer.append(x)
            alike.append((state, 1))  # no field differs
            step()
        assert len(filled) == 64

    run = train(tmp_path, loop)
    assert set(run[SAMPLE_ALIASED]) == {"alike"}
    assert not any(values(run, SAMPLE_ALIASED, "alike"))


def test_short_buffers_data_sets_and_batches_are_not_recorded(tmp_path):
    def loop(step):
        data = [(np.zeros(4), n) for n in range(64)]
        recent, losses, state = deque(maxlen=8), [], np.zeros(4)
        for number in range(STEPS):
            state += 1
            batch = random.choices(data, k=32)
            recent.append((state, number))
            losses.append((0.1, number))
            step()
        assert len(batch) == 32

    assert SAMPLE_ALIASED not in train(tmp_path, loop)


def test_at_most_eight_names(tmp_path):
    def loop(step):
        state, memories = np.zeros(4), {n: [] for n in range(12)}
        for number in range(STEPS):
            state += 1
            for memory in memories.values():
                memory.append((state, number))
            step()

    assert len(train(tmp_path, loop)[SAMPLE_ALIASED]) == 8


def test_nothing_is_kept_alive_and_no_random_number_is_drawn(tmp_path):
    dropped = []

    def loop(step):
        memory = deque(maxlen=20)
        for number in range(STEPS):
            state = torch.zeros(4)
            dropped.append(weakref.ref(state))
            memory.append((state, number))
            before = random.getstate(), rng_states()[1]
            step()
            assert (random.getstate(), rng_states()[1]) == before
            del state
        gc.collect()
        assert [n for n, each in enumerate(dropped) if each() is not None] == list(range(20, STEPS))

    train(tmp_path, loop)


def test_elements_that_cannot_be_read(tmp_path):
    class Odd:
        __slots__ = ()

        def __getattr__(self, name):
            raise ZeroDivisionError(name)

    def loop(step):
        things = [
            Odd(), (), None, {}, {(1, 2): np.zeros(2)}, (np.array([None, {}]), 1),
            (torch.zeros(2, device="meta"), 1), (torch.zeros(0), 1), (np.zeros((0, 2)), 1),
            (torch.eye(2).to_sparse(), 1), (np.array(["a", "b"]), 1), (torch.eye(2).conj(), 1),
        ]  # fmt: skip
        odd, memories = Odd(), [[] for _ in things]
        named = dict(enumerate(memories))
        for _ in range(STEPS):
            for thing, memory in zip(things, memories, strict=True):
                memory.append(thing)
            step()
        assert odd is not None
        assert named

    train(tmp_path, loop)


def test_rows_of_the_state_of_several_environments(tmp_path):
    state = np.zeros((4, 3))

    def loop(step):
        memory = []
        for number in range(STEPS):
            state[:] += 1
            memory.extend((row, number) for row in state)
            step()

    shares = values(train(tmp_path, loop), SAMPLE_ALIASED, "memory")
    assert max(shares) == 1.0


class Policy(nn.Module):
    """A model that is called through a method."""

    def __init__(self):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))

    def act(self, state):
        return self.actor(state)


class Walk:
    """An environment that returns one array, and an agent whose rollout calls no backward."""

    def __init__(self, stored, model=None):
        self.state, self.goal, self.stored = np.zeros((3, 4), np.float32), torch.ones(3, 4), stored
        self.model = nn.Linear(4, 2) if model is None else model
        self.answer = self.model if model is None else model.act
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)

    @torch.no_grad()
    def rollout(self):
        states, goals, rewards = [], [], []
        self.goal += 1  # of the rollout
        for number in range(32):
            state = self.stored(self.state)
            action = self.answer(torch.as_tensor(state)).argmax(1)
            self.state += 1
            states.append(state)
            goals.append(self.goal)
            rewards.append(action + number)
        return torch.stack([torch.as_tensor(state) for state in states]), torch.stack(rewards)

    def train(self):
        for _ in range(6):
            states, rewards = self.rollout()
            for _ in range(2):
                loss = (self.answer(states).sum(-1) - rewards).pow(2).mean()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()


@pytest.mark.parametrize(
    ("stored", "share"),
    [
        (torch.from_numpy, 1.0),
        (lambda state: state, 1.0),
        (lambda state: torch.from_numpy(state)[:, :4], 1.0),
        (lambda state: torch.from_numpy(state.copy()), 0.0),
        (torch.tensor, 0.0),
    ],
)
def test_a_rollout_that_has_returned_when_backward_is_called(stored, share, tmp_path):
    torch.manual_seed(0)
    walk = Walk(stored)
    with watching(tmp_path / "run", walk.model, walk.optimizer):
        walk.train()
    run = Run.load(tmp_path / "run")
    assert "aliases failed" not in str(run.meta.notes)
    assert max(values(run, SAMPLE_ALIASED, "states")) == share
    assert not any(values(run, SAMPLE_ALIASED, "goals"))


def test_a_rollout_with_a_policy_that_is_called_through_a_method(tmp_path):
    walk = Walk(torch.from_numpy, Policy())
    with watching(tmp_path / "run", walk.model, walk.optimizer):
        walk.train()
    assert max(values(Run.load(tmp_path / "run"), SAMPLE_ALIASED, "states")) == 1.0


def test_a_list_of_one_array_without_others_may_be_meant_so(tmp_path):
    run = train(tmp_path, filling([], lambda state, _: state))
    assert not any(values(run, SAMPLE_ALIASED, "memory"))
