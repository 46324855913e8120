"""Updates: what optimizers of torch and hand-written ones make of finite gradients."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adagrad, Adam, AdamW, NAdam, Optimizer

from zoo.births import Step, born, healthy


def _unused_input(make: Callable[[nn.Module], Optimizer], *, times: float = 1.0) -> Step:
    """A layer one input of which is always 0, so that some weights never have a gradient."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 2), torch.randn(4, 3)
    x[:, 1] = 0
    return Step(lambda: model(x).pow(2).mean() * times, {"": model}, [make(model)], 4)


@born("addcdiv", "zero by zero", phase="update")
def adam_of_lists_without_eps() -> Step:
    """The implementation that updates all parameters at once, with eps = 0."""
    return _unused_input(lambda model: Adam(model.parameters(), eps=0.0, foreach=True))


@born("addcdiv", "zero by zero", phase="update")
def fused_adam_without_eps() -> Step:
    """One kernel for everything, with eps = 0."""
    return _unused_input(lambda model: AdamW(model.parameters(), eps=0.0, fused=True))


@born("addcdiv", "zero by zero", phase="update")
def nadam_without_eps() -> Step:
    """NAdam with eps = 0."""
    return _unused_input(lambda model: NAdam(model.parameters(), eps=0.0))


@born("addcdiv", "zero by zero", phase="update")
def adagrad_without_eps() -> Step:
    """Adagrad with eps = 0: the sum of squares is 0 where there was no gradient."""
    return _unused_input(lambda model: Adagrad(model.parameters(), eps=0.0))


@born("addcdiv", "bad setting", phase="update")
def learning_rate_that_is_no_number() -> Step:
    """A schedule takes the root of a negative number, in numpy."""
    made = _unused_input(lambda model: Adam(model.parameters()))
    made.optimizers[0].param_groups[0]["lr"] = float("nan")
    return made


@born("addcmul", "half range", phase="update", dtype="float16")
def second_moment_in_float16() -> Step:
    """A gradient of 10,000 is finite in float16, 0.001 times its square is not."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 1).half(), torch.ones(4, 3).half()
    optimizer = Adam(model.parameters(), eps=1e-4)
    return Step(lambda: 2500 * model(x).sum(), {"": model}, [optimizer], 4)


@born("addcmul", "overflow", phase="update", dtype="bfloat16")
def second_moment_in_bfloat16() -> Step:
    """A gradient of 4e24 squared is beyond float32, and beyond bfloat16 as well."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 1).bfloat16(), torch.ones(4, 3).bfloat16()
    return Step(lambda: 1e24 * model(x).sum(), {"": model}, [Adam(model.parameters())], 4)


@born("add", "half range", phase="update", dtype="float16")
def momentum_in_float16() -> Step:
    """Two gradients of 40,000 are one momentum of 76,000."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 1).half(), torch.ones(4, 3).half()
    optimizer = SGD(model.parameters(), 1e-6, momentum=0.9)

    def step() -> Tensor:
        return (model(x) * 10000).sum()

    step().backward()
    optimizer.step()
    return Step(step, {"": model}, [optimizer], 4)


class _HandWritten(Optimizer):
    """An optimizer of a script: what it does to a parameter is a function."""

    def __init__(self, model: nn.Module, update: Callable[[Any, dict[str, Any]], None]) -> None:
        super().__init__(model.parameters(), {})
        self._update = update

    @torch.no_grad()
    def step(self, _: Any = None) -> None:  # type: ignore[override]
        """Update each parameter."""
        for each in self.param_groups[0]["params"]:
            self._update(each, self.state[each])


@born("sqrt", "outside domain", phase="update")
def hand_written_variance() -> Step:
    """A variance as E[g^2] - E[g]^2 with different decay rates is negative at first."""

    def update(parameter: Any, state: dict[str, Any]) -> None:
        for name in ("mean", "square"):
            state.setdefault(name, torch.zeros_like(parameter))
        state["mean"].lerp_(parameter.grad, 0.1)
        state["square"].lerp_(parameter.grad.square(), 0.005)
        spread = (state["square"] - state["mean"].square()).sqrt()  # born here
        parameter.sub_(0.01 * state["mean"] / (spread + 1e-6))

    return _unused_input(lambda model: _HandWritten(model, update))


@born("div", "zero norm", phase="update")
def hand_written_normed_step() -> Step:
    """Steps of a fixed length: the gradient is divided by its norm, which is 0 of a dead layer."""
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.Linear(2, 1)), torch.randn(4, 3)
    with torch.no_grad():
        model[0].bias.fill_(-100)

    def update(parameter: Any, _: dict[str, Any]) -> None:
        parameter.sub_(parameter.grad / parameter.grad.norm())  # born here

    return Step(lambda: model(x).pow(2).mean(), {"": model}, [_HandWritten(model, update)], 4)


@healthy
def adam_with_its_epsilon() -> Step:
    """The same unused input, with the epsilon that Adam has."""
    return _unused_input(lambda model: Adam(model.parameters(), fused=True))
