"""Numbers that grow out of float32, forward and backward."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from zoo.births import Step, born


@born("mul", "overflow", samples=(1,))
def product_of_large_numbers() -> Step:
    """1e30 times 1e30."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 2), torch.randn(4, 3)
    x[1] *= 1e30

    def step() -> Tensor:
        h = model(x)
        return (h * h).mean()  # born here

    return Step(step, {"": model}, samples=4)


@born("mse_loss", "overflow", samples=(2,))
def exploded_prediction() -> Step:
    """A prediction of 1e20 in a squared error."""
    torch.manual_seed(0)
    model, x, y = nn.Linear(3, 1), torch.randn(4, 3), torch.zeros(4, 1)
    x[2] *= 1e22
    return Step(lambda: F.mse_loss(model(x), y), {"": model}, samples=4)  # born here


@born("mm", "overflow", samples=(0,), module="Recurrent")
def recurrence_that_explodes() -> Step:
    """A linear recurrence with a gain of 1000 a step."""
    torch.manual_seed(0)

    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = nn.Parameter(torch.eye(3) * 1000)

        def forward(self, x: Tensor) -> Tensor:
            h = torch.zeros(2, 3)
            for t in range(x.shape[1]):
                h = h @ self.cell + x[:, t]  # born here
            return h

    model, x = Recurrent(), torch.zeros(2, 16, 3)
    x[0, 0] = 1.0
    return Step(lambda: model(x).mean(), {"": model}, samples=2)


@born("mul", "overflow", phase="backward", samples=(3,))
def gradient_that_explodes() -> Step:
    """The loss is small, its gradient too large for float32."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 2), torch.randn(5, 3)
    gain = torch.ones(5, 1)
    gain[3] = 1e20

    def step() -> Tensor:
        h = model(x) * 1e-30
        h = h * gain  # born here
        return (h * gain).sum()

    return Step(step, {"": model}, samples=5)


@born("cumprod", "overflow", samples=(2,))
def running_product() -> Step:
    """A running product over a long sequence."""
    torch.manual_seed(0)
    model, x = nn.Linear(1, 1), torch.rand(3, 60, 1)
    x[2] += 8

    def step() -> Tensor:
        return model(x.cumprod(1)).mean()  # born here

    return Step(step, {"": model}, samples=3)


@born("sum", "overflow")
def sum_of_large_numbers() -> Step:
    """Each term is finite, their sum is not."""
    torch.manual_seed(0)
    model, x = nn.Linear(2, 1), torch.full((4, 2), 1.0)

    def step() -> Tensor:
        h = model(x).abs() * 0 + 1e38
        return (h * 2).sum()  # born here

    return Step(step, {"": model}, samples=4)
