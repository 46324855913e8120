"""Old tasks: data that a model was trained on before, evaluated while it learns something new."""

import contextlib
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from holter.record.evaluations import ALSO
from holter.watching.loop import Loop

Task = Callable[[], Tensor | float] | Iterable[Any]


class OldTasks:
    """Computes the losses of old tasks before the first step, after each epoch and at the end.

    A task is a function that returns its loss, or batches of inputs and targets: then the loss
    function is the one that the model is trained with. Random numbers, modes and buffers are
    restored, so that the training goes on as if nothing had happened.
    """

    def __init__(self, loop: Loop, tasks: Mapping[str, Task]) -> None:
        self._loop = loop
        self._tasks = dict(tasks)
        self._is_due = True
        self._step = -1  # at which they were evaluated last

    def mark(self) -> None:
        """See a new epoch, or the end of a validation: evaluate before the next step."""
        self._is_due = True

    def before_step(self, *_: Any) -> None:
        """Evaluate if it is time to. Gradients are there, and no graph is needed any more."""
        if self._is_due:
            self._is_due = False
            self.evaluate()

    def evaluate(self) -> None:
        """Log the loss of each task, unless that was done at this step."""
        loop = self._loop
        shield, step = loop.shield, loop.stepper.coming_step
        if shield.is_closed or shield.home.is_left or step == self._step:
            return
        if shield.is_on_cuda and shield.is_capturing():
            return
        self._step = step
        losses = {}
        for name, task in list(self._tasks.items()):
            try:
                losses[f"{ALSO}{name}"] = self._loss(task)
            except Exception as error:
                del self._tasks[name]
                shield.fail(f"evaluating {name}", error)
        if losses:
            loop.log(losses)

    def _loss(self, task: Task) -> Tensor:
        models = [model.module for model in self._loop.stepper.roster.models]
        with self._loop.paused(), torch.no_grad(), _untouched(models):
            if callable(task):
                return torch.as_tensor(task(), dtype=torch.float32).detach().mean()
            return self._mean(models, task)

    def _mean(self, models: Sequence[nn.Module], batches: Iterable[Any]) -> Tensor:
        """Return the mean loss over batches of inputs and targets."""
        function = self._loop.loss_function
        if len(models) != 1 or not function:
            raise ValueError("give a function that returns the loss: `also={name: function}`")
        (model,) = models
        device = next(model.parameters()).device
        compute: Callable[[Tensor, Tensor], Tensor] = getattr(functional, function)
        total, count = torch.zeros((), device=device), 0
        for inputs, targets in batches:
            loss = compute(model(inputs.to(device)), targets.to(device))
            total += loss.float() * len(inputs)
            count += len(inputs)
        return total / max(count, 1)


@contextlib.contextmanager
def _untouched(models: Sequence[nn.Module]) -> Iterator[None]:
    """Put models into eval mode; restore modes, buffers and random numbers afterwards."""
    modules = [module for model in models for module in model.modules()]
    modes = [module.training for module in modules]
    buffers = [(buffer, buffer.clone()) for model in models for buffer in model.buffers()]
    states = torch.get_rng_state(), random.getstate()
    numpy = sys.modules.get("numpy")
    numpy_state = numpy.random.get_state() if numpy is not None else None
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    try:
        for module in modules:
            module.training = False
        yield
    finally:
        for module, mode in zip(modules, modes, strict=True):
            module.training = mode
        with torch.no_grad():
            for buffer, kept in buffers:
                if not torch.equal(buffer, kept):
                    buffer.copy_(kept)
        torch.set_rng_state(states[0])
        random.setstate(states[1])
        if numpy is not None and numpy_state is not None:
            numpy.random.set_state(numpy_state)
        if cuda:
            torch.cuda.set_rng_state_all(cuda)
