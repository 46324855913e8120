"""Which losses make one step of which optimizers, from the order in which things happened."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from torch.amp import GradScaler
from torch.optim import LBFGS, Optimizer

Key = Any  # of a site


@dataclass(eq=False)
class Update:
    """One update: the backwards since the last one, how gradients were clipped, who stepped."""

    backwards: list[Key] = field(default_factory=list)
    max_norm: float | None = None
    scaler: GradScaler | None = None
    optimizers: list[Any] = field(default_factory=list)
    stepped_at: str = ""  # file and line of `optimizer.step()` in the script


class Timeline:
    """The updates of a training so far."""

    def __init__(self) -> None:
        self.updates: list[Update] = []
        self._open = Update()
        self.scaler: GradScaler | None = None  # that has scaled a loss since the last backward
        self._first: dict[frozenset[int], Any] = {}  # of those with the same parameters

    @property
    def steps(self) -> int:
        """How many updates there were."""
        return len(self.updates) + bool(self._open.optimizers)

    @property
    def optimized(self) -> bool:
        """Whether an optimizer of torch has made an update."""
        return any(isinstance(each, Optimizer) for each in self._first.values())

    @property
    def is_scaled(self) -> bool:
        """Whether the backward under way is of a loss that a GradScaler has multiplied."""
        return self._open.scaler is not None

    def backward(self, key: Key) -> None:
        """Backward was called at a site."""
        if self._open.optimizers:
            self.updates.append(self._open)
            self._open = Update()
        self._open.backwards.append(key)
        self._open.scaler, self.scaler = self.scaler or self._open.scaler, None

    def clipped(self, norm: float) -> None:
        """Gradients were clipped; after the step it is of no effect."""
        if not self._open.optimizers:
            self._open.max_norm = norm

    def scaled(self, scaler: GradScaler) -> None:
        """A loss was scaled, for the backward that follows."""
        self.scaler = scaler

    def stepped(self, optimizer: Any, where: str = "") -> None:
        """An optimizer has stepped, or the script itself; one made again counts as the first."""
        self._open.stepped_at = self._open.stepped_at or where
        held = frozenset(
            id(parameter) for group in optimizer.param_groups for parameter in group["params"]
        )
        optimizer = self._first.setdefault(held, optimizer)
        if self._open.backwards and not any(each is optimizer for each in self._open.optimizers):
            self._open.optimizers.append(optimizer)

    def whole(self) -> list[Update]:
        """All updates, the last one too."""
        return [*self.updates, *([self._open] if self._open.optimizers else [])]


@dataclass(frozen=True, eq=False)
class Pattern:
    """A kind of update that comes again and again."""

    sites: tuple[Key, ...]
    optimizers: tuple[Any, ...]
    max_norm: float | None
    scaler: GradScaler | None
    accumulation: int
    stepped_at: str = ""  # file and line of `optimizer.step()` in the script


def patterns(updates: Sequence[Update]) -> list[Pattern]:
    """The kinds of updates that a training consists of, in the order of their first coming.

    Updates by the same sites are of one kind. What happened only once at the beginning, while
    another kind came often, is a test before the training and none.
    """
    kinds: dict[tuple[Key, ...], list[Update]] = {}
    for update in updates:
        kinds.setdefault(tuple(dict.fromkeys(update.backwards)), []).append(update)
    often = max((len(kind) for kind in kinds.values()), default=0)
    chosen: dict[tuple[Key, ...], list[Update]] = {}
    for sites, found in sorted(kinds.items(), key=lambda each: -len(each[1])):
        overlapping = any(set(sites) & set(other) for other in chosen)
        if not overlapping and (len(found) > 1 or often == 1):
            chosen[sites] = found
    return [_pattern(sites, chosen[sites]) for sites in kinds if sites in chosen]


def _pattern(sites: tuple[Key, ...], updates: Sequence[Update]) -> Pattern:
    optimizers = {id(optimizer): optimizer for update in updates for optimizer in update.optimizers}
    norms = [update.max_norm for update in updates]
    counts = Counter(Counter(update.backwards)[sites[0]] for update in updates)
    # An optimizer that computes the loss several times in a step accumulates nothing.
    repeats = any(isinstance(optimizer, LBFGS) for optimizer in optimizers.values())
    return Pattern(
        sites,
        tuple(optimizers.values()),
        Counter(norms).most_common(1)[0][0],
        next((update.scaler for update in updates if update.scaler is not None), None),
        1 if repeats else counts.most_common(1)[0][0],
        updates[-1].stepped_at,
    )
