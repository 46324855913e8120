"""How much of each step is read, so that watching stays inside its share of the time."""

from holter.watching.collectors.moments import Depth

ALLOWANCE = 2.0  # seconds of work: short runs are read whole
_ON_GPU = 0.5  # seconds of it on a GPU, where runs are seldom short
_SHORT = 40.0  # seconds of training
_MOST = 0.05  # share of any training longer than `_SHORT` that all this may take, but for alerts
ALERT_STEPS = 20  # steps that are read whole after something went wrong
_FIRST = 16  # steps that are read whole while that is within `_MOST`
_ALWAYS = 4  # steps that are read whole whatever they cost, so that costs are known
# Samples for each e-fold of the step number: as long as the spare time lasts, and after that.
_DENSITY = {Depth.REGULAR: 40, Depth.FULL: 16}
_LEAST_DENSITY = {Depth.REGULAR: 20, Depth.FULL: 8}
_SPARE = 0.5  # seconds that dense samples, and as many that alerts, may cost beyond the share
_SPARE_ON_GPU = 0.1  # seconds of the former on a GPU, where a step that is read whole costs most
_SPARE_SHARE = 0.02  # of the time so far that dense samples may cost beyond the share
_AIM = 0.6  # of the share: what the watch cannot time, such as colder caches, takes the rest
_REGULAR_SHARE = 0.6  # of what light steps leave over; the rest is for full steps
_DENSE_SHARE = 0.6  # of what light steps leave over, if gradients can be read by a fused launch
_LEAST = 0.2  # of the share that deeper steps may take even where light ones use it up
_MEMORY = 0.9  # of the moving averages
_RAREST = 1 << 14  # steps
_INSTANT = 1e-9  # seconds, where nothing is left of a step without what the watch took
_BUNCH = 16  # light steps
_TRIALS = 12  # light steps with a fused launch whatever it costs, so that this is known
_PLAIN = 32  # light steps of which one has no fused launch, as the measure of those that have


class Budget:
    """Chooses the depth of steps from what steps of each depth were measured to cost.

    Every step is read at least lightly. Deeper steps come as often as the share allows, and never
    rarer than a geometric series: the beginning of a run is sampled densely, and its whole length
    in proportion. After something odd a few steps are read whole. Without a share everything is
    read at every step.

    What is read beyond the share is paid for by an allowance, which is never more than `_MOST` of a
    training that lasts longer than `_SHORT` seconds.
    """

    def __init__(self, share: float | None) -> None:
        self._share = share
        self._spent = self._extra = self._alerts = self._elapsed = 0.0  # seconds
        self._unmeasured = 3  # steps, in which kernels are compiled and tables are made
        self._light = 0, 0.0, 0.0  # steps that are not yet learned from, their cost and length
        self._prepared = 0.0  # seconds of light steps that prepared the next deeper one
        self._length: float | None = None  # of a step, without the watch
        self._costs: dict[Depth, float] = {}
        self._alert_until = -1
        self._due = {Depth.REGULAR: 0, Depth.FULL: 0}
        self._next_due = 0  # the sooner of the two
        self.every = {Depth.REGULAR: 1, Depth.FULL: 1}  # steps that the share allows one of
        self._dense: float | None = None  # seconds of a light step with a fused launch
        self._dense_due, self.every_dense = 0, 1
        self._dense_trials = _TRIALS
        self.is_generous = share is None or ALLOWANCE > 0  # everything is read
        self.is_on_gpu = False

    def depth(self, step: int) -> Depth:
        """How deep to read a step."""
        if self.is_generous or step <= self._alert_until or step < _ALWAYS:
            return Depth.FULL
        if step < _FIRST and self._is_affordable:
            return Depth.FULL
        due = self._due
        if step < self._next_due:
            return Depth.LIGHT
        chosen = Depth.FULL if step >= due[Depth.FULL] else Depth.REGULAR
        for depth in due:
            if depth <= chosen:
                due[depth] = step + self._gap(depth, step)
        self._next_due = min(due.values())
        return chosen

    def next_deep(self, step: int) -> int:
        """Return the first step from one on that may be read more than lightly."""
        if self.is_generous or step <= self._alert_until or step < _FIRST:
            return step
        return self._next_due

    def is_dense(self, step: int) -> bool:
        """Whether a light step has time for a fused launch on a GPU."""
        if step % _PLAIN == 0 or (step < self._dense_due and not self._dense_trials):
            return False
        self._dense_trials = max(self._dense_trials - 1, 0)
        self._dense_due = step + self.every_dense
        return True

    def cost(self, depth: Depth) -> float:
        """Seconds that a step of this depth costs, 0 while that is not known."""
        return self._costs.get(depth, 0.0)

    @property
    def _allowance(self) -> float:
        return min(ALLOWANCE, _ON_GPU) if self.is_on_gpu else ALLOWANCE

    @property
    def _spare(self) -> float:
        most = _SPARE_ON_GPU if self.is_on_gpu else _SPARE
        return min(most, _SPARE_SHARE * self._elapsed)

    @property
    def _is_affordable(self) -> bool:
        """Whether more than the share may be spent on the training so far."""
        return self._spent < _MOST * max(self._elapsed, _SHORT)

    def account(
        self,
        depth: Depth,
        cost: float,
        length: float,
        *,
        effort: float | None = None,
        dense: bool = False,
        prepares: bool = False,
    ) -> None:
        """Learn what a step of some depth cost, and how long it was without that.

        The allowance is used up by `effort`, the cost without waiting for a busy machine. A light
        step that `prepares` the next one costs more than others: that is the other one's cost.
        """
        if self._unmeasured:
            self._unmeasured -= 1
            return
        if depth is Depth.LIGHT and not dense and not prepares:
            self.account_light(cost, length)
            return
        effort = cost if effort is None else effort
        if prepares:
            self._elapsed += length + cost
            self._spent += effort
            self._prepared += max(cost - self._costs.get(Depth.LIGHT, 0.0), 0.0)
            return
        if depth > Depth.LIGHT:
            self._elapsed -= self._prepared  # they are counted already
            self._spent -= self._prepared
            cost, effort, self._prepared = cost + self._prepared, effort + self._prepared, 0.0
        if dense:
            self._dense = cost
        else:
            self._costs[depth] = _average(self._costs.get(depth), cost)
        self._learn(1, cost, length, effort)

    def account_light(self, cost: float, length: float, steps: int = 1) -> None:
        """Learn what light steps cost: there are many, much alike, learned from in bunches."""
        before = self._light
        steps, cost, length = before[0] + steps, before[1] + cost, before[2] + length
        if steps < _BUNCH:
            self._light = steps, cost, length
            return
        self._light, cost, length = (0, 0.0, 0.0), cost / steps, length / steps
        self._costs[Depth.LIGHT] = _average(self._costs.get(Depth.LIGHT), cost)
        self._learn(steps, cost, length, cost)

    def _learn(self, steps: int, cost: float, length: float, effort: float) -> None:
        self._elapsed += steps * (length + cost)
        self._spent += steps * effort
        self._length = _average(self._length, length)
        if self._share is not None:
            self.is_generous = self._spent < self._allowance
            if not self.is_generous:
                self._choose(max(self._share * self._length * _AIM, _INSTANT))

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
        least = _LEAST_DENSITY[depth]
        if not self._is_affordable:
            least //= 4
        elif densest < every and self._extra <= self._spare:
            self._extra += self._costs.get(depth, 0.0) * (1 - densest / every)
            every = densest
        every = min(every, max(step // least, 1))
        return every | 1  # odd: of two trainings that take turns, both are read

    def _choose(self, affordable: float) -> None:
        full = self._costs.get(Depth.FULL, 0.0)
        light = min(self._costs.get(Depth.LIGHT, 0.0), full)
        regular = min(max(self._costs.get(Depth.REGULAR, full / 2), light), full)
        left = max(affordable - light, affordable * _LEAST)
        if self._dense is not None:
            extra = max(self._dense - light, 0.0)
            self.every_dense = _rarity(extra / (left * _DENSE_SHARE))
            left = max(left - extra / self.every_dense, affordable * _LEAST)
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
