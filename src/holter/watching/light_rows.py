"""LightRows: rows of light steps that differ in nothing but the loss, times and memory."""

import time
from time import perf_counter

import numpy as np

from holter.record.format import Floats
from holter.record.signals import (
    BACKWARD_CALLS,
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
from holter.watching.collectors.lane import ABSENT
from holter.watching.collectors.memory import Memory
from holter.watching.collectors.phases import Phases
from holter.watching.recorder import DELAY, Recorder
from holter.watching.stepping import Stepper

ENTRIES = 4  # from torch in a step
_ZEROS = (GRAD_CARRIED_FRACTION, GRAD_DISCARDED, SCHEDULE_STEPS)
_AT_UPDATE = (LR, GRAD_CARRIED_FRACTION, GRAD_DISCARDED)  # written when an update begins
# What they all have, besides the memory of some.
_OF_ROWS = frozenset(
    (
        *(LOSS, BACKWARD_CALLS, MODE_TRAINING, MODE_EVAL_FRACTION, WATCH_TIME, LR),
        *(*_ZEROS, *Phases.emits),
    )
)


class LightRows:
    """What was seen of steps whose rows are still to be written, and of the open one, the last."""

    def __init__(
        self, recorder: Recorder, stepper: Stepper, phases: Phases, memory: Memory | None
    ) -> None:
        self._recorder, self._stepper = recorder, stepper
        self._phases, self._memory, self._lane = phases, memory, stepper.lane
        self.losses: list[float] = []
        self.marks: list[float] = []  # the time of each entry, by the clock of the training
        self.spent: list[float] = []  # seconds that holter had taken when the step began
        self.looked = 0  # losses that were looked at
        self.write_at = 0.0
        self.at_update: list[tuple[int, float]] = []  # places and values
        self._updated = 0.0  # when the update before the first of the steps ended
        self._row: Floats = np.empty(0, np.float32)
        self._loss_places: list[int] = []
        self._time_place = 0
        self._memories: list[tuple[int, dict[int, float]]] = []  # steps, places and values

    def common(self) -> list[float] | None:
        """Return the last row, if it has nothing that is not in all others to come; else None."""
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
                    signal not in _OF_ROWS or (value and signal in _ZEROS)
                ):
                    return None
                # Of the open step, its mode is known.
                if current[place] is not ABSENT and current[place] != value:
                    return None
                place += 1
        return row

    def rates_of(self, row: list[float]) -> list[float]:
        """Return the learning rates in a row."""
        places = places_of(self._lane.row.layout, LR)
        return [row[place] for place in places if row[place] is not ABSENT]

    def begin(self, row: list[float], loss: float, *, spent: float) -> None:
        """Begin with the open step, whose backward pass has begun, and what rows have in common."""
        layout = self._lane.row.layout
        self._row = np.array(row, np.float32)
        self._loss_places = [p for p in places_of(layout, LOSS) if row[p] is not ABSENT]
        (self._time_place,) = places_of(layout, WATCH_TIME)
        at_update = [place for signal in _AT_UPDATE for place in places_of(layout, signal)]
        self.at_update = [(place, row[place]) for place in at_update if row[place] is not ABSENT]
        self._updated, began = self._phases.begun
        self.losses[:], self.marks[:], self.spent[:] = [loss], [began], [spent]
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

    def put_back(self) -> None:
        """Put what was read at the update of the open step into the row of the lane."""
        row = self._lane.row
        values = dict(self.at_update)
        if self._memories and self._memories[-1][0] == self._recorder.step:
            values |= self._memories.pop()[1]
        for place, value in values.items():
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
        self._phases.write(rows, self._updated, marks)
        first = self._recorder.step - over
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
        return fine
