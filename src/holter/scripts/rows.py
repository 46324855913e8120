"""Rows: samples that a script gives its model without a loader, kept until it has ended."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from holter.lab.batches import changed, tensors
from holter.lab.setup import Roles
from holter.record.signals import Signal
from holter.scripts.targets import TargetForm, form_of, target_beside
from holter.watching.collectors import Reading
from holter.watching.collectors.calls import Calls, is_compiled
from holter.watching.collectors.inputs import roots
from holter.watching.collectors.lane import Delivery, Evaluated, Lane
from holter.watching.collectors.moments import (
    AfterUpdate,
    Closing,
    Depth,
    EvaluationBegins,
    Joined,
    LossComputed,
    StepEnds,
    ValidationLoss,
)
from holter.watching.collectors.roster import Roster
from holter.watching.frames import Chain, Frames

ROLES = Roles("['target']")  # of the batches that are kept

_ROWS = 2000  # of either split
_BYTES = 2**25  # of the arguments of a call
_TABLE_BYTES = 2**26  # of either split; the batch that exceeds it is the last
_STEPS = 64  # of training that are heard
_LOADED_STEPS = 2  # the same where a loader delivers the rows: the form of the targets is enough
_PLACES = 4  # in the script where rows are evaluated without a loss
_EVALUATIONS = 4
_CALLS = 4  # whose loss is still to come

RowBatch = dict[str, Any]  # "args" and "kwargs" of the model, "target" of the loss function


class _Call(NamedTuple):
    """A call of a model: what it was given and returned."""

    arguments: tuple[Any, Any]
    output: Any


class _Heard:
    """The calls of a model whose loss is still to come."""

    def __init__(self, also: Callable[[_Call], None] | None = None) -> None:
        self.calls: Calls[str] = Calls(self._ignores, self._returned)
        self._latest: list[_Call] = []
        self._also = also

    def listen(self, roster: Roster) -> None:
        """Hear calls from here on."""
        if not any(is_compiled(model.module) for model in roster.models):
            self.calls.know(roots(roster))
            self.calls.listen()

    def forget(self) -> None:
        """Hear no more."""
        self.calls.stop()
        self._latest = []

    def of(self, arguments: Mapping[str, Any]) -> _Call | None:
        """Return the call whose output a loss function is given, if it is known.

        What is computed from an output is that of the only call with as many rows.
        """
        scores, target = arguments.get("input"), arguments.get("target")
        if not (isinstance(scores, Tensor) and isinstance(target, Tensor) and target.dim()):
            return None
        own = [call for call in self._latest if _shares_memory(call.output, scores)]
        fitting = [call for call in self._latest if _has_rows(call.arguments, len(target))]
        return own[-1] if own else fitting[0] if len(fitting) == 1 else None

    def _ignores(self, _: str, __: nn.Module, arguments: Any) -> bool:
        return _size(arguments) > _BYTES

    def _returned(self, _: str, __: nn.Module, arguments: tuple[Any, Any], output: Any) -> None:
        call = _Call(arguments, output)
        self._latest = [*self._latest, call][-_CALLS:]
        if self._also is not None:
            self._also(call)


class _Table:
    """Rows of one split."""

    def __init__(self) -> None:
        self._batches: list[RowBatch] = []
        self._rows = self._bytes = 0

    @property
    def is_full(self) -> bool:
        return self._rows >= _ROWS or self._bytes >= _TABLE_BYTES

    def add(self, call: _Call | None, target: Tensor | None) -> None:
        """Copy rows of a batch, evenly chosen where there are too many; on their device."""
        if call is None or target is None or not _has_rows(call.arguments, len(target)):
            return
        if self.is_full:
            return
        count, most = len(target), min(len(target), _ROWS - self._rows)
        places = [place * count // most for place in range(most)] if most > 0 else []

        def some(leaf: Tensor) -> Tensor:
            is_row = leaf.dim() > 0 and len(leaf) == count
            return leaf.detach()[places] if is_row else leaf.detach()

        if places:
            args, kwargs = call.arguments
            batch = {"args": args, "kwargs": kwargs, "target": target}
            self._batches.append(changed(batch, some))
            self._bytes += _size(self._batches[-1])
            self._rows += most

    def distinct(self) -> list[RowBatch]:
        """Return the rows, each once: the same samples are trained on in every epoch."""
        known: set[bytes] = set()
        return [batch for one in self._batches if (batch := _unknown(one, known)) is not None]


class TrainingRows:
    """Keeps rows of training steps that are read whole, unless a loader delivers them."""

    emits: ClassVar[tuple[Signal, ...]] = ()
    at: ClassVar[tuple[type, ...]] = (Joined, AfterUpdate, LossComputed, Closing)
    depth: ClassVar[Depth] = Depth.FULL
    wakes_at: ClassVar[tuple[type, ...]] = ()

    def __init__(self) -> None:
        self.declined: list[str] = []
        self.are_loaded = False
        self.table = _Table()
        self.form: TargetForm | None = None
        self._heard, self._steps = _Heard(), _STEPS

    def join(self, lane: Lane) -> None:
        """Hear whether a loader delivers what is trained on."""
        self._lane = lane
        lane.at_batch.append(self._fetched)

    def _fetched(self, _: Delivery) -> None:
        self.are_loaded, self._steps = True, min(self._steps, _LOADED_STEPS)
        self._lane.at_batch = [hear for hear in self._lane.at_batch if hear != self._fetched]

    @property
    def spent(self) -> float:
        """Seconds inside the hooks, which no moment sees."""
        return self._heard.calls.spent

    def read(self, moment: Joined | AfterUpdate | LossComputed | Closing) -> Iterable[Reading]:
        """Keep what the model and the loss function are given."""
        if isinstance(moment, LossComputed):
            if self._heard.calls.listens:
                call, target = self._heard.of(moment.arguments), moment.arguments.get("target")
                if call is not None and self.form is None:
                    self.form = form_of(target, call.arguments)
                if not self.are_loaded:
                    self.table.add(call, target)
        else:
            self._heard.forget()
            wanted = not self.are_loaded or self.form is None
            if (
                wanted
                and self._steps > 0
                and not self.table.is_full
                and not isinstance(moment, Closing)
            ):
                depth = moment.depth if isinstance(moment, Joined) else moment.next_depth
                if depth >= self.depth:
                    self._steps -= 1
                    self._heard.listen(moment.roster)
        return ()


class EvaluatedRows:
    """Keeps rows of the first evaluations of each data."""

    emits: ClassVar[tuple[Signal, ...]] = ()
    at: ClassVar[tuple[type, ...]] = (EvaluationBegins, ValidationLoss, StepEnds, Closing)
    depth: ClassVar[Depth] = Depth.LIGHT
    wakes_at: ClassVar[tuple[type, ...]] = (EvaluationBegins, ValidationLoss)

    def __init__(self, training: TrainingRows) -> None:
        self.declined: list[str] = []
        self._training, self._left = training, _EVALUATIONS
        self._heard = _Heard(self._returned)
        self._tables: dict[tuple[str, str], _Table] = {}  # by the data, and their split
        self._unscored: dict[Chain, _Table] = {}  # without a loss, by the place of the call
        self._are_loaded = False
        self._frames = Frames()

    def join(self, lane: Lane) -> None:
        """Hear whether a loader delivers what is evaluated."""
        self._lane = lane
        lane.at_evaluated.append(self._delivered)

    def _delivered(self, _: Evaluated) -> None:
        self._are_loaded = True
        self._heard.forget()
        self._lane.at_evaluated = [
            hear for hear in self._lane.at_evaluated if hear != self._delivered
        ]

    def _returned(self, call: _Call) -> None:
        """Keep rows of a call whose target is a variable beside it."""
        form = self._training.form
        if form is None or torch.is_grad_enabled():
            return
        chain = self._frames.chain()
        if chain not in self._unscored and len(self._unscored) == _PLACES:
            return
        target = target_beside(form, call.arguments, call.output, self._frames)
        if target is not None:
            self._unscored.setdefault(chain, _Table()).add(call, target)

    @property
    def spent(self) -> float:
        """Seconds inside the hooks, which no moment sees."""
        return self._heard.calls.spent

    def read(
        self, moment: EvaluationBegins | ValidationLoss | StepEnds | Closing
    ) -> Iterable[Reading]:
        """Listen from the beginning of an evaluation, or from its first loss on."""
        if isinstance(moment, StepEnds | Closing) or self._are_loaded:
            self._left -= self._heard.calls.listens
            self._heard.forget()
        elif self._left > 0:
            if isinstance(moment, ValidationLoss):
                table = self._tables.setdefault((moment.data, moment.split), _Table())
                table.add(self._heard.of(moment.arguments), moment.arguments.get("target"))
            self._heard.listen(moment.roster)
        return ()

    def kept(self) -> Iterator[tuple[str, list[RowBatch]]]:
        """Yield the split and the rows of each data that were evaluated, validation first."""
        order = {"validation": 0, "": 1, "test": 2, "train": 3}
        tables = sorted(self._tables.items(), key=lambda each: order.get(each[0][1], 1))
        for (_, split), table in tables:
            rows = table.distinct()
            if rows:
                yield split, rows

    def unscored(self) -> Iterator[list[RowBatch]]:
        """Yield rows that were evaluated without a loss, by the place of the call."""
        yield from filter(None, (table.distinct() for table in self._unscored.values()))


class Rows:
    """What was kept of both splits."""

    def __init__(self) -> None:
        self._training = TrainingRows()
        self._evaluated = EvaluatedRows(self._training)
        self.collectors = (self._training, self._evaluated)

    def batches(self) -> dict[str, list[RowBatch]]:
        """Return rows of training, and of validation if there are any; nothing of loaders."""
        train = self.trained()
        if not train:
            return {}
        split, valid = next(self._evaluated.kept(), ("train", []))
        return {"train": train, **({} if split == "train" else {"valid": valid})}

    def evaluated(self) -> list[list[RowBatch]]:
        """Return the rows of each data that no loader delivers in evaluation, validation first.

        Some of them may be training rows.
        """
        scored = [rows for split, rows in self._evaluated.kept() if split != "train"]
        return [*scored, *self._evaluated.unscored()]

    def trained(self) -> list[RowBatch]:
        """Return training rows that no loader delivers."""
        return [] if self._training.are_loaded else self._training.table.distinct()


def _size(value: Any) -> int:
    return sum(leaf.numel() * leaf.element_size() for leaf in tensors(value))


def _has_rows(arguments: Any, count: int) -> bool:
    return any(leaf.dim() > 0 and len(leaf) == count for leaf in tensors(arguments))


def _shares_memory(output: Any, scores: Tensor) -> bool:
    own = scores.untyped_storage().data_ptr()
    return any(leaf.untyped_storage().data_ptr() == own for leaf in tensors(output))


def _unknown(batch: RowBatch, known: set[bytes]) -> RowBatch | None:
    """Return the rows of a batch that are not known yet, and remember them; on the host."""
    batch = changed(batch, Tensor.cpu)
    count = len(batch["target"])
    rows = [leaf for leaf in tensors(batch) if leaf.dim() and len(leaf) == count]
    numbers = torch.cat([leaf.reshape(count, -1).double() for leaf in rows], dim=1)
    fresh = []
    for place, row in enumerate(numbers.numpy()):
        digest = row.tobytes()
        if digest not in known:
            known.add(digest)
            fresh.append(place)

    def some(leaf: Tensor) -> Tensor:
        return leaf[fresh] if leaf.dim() and len(leaf) == count else leaf

    return changed(batch, some) if fresh else None
