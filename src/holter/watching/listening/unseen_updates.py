"""UnseenUpdates: updates of weights that no torch optimizer makes."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from holter.watching.collectors.roster import Roster
from holter.watching.listening.updates import UpdateListener
from holter.watching.loop import Loop
from holter.watching.shield import shielded
from holter.watching.stats.shards import local
from holter.watching.tap import Tap
from holter.watching.taps.beginnings import tap_beginnings

_SAMPLED = 4  # parameters whose values are compared where no counter tells of a change
_ELEMENTS = 1024  # of each of them
_MOST = 16  # models that are followed: an inner loop adapts copies of a model without an end
_TRIAL = 64  # backward passes in which parameters that are updated at all are seen to be

State = tuple[int, int] | None  # identity of a gradient, and how often it was written to


class UnseenOptimizer(Optimizer):
    """Stands for whatever updates some parameters without a torch optimizer.

    It has no learning rate and no state, because these are unknown, and it is never stepped.
    """

    def __init__(self, parameters: Iterable[tuple[str, Tensor]], *, by: str) -> None:
        super().__init__(list(parameters), {})
        self.by = by  # who updates the parameters, for sentences

    def zero_grad(self, set_to_none: bool = False) -> None:
        """Set gradients to zero: whoever makes the update will read them."""
        super().zero_grad(set_to_none=set_to_none)


class UnseenUpdates:
    """Takes parameters that change between two backward passes for a step.

    The end of each backward is then the beginning of an update, because gradients may be gone when
    the change is seen. That is when the script begins its next step, ends, or calls backward again.
    """

    def __init__(
        self, loop: Loop, updates: UpdateListener, tapped: Callable[[list[Tap]], None]
    ) -> None:
        self.shield = loop.shield
        self._loop, self._updates, self._tapped = loop, updates, tapped
        self._followed: list[_Followed] = []
        self._models: set[int] = set()  # identities
        self._is_tapped = False
        self._roots: list[Any] = []  # nodes of the graph that backward was called on
        self._idle = 0  # backward passes that reached no followed parameter
        self._awaits = False  # whether an update may come
        # A torch optimizer updates the weights, so that all is seen without this.
        self.is_deaf = False
        loop.stepper.lane.at_roster.append(self._attend)
        self.backwards = 0  # while no torch optimizer was watched

    def _attend(self, roster: Roster) -> None:
        optimizers = [subject.optimizer() for subject in roster.subjects]
        self.is_deaf = any(not isinstance(each, UnseenOptimizer | None) for each in optimizers)

    @property
    def updaters(self) -> list[str]:
        """Who was seen to update weights."""
        return list(dict.fromkeys(f.optimizer.by for f in self._followed if f.updates))

    def backward_begins(self, roots: Sequence[Tensor], whole: bool) -> None:  # noqa: ARG002
        """See the update since the last backward."""
        self.look()
        self._remember(roots)

    def backward_ends(self) -> None:
        """Read the gradients, as the update may follow at once; look for others that have some."""
        reached: list[_Followed] = []
        self._reach(reached)
        for followed in reached:
            self._updates.before_step(followed.optimizer, (followed.optimizer,), {})
        self._wait_for(reached)

    def look(self) -> None:
        """See updates that have been made since backward ended."""
        if not self._awaits:
            return
        updated: list[_Followed] = []
        self._find(updated)
        for followed in updated:
            self._updates.after_step(followed.optimizer, (followed.optimizer,), {})

    def follow(self, optimizer: UnseenOptimizer) -> None:
        """Watch the parameters of an optimizer that stands for something unseen."""
        if not self._is_tapped:
            self._is_tapped = True
            self._tapped(tap_beginnings(self.look, lambda module: id(module) in self._models))
        self._followed.append(_Followed(optimizer))
        self._models = {id(model.module) for model in self._loop.stepper.roster.models}

    def release(self) -> bool:
        """Follow nothing any more, as a torch optimizer was made; return whether anything was."""
        was_following = bool(self._followed)
        self._followed.clear()
        self._awaits = False
        return was_following

    # Shielded parts: the hooks of an optimizer, which are called between them, are so themselves.

    @shielded
    def _remember(self, roots: Sequence[Tensor]) -> None:
        self._roots = [root.grad_fn for root in roots]
        for followed in self._followed:
            followed.backward_begins()

    @shielded
    def _reach(self, reached: "list[_Followed]") -> None:
        roots, self._roots = self._roots, []
        self.backwards += 1
        reached += [followed for followed in self._followed if followed.backward_reached()]
        self._idle = 0 if reached else self._idle + 1
        if _is_power_of_two(self.backwards) or _is_power_of_two(self._idle):
            before = list(self._followed)
            self._scout(roots)
            reached += [followed for followed in self._followed if followed not in before]

    @shielded
    def _wait_for(self, reached: "list[_Followed]") -> None:
        for followed in reached:
            followed.backward_ended()
        self._awaits |= bool(reached)

    @shielded
    def _find(self, updated: "list[_Followed]") -> None:
        updated += [followed for followed in self._followed if followed.is_updated()]
        self._awaits = any(followed.awaits for followed in self._followed)

    def _scout(self, roots: Sequence[Any]) -> None:
        if self._loop.scout is None or len(self._followed) >= _MOST:
            return
        if self.backwards >= _TRIAL and any(followed.updates for followed in self._followed):
            self._followed = [followed for followed in self._followed if followed.updates]
        known = {id(p) for followed in self._followed for p in followed.parameters}
        self._loop.scout.after_unseen_backward(known, lambda: _leaves(roots))
        if len(self._followed) >= _MOST:
            self.shield.notes.append(
                f"{len(self._followed)} models are updated without an optimizer; models that the"
                " script trains so from here on are not recorded."
            )


class _Followed:
    """Parameters that something unseen updates, and how they were when backward ended.

    A tensor counts its own changes, but `p.data` goes past the counter. Until the counter is seen
    to tell of an update, some values are compared too; then, cleared gradients tell of one as well.
    """

    def __init__(self, optimizer: UnseenOptimizer) -> None:
        self.optimizer = optimizer
        self.parameters: list[Tensor] = optimizer.param_groups[0]["params"]
        self.updates = 0
        self._watched = _spread(self.parameters)
        self._gradients: list[State] = [None] * len(self._watched)
        self._written: list[int] | None = None
        self._values: list[Tensor] = []
        self._by_counter = self._by_value = False

    @property
    def awaits(self) -> bool:
        """Whether it has gradients that no update has used."""
        return self._written is not None

    def backward_begins(self) -> None:
        self._gradients = [_state(parameter) for parameter in self._watched]

    def backward_reached(self) -> bool:
        """Whether backward has given these parameters gradients."""
        now = [_state(parameter) for parameter in self._watched]
        return any(n is not None and n != b for n, b in zip(now, self._gradients, strict=True))

    def backward_ended(self) -> None:
        self._written = _writes(self.parameters)
        self._gradients = [_state(parameter) for parameter in self._watched]
        if not self._by_counter:
            self._values = [_part(p).clone() for p in self._watched[-_SAMPLED:]]

    def is_updated(self) -> bool:
        """Whether the parameters have changed since backward; true once for each backward."""
        if self._written is None or not self._is_changed(self._written):
            return False
        self._written = None
        self.updates += 1
        return True

    def _is_changed(self, written: list[int]) -> bool:
        if _writes(self.parameters) != written:
            self._by_counter = True
            return True
        if self._by_counter:
            return False
        if self._by_value and [_state(p) for p in self._watched] != self._gradients:
            return True
        sampled = zip(self._watched[-_SAMPLED:], self._values, strict=True)
        changed = any(not torch.equal(_part(p), then) for p, then in sampled)
        self._by_value |= changed
        return changed


def _spread(parameters: list[Tensor]) -> list[Tensor]:
    """Return some parameters, the last among them: gradients of the head are hardly ever zero."""
    every = max(1, len(parameters) // (2 * _SAMPLED))
    return parameters[::-1][::every][: 2 * _SAMPLED][::-1]


def _state(parameter: Tensor) -> State:
    gradient = parameter.grad
    return None if gradient is None else (id(gradient), gradient._version)  # noqa: SLF001


def _writes(parameters: list[Tensor]) -> list[int]:
    """Return what changes when a parameter is written to, or its `data` is replaced."""
    counts = [parameter._version for parameter in parameters]  # noqa: SLF001
    return counts + [part.data_ptr() for part in local(parameters)]


def _part(parameter: Tensor) -> Tensor:
    return local([parameter.detach()])[0].reshape(-1)[:_ELEMENTS]


def _is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


def _leaves(roots: Iterable[Any]) -> list[Tensor]:
    """Return the tensors that a backward pass from these nodes of a graph accumulates into."""
    leaves: list[Tensor] = []
    seen, waiting = set(), [root for root in roots if root is not None]
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.name() == "torch::autograd::AccumulateGrad":
            leaves.append(node.variable)
        waiting += [following for following, _ in node.next_functions if following is not None]
    return leaves[::-1]
