"""How much of each step is read, so that watching stays inside its share of the time."""

from holter.watching.collectors.moments import Depth

ALLOWANCE = 2.0  # seconds of work before the budget applies: short runs are read whole
ALERT_STEPS = 20  # steps that are read whole after something went wrong
_FIRST = 16  # steps that are read whole whatever they cost
# Samples for each e-fold of the step number: as long as the spare time lasts, and after that.
_DENSITY = {Depth.REGULAR: 40, Depth.FULL: 16}
_LEAST_DENSITY = {Depth.REGULAR: 20, Depth.FULL: 8}
_SPARE = 0.5  # seconds that dense samples, and as many that alerts, may cost beyond the share
_AIM = 0.6  # of the share: what the watch cannot time, such as colder caches, takes the rest
_REGULAR_SHARE = 0.6  # of what light steps leave over; the rest is for full steps
_LEAST = 0.2  # of the share that deeper steps may take even where light ones use it up
_MEMORY = 0.9  # of the moving averages
_RAREST = 1 << 14  # steps
_BUNCH = 16  # light steps


class Budget:
    """Chooses the depth of steps from what steps of each depth were measured to cost.

    Every step is read at least lightly. Deeper steps come as often as the share allows, and never
    rarer than a geometric series: the beginning of a run is sampled densely, and its whole length
    in proportion. After something odd a few steps are read whole. Without a share everything is
    read at every step.
    """

    def __init__(self, share: float | None) -> None:
        self._share = share
        self._spent = self._extra = self._alerts = self._elapsed = 0.0  # seconds
        self._unmeasured = 3  # steps, in which kernels are compiled and tables are made
        self._light: list[tuple[float, float]] = []
        self._length: float | None = None  # of a step, without the watch
        self._costs: dict[Depth, float] = {}
        self._alert_until = -1
        self._due = {Depth.REGULAR: 0, Depth.FULL: 0}
        self.every = {Depth.REGULAR: 1, Depth.FULL: 1}  # steps that the share allows one of

    def depth(self, step: int) -> Depth:
        """How deep to read a step."""
        if self._share is None or self.is_generous or step < _FIRST or step <= self._alert_until:
            return Depth.FULL
        chosen = next((d for d in (Depth.FULL, Depth.REGULAR) if step >= self._due[d]), Depth.LIGHT)
        for depth in self._due:
            if depth <= chosen:
                self._due[depth] = step + self._gap(depth, step)
        return chosen

    @property
    def is_generous(self) -> bool:
        """Whether the allowance lasts: whatever it costs, everything is read."""
        return self._spent < ALLOWANCE

    def account(
        self, depth: Depth, cost: float, length: float, *, effort: float | None = None
    ) -> None:
        """Learn what a step of some depth cost, and how long it was without that.

        The allowance is used up by `effort`, the cost without waiting for a busy machine.
        """
        effort = cost if effort is None else effort
        if self._unmeasured:
            self._unmeasured -= 1
            return
        if depth is Depth.LIGHT:  # many and much alike: learned from in bunches
            self._light.append((cost, length))
            if len(self._light) < _BUNCH:
                return
            cost = sum(seconds for seconds, _ in self._light) / _BUNCH
            length = sum(seconds for _, seconds in self._light) / _BUNCH
            self._elapsed += length * (_BUNCH - 1)
            self._spent += effort * (_BUNCH - 1)
            self._light.clear()
        self._elapsed += length
        self._spent += effort
        self._length = _average(self._length, length)
        self._costs[depth] = _average(self._costs.get(depth), cost)
        if self._share is not None and not self.is_generous:
            self._choose(self._share * self._length * _AIM)

    def alert(self, step: int) -> None:
        """Read the next steps whole, unless alerts have cost their share already."""
        if self._share is None or step <= self._alert_until:
            return
        if self._alerts <= _SPARE + self._share * self._elapsed:
            self._alerts += ALERT_STEPS * self._costs.get(Depth.FULL, 0.0)
            self._alert_until = step + ALERT_STEPS

    def _gap(self, depth: Depth, step: int) -> int:
        """Steps until the next one of a depth."""
        every, densest = self.every[depth], max(step // _DENSITY[depth], 1)
        if densest < every and self._extra <= _SPARE:
            self._extra += self._costs.get(depth, 0.0) * (1 - densest / every)
            every = densest
        every = min(every, max(step // _LEAST_DENSITY[depth], 1))
        return every | 1  # odd: of two trainings that take turns, both are read

    def _choose(self, affordable: float) -> None:
        full = self._costs.get(Depth.FULL, 0.0)
        light = min(self._costs.get(Depth.LIGHT, 0.0), full)
        regular = min(max(self._costs.get(Depth.REGULAR, full / 2), light), full)
        left = max(affordable - light, affordable * _LEAST)
        gradients = _rarity((regular - light) / (left * _REGULAR_SHARE))
        everything = max(_rarity((full - regular) / (left * (1 - _REGULAR_SHARE))), gradients)
        self.every = {Depth.REGULAR: gradients, Depth.FULL: everything}


def _average(old: float | None, new: float) -> float:
    """A moving average that one outlier does not move far."""
    if old is None:
        return new
    return _MEMORY * old + (1 - _MEMORY) * min(new, 4 * old + 1e-6)


def _rarity(ratio: float) -> int:
    """The least power of two that is not under `ratio`."""
    every = 1
    while every < ratio and every < _RAREST:
        every *= 2
    return every
