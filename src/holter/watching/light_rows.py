"""LightRows: rows of light steps that differ only in what is new in each, such as the loss."""

import time
from collections.abc import Mapping
from time import perf_counter
from typing import Any

import numpy as np

from holter.record.format import Floats
from holter.record.signals import (
    BACKWARD_CALLS,
    DATA_BATCHES,
    GRAD_CARRIED_FRACTION,
    GRAD_DISCARDED,
    LOSS,
    LR,
    MODE_EVAL_FRACTION,
    MODE_TRAINING,
    SCHEDULE_STEPS,
    WATCH_TIME,
)
from holter.watching.arrivals import places_of
from holter.watching.blackbox.box import BlackBox
from holter.watching.collectors.clipping import Clipping
from holter.watching.collectors.lane import ABSENT
from holter.watching.collectors.loading import Loading
from holter.watching.collectors.memory import Memory
from holter.watching.collectors.phases import Phases
from holter.watching.recorder import DELAY, Recorder
from holter.watching.stepping import Stepper

ENTRIES = 4  # from torch in a step
_ZEROS = (GRAD_CARRIED_FRACTION, GRAD_DISCARDED)  # written when gradients are complete
# What they all have, besides the memory of some, batches and clipping.
_OF_ROWS = frozenset(
    (
        *(LOSS, BACKWARD_CALLS, MODE_TRAINING, MODE_EVAL_FRACTION, WATCH_TIME, LR),
        *(*_ZEROS, SCHEDULE_STEPS, *Phases.emits),
    )
)
_OF_INTERLUDES = frozenset((*Loading.emits, *Clipping.emits))


class LightRows:
    """What was seen of steps whose rows are still to be written, and of the open one, the last."""

    def __init__(
        self, recorder: Recorder, stepper: Stepper, collectors: Mapping[type, Any]
    ) -> None:
        self._recorder, self._stepper, self._lane = recorder, stepper, stepper.lane
        self._phases: Phases = collectors.get(Phases, Phases())
        self._memory: Memory | None = collectors.get(Memory)
        self._clipping: Clipping = collectors.get(Clipping, Clipping())
        self._loading: Loading = collectors.get(Loading, Loading())
        self.losses: list[float] = []
        self.marks: list[float] = []  # the time of each entry, by the clock of the training
        self.spent: list[float] = []  # seconds that holter had taken when the step began
        # Samples, seconds that were waited, and when it came: of each step, and of the next one.
        self.batches: list[tuple[int, float, float]] = []
        self.loader = ""
        self.norms: list[float] = []  # before clipping
        self.limit: float | None = None
        self.rates: list[tuple[int, list[float]]] = []  # from which step on
        self.looked = 0  # losses that were looked at
        self.write_at = 0.0
        self._zeros: list[int] = []  # places of what is written when gradients are complete
        self._rate_places: list[int] = []
        self._updated = 0.0  # when the update before the first of the steps ended
        self._row: Floats = np.empty(0, np.float32)
        self._loss_places: list[int] = []
        self._time_place = 0
        self._memories: list[tuple[int, dict[int, float]]] = []  # steps, places and values

    def common(self, *, fetched: bool, clipped: bool, scheduled: bool) -> list[float] | None:
        """Return the last row, if it has nothing that is not in all others to come; else None."""
        allowed = _OF_ROWS | (_OF_INTERLUDES if fetched or clipped else frozenset())
        self.loader, self.limit = "", None
        last, current, layout = self._recorder.last_row, self._lane.row, self._lane.row.layout
        if last is None:
            return None
        row = [*last, *[ABSENT] * (len(current) - len(last))]
        memory = () if self._memory is None else self._memory.emits
        place = 0
        for signal, owners in layout:
            for value in row[place : place + len(owners)]:
                if signal in memory:
                    row[place] = ABSENT
                elif value is not ABSENT and (
                    signal not in allowed or (value and signal in _ZEROS)
                ):
                    return None
                # Of the open step, its mode is known.
                if current[place] is not ABSENT and current[place] != value:
                    return None
                place += 1
        calls = [row[place] for place in places_of(layout, SCHEDULE_STEPS)]
        if any(value is not ABSENT and value != scheduled for value in calls):
            return None
        if not self._has_batch(row) if fetched else self._batches_in(row):
            return None
        self.limit = self._clipping.limit_of(row)
        return row if (self.limit is not None) is clipped else None

    def _batches_in(self, row: list[float]) -> list[int]:
        places = places_of(self._lane.row.layout, DATA_BATCHES)
        return [place for place in places if row[place] is not ABSENT]

    def _has_batch(self, row: list[float]) -> bool:
        """Whether a row has one batch, of the loader that the open step has one of."""
        single, found = self._loading.single, self._batches_in(row)
        if single is None:
            return False
        self.loader = single[0]
        place = self._loading.places(self.loader)[-1]
        return found == [place] and row[place] == 1

    def has_rates(self, row: list[float], rates: list[Any]) -> bool:
        """Whether a row has a place for each of some learning rates, which are numbers."""
        places = places_of(self._lane.row.layout, LR)
        self._rate_places = [place for place in places if row[place] is not ABSENT]
        are_numbers = all(type(rate) is float for rate in rates)
        return are_numbers and len(self._rate_places) == len(rates)

    def begin(self, row: list[float], loss: float, *, rates: list[float], spent: float) -> None:
        """Begin with the open step, whose backward pass has begun, and what rows have in common.

        Its place for each learning rate is that which was asked for last.
        """
        layout = self._lane.row.layout
        self._row = np.array(row, np.float32)
        self._loss_places = [p for p in places_of(layout, LOSS) if row[p] is not ABSENT]
        (self._time_place,) = places_of(layout, WATCH_TIME)
        zeros = [place for signal in _ZEROS for place in places_of(layout, signal)]
        self._zeros = [place for place in zeros if row[place] is not ABSENT]
        self._updated, given, began = self._phases.begun
        self.losses[:], self.marks[:], self.spent[:] = [loss], [began], [spent]
        self.rates[:], self.norms[:], self.batches[:] = [(self._recorder.step, rates)], [], []
        if self.loader and self._loading.single is not None:
            _, samples, waited = self._loading.single
            self.batches.append((samples, waited, given))
        self.looked, self.write_at = 0, perf_counter() + DELAY
        self._memories.clear()

    @property
    def open_marks(self) -> list[float]:
        """What was heard of the open step since when."""
        return self.marks[ENTRIES * (len(self.losses) - 1) :]

    @property
    def updated(self) -> float:
        """When the last update before the open step ended."""
        over = len(self.losses) - 1
        return self.marks[ENTRIES * over - 1] if over else self._updated

    def read_memory(self, memory: Memory) -> None:
        """Read memory after the update of the open step, and keep it apart from the row."""
        row = self._lane.row
        before = list(row)
        memory.look()
        values = {place: value for place, value in enumerate(row) if value is not before[place]}
        for place in values:
            row[place] = ABSENT
        self._memories.append((self._recorder.step, values))

    def put_back(self, *, at_update: bool) -> None:
        """Put what was read of the open step into the row of the lane: gradients are complete.

        Perhaps the update has begun, too.
        """
        row = self._lane.row
        for place in self._zeros:
            row[place] = 0.0
        if self.limit is not None and len(self.norms) == len(self.losses):
            self._clipping.resume(self.norms[-1], self.limit)
        if at_update:
            for place, rate in zip(self._rate_places, self.rates[-1][1], strict=True):
                row[place] = rate
        if self._memories and self._memories[-1][0] == self._recorder.step:
            for place, value in self._memories.pop()[1].items():
                row[place] = value

    def look(self, box: BlackBox | None) -> bool:
        """Let the black box look at the losses of all steps but the last; True for an odd one."""
        first = self._recorder.step - len(self.losses) + 1
        looked, self.looked = self.looked, len(self.losses) - 1
        losses = self.losses[looked:-1]
        return box is not None and bool(losses) and box.see_losses(first + looked, losses)

    def write(self, now: float) -> bool:
        """Write the rows of all steps but the last; return False if something odd has arrived."""
        over = len(self.losses) - 1
        self.write_at = now + DELAY
        if over < 1:
            return True
        marks = np.array(self.marks[: ENTRIES * over]).reshape(over, ENTRIES)
        began = np.append(marks[:, 0], self.marks[ENTRIES * over])
        spent = np.array(self.spent)
        costs = np.diff(spent)
        rows = np.tile(self._row, (over, 1))
        for place in self._loss_places:
            rows[:, place] = self.losses[:over]
        rows[:, self._time_place] = costs
        batches, norms = self.batches[:over], self.norms[:over]
        self._phases.write(rows, self._updated, marks, [given for _, _, given in batches])
        if batches:
            self._loading.write(rows, self.loader, batches)
        if norms and self.limit is not None:
            self._clipping.write(rows, norms, self.limit)
        first = self._recorder.step - over
        for step, rates in self.rates:
            rows[max(step - first, 0) :, self._rate_places] = rates
        del self.rates[:-1]
        while self._memories and self._memories[0][0] < first + over:
            step, values = self._memories.pop(0)
            for place, value in values.items():
                rows[step - first, place] = value
        # A row is from when the next step began.
        walls = time.time() - (perf_counter() - (began[1:] + spent[1:]))
        fine = self._recorder.write_rows(first, walls.tolist(), rows)
        self._stepper.account(costs, np.diff(began))
        self._updated = float(marks[-1, -1])
        self.looked = max(self.looked - over, 0)
        del self.losses[:over], self.spent[:over], self.marks[: ENTRIES * over]
        del self.batches[:over], self.norms[:over]
        return fine
