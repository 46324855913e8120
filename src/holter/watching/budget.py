"""How much of each step is read, so that watching stays inside its share of the time."""

from holter.watching.collectors.moments import Depth

ALLOWANCE = 2.0  # seconds of work before the budget applies: short runs are read whole
ALERT_STEPS = 20  # steps that are read whole after something went wrong
_AIM = 0.6  # of the share: what the watch cannot time, such as colder caches, takes the rest
_LIGHT_SHARE = 0.7  # of the budget that reading losses may take before some are left out
_RAREST_LOSS = 16  # steps
_REGULAR_SHARE = 0.6  # of what losses leave over; the rest is for full steps
_MEMORY = 0.9  # of the moving averages
_LONGEST = 1 << 14
_BUNCH = 16  # light steps


class Budget:
    """Chooses the depth of steps from what steps of each depth were measured to cost.

    Losses are read every `every[LIGHT]` steps, gradients every `every[REGULAR]`, everything every
    `every[FULL]`: powers of two, so that a deep step is also one of each lesser depth. Losses are
    read at every step, unless steps are so short that this alone would be too expensive. Without a
    share everything is read at every step.
    """

    def __init__(self, share: float | None) -> None:
        self._share = share
        self._total = 0.0
        self._first_steps = 3
        self._light: list[tuple[float, float]] = []
        self._length: float | None = None  # of a step, without the watch
        self._costs: dict[Depth, float] = {}
        self._alert_until = -1
        self._deepest_first: list[tuple[Depth, int]] = []
        self.every = {Depth.LIGHT: 1, Depth.REGULAR: 1, Depth.FULL: 1}

    def depth(self, step: int) -> Depth:
        """How deep to read a step."""
        if not self._deepest_first or step <= self._alert_until:
            return Depth.FULL
        if step % self.every[Depth.LIGHT]:
            return Depth.NONE
        for depth, every in self._deepest_first:
            if step % every == 0:
                return depth
        return Depth.NONE

    @property
    def is_generous(self) -> bool:
        """Whether the allowance lasts: whatever it costs, everything is read."""
        return self._total < ALLOWANCE

    def account(
        self, depth: Depth, cost: float, length: float, *, effort: float | None = None
    ) -> None:
        """Learn what a step of some depth cost, and how long it was without that.

        The allowance is used up by `effort`, the cost without waiting for a busy machine.
        """
        effort = cost if effort is None else effort
        if self._first_steps:  # in which kernels are compiled and tables are made
            self._first_steps -= 1
            return
        if depth is Depth.LIGHT:  # many and much alike: learned from in bunches
            self._light.append((cost, length))
            if len(self._light) < _BUNCH:
                return
            cost = sum(seconds for seconds, _ in self._light) / _BUNCH
            length = sum(seconds for _, seconds in self._light) / _BUNCH
            self._total += effort * (_BUNCH - 1)
            self._light.clear()
        self._total += effort
        self._length = _average(self._length, length)
        self._costs[depth] = _average(self._costs.get(depth), cost)
        if self._share is not None and not self.is_generous:
            self._choose(self._share * self._length * _AIM)

    def alert(self, step: int) -> None:
        """Read the next steps whole, whatever it costs."""
        self._alert_until = step + ALERT_STEPS

    def _choose(self, affordable: float) -> None:
        full = self._costs.get(Depth.FULL, 0.0)
        light = min(self._costs.get(Depth.LIGHT, 0.0), full)
        regular = min(max(self._costs.get(Depth.REGULAR, full / 2), light), full)
        losses = min(_rarity(light / (affordable * _LIGHT_SHARE)), _RAREST_LOSS)
        left = max(affordable - light / losses, affordable / 5)
        gradients = max(_rarity((regular - light) / (left * _REGULAR_SHARE)), losses)
        everything = max(_rarity((full - regular) / (left * (1 - _REGULAR_SHARE))), gradients)
        self.every = {Depth.LIGHT: losses, Depth.REGULAR: gradients, Depth.FULL: everything}
        self._deepest_first = sorted(self.every.items(), reverse=True)


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
