"""How much of each step is read, so that watching stays inside its share of the time."""

from holter.collectors.moments import Depth

ALLOWANCE = 0.5  # seconds of its own time after which a watch saves: short runs are read whole
ALERT_STEPS = 20  # steps that are read whole after something went wrong
_REGULAR_SHARE = 0.6  # of what the light steps leave over; the rest is for full steps
_MEMORY = 0.9  # of the moving averages
_LONGEST = 1 << 14
_BUNCH = 16  # light steps


class Budget:
    """Chooses the depth of steps from what steps of each depth were measured to cost.

    Gradients are read every `every[REGULAR]` steps, everything every `every[FULL]` steps. Both are
    powers of two, so that a full step is always a regular one. Without a share everything is read
    at every step.
    """

    def __init__(self, share: float | None) -> None:
        self._share = share
        self._total = 0.0
        self._light: list[tuple[float, float]] = []
        self._length: float | None = None  # of a step, without the watch
        self._costs: dict[Depth, float] = {}
        self._alert_until = -1
        self.every = {Depth.REGULAR: 1, Depth.FULL: 1}

    def depth(self, step: int) -> Depth:
        """How deep to read a step."""
        if self._share is None or self._total < ALLOWANCE or step <= self._alert_until:
            return Depth.FULL
        if step % self.every[Depth.FULL] == 0:
            return Depth.FULL
        return Depth.REGULAR if step % self.every[Depth.REGULAR] == 0 else Depth.LIGHT

    def account(self, depth: Depth, cost: float, length: float) -> None:
        """Learn what a step of some depth cost, and how long it was without that."""
        if depth is Depth.LIGHT:  # many and much alike: learned from in bunches
            self._light.append((cost, length))
            if len(self._light) < _BUNCH:
                return
            cost = sum(each for each, _ in self._light) / _BUNCH
            length = sum(each for _, each in self._light) / _BUNCH
            self._total += cost * (_BUNCH - 1)
            self._light.clear()
        self._total += cost
        self._length = _average(self._length, length)
        self._costs[depth] = _average(self._costs.get(depth), cost)
        if self._share is not None and self._total >= ALLOWANCE:
            self._choose(self._share * self._length)

    def alert(self, step: int) -> None:
        """Read the next steps whole, whatever it costs."""
        self._alert_until = step + ALERT_STEPS

    def _choose(self, affordable: float) -> None:
        full = self._costs.get(Depth.FULL, 0.0)
        light = min(self._costs.get(Depth.LIGHT, 0.0), full)
        regular = min(max(self._costs.get(Depth.REGULAR, full / 2), light), full)
        left = max(affordable - light, affordable / 5)  # light steps alone may cost more than that
        self.every = {
            Depth.REGULAR: _rarity((regular - light) / (left * _REGULAR_SHARE)),
            Depth.FULL: _rarity((full - regular) / (left * (1 - _REGULAR_SHARE))),
        }
        self.every[Depth.FULL] = max(self.every.values())


def _average(old: float | None, new: float) -> float:
    """A moving average that one outlier does not move far."""
    if old is None:
        return new
    return _MEMORY * old + (1 - _MEMORY) * min(new, 4 * old + 1e-6)


def _rarity(ratio: float) -> int:
    """The least power of two that is not under `ratio`."""
    every = 1
    while every < ratio and every < _LONGEST:
        every *= 2
    return every
