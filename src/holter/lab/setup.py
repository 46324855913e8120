"""Setup: what a training step needs, so that experiments can repeat it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn
from torch.amp import GradScaler
from torch.optim import LBFGS, Optimizer
from torch.utils.data import DataLoader

from holter.record.errors import HolterError
from holter.watching.watch import Watch

Batch = Any  # whatever a loader delivers, or the variables of a script by name
Batches = Iterable[Batch]


class KnowsSetup:
    """What knows the training that it is a part of, such as the callback of a framework.

    Where the step of a script cannot be extracted, experiments use the setup of one that is alive.
    """

    def training_setup(self) -> "Setup":
        """Return the training as a setup for experiments."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class ScriptWrite:
    """Where a training writes to tensors besides its optimizer, and what does it again.

    `run` is None where nothing is proven to do the same.
    """

    where: str  # file, line and statement
    run: Callable[[], None] | None = None


@dataclass(frozen=True, slots=True)
class LossPhase:
    """One loss of a training step and the optimizers that step on it; a GAN has two."""

    loss: Callable[[Batch], Tensor]
    optimizers: tuple[Optimizer, ...]
    max_norm: float | None = None  # to which gradients are clipped
    scaler: GradScaler | None = None
    stepped_at: str = ""  # file and line of `optimizer.step()` in the script, if it is known
    backward_at: str = ""  # file and line of its `backward()`
    # What a loader delivers -> what this loss is given; of None, what it draws by itself.
    prepare: Callable[[Any], Batch] | None = None
    regrade: ScriptWrite | None = None  # what the training does to gradients by itself
    rewrite: ScriptWrite | None = None  # what it does to weights after the update

    @property
    def by_closure(self) -> bool:
        """Whether an optimizer computes the loss several times in a step, as LBFGS does."""
        return any(isinstance(optimizer, LBFGS) for optimizer in self.optimizers)

    def update(self) -> None:
        """Change and clip the gradients as the training does, and step the optimizers."""
        if self.regrade is not None and self.regrade.run is not None:
            self.regrade.run()
        self.clip()
        for optimizer in self.optimizers:
            if self.scaler is None:
                optimizer.step()
            else:
                self.scaler.step(optimizer)

    def clip(self) -> None:
        """Clip the gradients if asked to."""
        if self.max_norm is not None:
            if self.scaler is not None:
                for optimizer in self.optimizers:
                    self.scaler.unscale_(optimizer)
            held = [parameter for parameter in self.parameters if parameter.grad is not None]
            nn.utils.clip_grad_norm_(held, self.max_norm)

    @property
    def parameters(self) -> list[Tensor]:
        """The parameters that its optimizers hold."""
        groups = [group for optimizer in self.optimizers for group in optimizer.param_groups]
        return [parameter for group in groups for parameter in group["params"]]


@dataclass(frozen=True, slots=True)
class Roles:
    """What the tensors of a batch are for, by their paths: `[1]`, `['label']`."""

    target: str
    inputs: tuple[str, ...] = ()  # that the model is given; empty: not known


@dataclass(frozen=True)
class Setup:
    """A training that can be repeated: its models, its step, its data.

    `train` and `valid` can be iterated over any number of times, from the start each time.
    `schedulers` and `others` (averaged weights, or anything else with a state) are not used but
    restored after each experiment.
    """

    models: Mapping[str, nn.Module]
    phases: tuple[LossPhase, ...]
    train: Batches
    valid: Batches | None = None
    loaders: Mapping[str, DataLoader[Any]] = field(default_factory=dict)  # "train", "valid"
    schedulers: tuple[Any, ...] = ()
    others: tuple[Any, ...] = ()
    objects: tuple[str, ...] = ()  # and numbers of the script that the step uses, by name
    accumulation: int = 1  # batches that make one step
    source: str = ""  # where the step is written, for people
    called: nn.Module | None = None  # the part that the step calls in place of the whole model
    # Weights that a script had reached when it was paused, by model and name: its models are as
    # they were before the first step.
    reached: Mapping[str, Mapping[str, Tensor]] = field(default_factory=dict)
    aside: Callable[[], AbstractContextManager[None]] = nullcontext  # around each experiment
    roles: Roles | None = None  # of what is in a batch, where it is known
    samples: int | None = None  # of a batch, where an index of the script tells and no loader does
    samples_shuffled: bool = False  # that index is in random order

    @classmethod
    def of(
        cls,
        model: nn.Module,
        optimizer: Optimizer,
        loss: Callable[..., Tensor],
        train: Batches,
        *,
        valid: Batches | None = None,
        scheduler: Any = None,
        scaler: GradScaler | None = None,
        max_norm: float | None = None,
        others: Sequence[Any] = (),
    ) -> "Setup":
        """Build a setup of one model and one optimizer.

        `loss` is a criterion, called as `loss(model(inputs), targets)` with batches of two, or a
        function `loss(model, batch)` that makes the forward pass itself.
        """
        computed = _with_criterion if isinstance(loss, nn.Module) or _is_torch(loss) else _whole
        loaders = {"train": train, "valid": valid}
        return cls(
            models={"": model},
            phases=(LossPhase(computed(model, loss), (optimizer,), max_norm, scaler),),
            train=train,
            valid=valid,
            loaders={name: each for name, each in loaders.items() if isinstance(each, DataLoader)},
            schedulers=() if scheduler is None else (scheduler,),
            others=tuple(others),
        )

    @classmethod
    def of_watch(
        cls, watch: Watch, loss: Callable[..., Tensor], train: Batches, **more: Any
    ) -> "Setup":
        """Build a setup of the model and the optimizer of a watch, which records no experiment.

        So experiments can be run in the middle of a training, which continues unchanged.
        """
        models = [model.module for model in watch.roster.models]
        optimizers = [subject.optimizer() for subject in watch.roster.subjects]
        if len(models) != 1 or len(optimizers) != 1 or optimizers[0] is None:
            raise HolterError(
                f"The watch has {len(models)} models and {len(optimizers)} optimizers: build"
                " the setup from phases, `holter.Setup(models, phases, train)`."
            )
        made = cls.of(models[0], optimizers[0], loss, train, **more)
        return replace(made, aside=watch.paused)

    @property
    def prepare(self) -> Callable[[Any], Batch] | None:
        """What makes a batch of what a loader delivers, for all phases; None where one cannot."""
        parts = [phase.prepare for phase in self.phases if phase.prepare is not None]
        if len(parts) < len(self.phases):
            return None
        return lambda delivered: {k: v for part in parts for k, v in part(delivered).items()}

    @property
    def model(self) -> nn.Module:
        """The model; the first one that the first phase trains, if there are several."""
        trained = {id(parameter) for parameter in self.phases[0].parameters}
        for model in self.models.values():
            if any(id(parameter) in trained for parameter in model.parameters()):
                return model
        return next(iter(self.models.values()))

    @property
    def entry(self) -> nn.Module:
        """The module that the step gives its inputs to: the model, or the part that it calls."""
        return self.model if self.called is None else self.called

    @property
    def optimizers(self) -> tuple[Optimizer, ...]:
        """All optimizers, without duplicates."""
        found = {
            id(optimizer): optimizer for phase in self.phases for optimizer in phase.optimizers
        }
        return tuple(found.values())

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        return next(self.model.parameters()).device

    def batches(self, count: int) -> list[Batch]:
        """Return the first `count` training batches, or all if there are fewer."""
        return list(islice(self.train, count))

    def endless(self) -> Iterator[Batch]:
        """Yield training batches, epoch after epoch."""
        while True:
            some = False
            for batch in self.train:
                some = True
                yield batch
            if not some:
                raise ValueError("there are no training batches")

    def loss(self, batch: Batch) -> Tensor:
        """Return the loss of the first phase on a batch."""
        return self.phases[0].loss(batch)

    def step(self, *batches: Batch) -> float:
        """Run one training step on these batches as the training does, and return the mean loss.

        Modes are left as they are, and schedulers are not stepped. With several phases it returns
        the loss of the first; `losses_of_step` returns all.
        """
        return self.losses_of_step(*batches)[0]

    def losses_of_step(self, *batches: Batch) -> list[float]:
        """Run one training step, and return the mean loss of each of its phases."""
        return [self.run_phase(phase, batches) for phase in self.phases]

    def run_phase(self, phase: LossPhase, batches: Sequence[Batch]) -> float:
        """Run one phase of a step, and return its mean loss."""
        if phase.by_closure:
            return self._phase_by_closure(phase, batches)
        loss = self._gradients(phase, batches)
        phase.update()
        if phase.scaler is not None:
            phase.scaler.update()
        return loss

    def _phase_by_closure(self, phase: LossPhase, batches: Sequence[Batch]) -> float:
        """Step optimizers that call for the loss themselves; the loss is that of the first call."""
        losses: list[float] = []

        def closure() -> float:
            losses.append(self._gradients(phase, batches))
            phase.clip()
            return losses[-1]

        for optimizer in phase.optimizers:
            optimizer.step(closure)
        return losses[0]

    def _gradients(self, phase: LossPhase, batches: Sequence[Batch]) -> float:
        """Compute the gradients of some batches, and return their mean loss."""
        for optimizer in phase.optimizers:
            optimizer.zero_grad()
        total = 0.0
        for batch in batches:
            loss = phase.loss(batch)
            total += float(loss.detach().mean())
            if loss.requires_grad:
                scaled = loss if phase.scaler is None else phase.scaler.scale(loss)
                torch.autograd.backward(scaled.mean())
        return total / max(len(batches), 1)


def _is_torch(function: Callable[..., Any]) -> bool:
    return (getattr(function, "__module__", None) or "").startswith("torch")


def _with_criterion(model: nn.Module, criterion: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def loss(batch: Batch) -> Tensor:
        device = next(model.parameters()).device
        inputs, targets = batch
        return criterion(model(inputs.to(device)), targets.to(device))

    return loss


def _whole(model: nn.Module, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda batch: function(model, batch)
