"""The birth of a NaN: the first operation whose operands are finite and whose output is not."""

from collections.abc import Callable, Mapping, Sequence

from torch import Tensor, nn
from torch.optim import Optimizer

from holter.lab.birth.births import birth
from holter.lab.birth.classes import KINDS
from holter.lab.birth.running import run
from holter.lab.birth.tracing import Trace
from holter.record.births import Birth, Operand

__all__ = ["KINDS", "Birth", "Operand", "find"]


def find(
    step: Callable[[], Tensor],
    models: Mapping[str, nn.Module],
    optimizers: Sequence[Optimizer] = (),
    *,
    samples: int | None = None,
    update: Callable[[], object] | None = None,
    stepped_at: str = "",
    backward_at: str = "",
) -> Birth | None:
    """Run a step and find the birth of what is not finite in it; None if all stays finite.

    `step` makes the forward pass and returns the loss; backward and the updates are made here, the
    latter by `update` where a training does more than to call `step()` of its optimizers: unscale,
    clip. `samples` is the size of the batch; `stepped_at` and `backward_at` are file and line
    of the script's own `optimizer.step()` and `backward()`. A step that raises because of a NaN has
    a birth, too.
    Weights, gradients, optimizers and RNGs are left as the step leaves them: restore them.
    """
    trace = Trace(models, optimizers, samples=samples, bottom=find.__code__)
    course = run(trace, step, models, optimizers, update)
    return birth(trace, course, stepped_at, backward_at)
