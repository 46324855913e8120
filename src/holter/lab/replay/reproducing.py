"""How well a replay repeats what was recorded."""

import math
from dataclasses import dataclass

from holter.lab.replay.departing import Departure

EXACT, REPRODUCED = "bit for bit", "reproduced"
_CLOSE = 1e-3  # relative, of losses that are not the same to the bit


@dataclass(frozen=True, slots=True)
class Reproduction:
    """How well a replay reproduced the recording."""

    verdict: str
    same: int  # steps whose loss is the recorded one to the bit
    compared: int
    repeatable: bool  # two replays gave the same
    departure: Departure | None = None
    ended: str = ""  # where the replay ended before the failure, and by what
    edited: str = ""  # what the script writes to between steps, and how it was replayed
    fatal_before: str = ""  # by what it is known that the fatal update lies before the window
    how: str = ""  # how it was repeated, if not by the extracted step

    @property
    def says(self) -> str:
        """The verdict in a sentence."""
        equal = f"{self.same} of {self.compared} recorded losses are identical"
        how = f" {self.how}" if self.how else ""
        if self.verdict == EXACT:
            told = f"reproduced bit for bit{how}: {equal}"
        elif self.verdict == REPRODUCED:
            told = f"reproduced{how}: it fails again; {equal}"
        elif not self.repeatable:
            told = f"not reproduced{how}: {equal}; two replays differ: nondeterminism"
        elif self.departure is not None:
            told = f"not reproduced{how}: {equal}; {self.departure.says}"
        elif self.ended:
            told = f"not reproduced{how}: {equal}; {self.ended}"
        else:
            again = "the recorded steps do not fail when they are repeated"
            told = f"not reproduced{how}: {equal}; {again}"
        return "; ".join(part for part in (told, self.edited, self.fatal_before) if part)


def near(one: float, other: float) -> bool:
    """Whether two losses differ by rounding only."""
    if not (math.isfinite(one) and math.isfinite(other)):
        return math.isfinite(one) == math.isfinite(other)
    return abs(one - other) <= _CLOSE * max(abs(one), abs(other), 1e-12)
