"""Roots, norms and distances whose gradient at zero is infinite."""

import torch
from torch import Tensor, nn
from torch.optim import SGD

from zoo.births import Step, born


@born("sqrt", "root at zero", phase="backward", samples=(1,))
def square_root() -> Step:
    """The root of the squared error of a sample that is predicted exactly."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 1), torch.randn(5, 3)
    y = torch.randn(5)
    y[1] = model(x).detach()[1, 0]

    def step() -> Tensor:
        error = (model(x)[:, 0] - y) ** 2
        return error.sqrt().mean()  # born here

    return Step(step, {"": model}, [SGD(model.parameters(), 0.1)], 5)


@born("sqrt", "root at zero", phase="backward", samples=(0, 1, 2, 3), module="Distances")
def distances_to_itself() -> Step:
    """All distances within a batch, by hand: those to itself are 0."""
    torch.manual_seed(0)

    class Distances(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Linear(3, 5)

        def forward(self, x: Tensor) -> Tensor:
            h = self.embed(x)
            squares = (h[:, None] - h[None, :]).pow(2).sum(-1)
            return squares.sqrt()  # born here

    model, x = Distances(), torch.randn(4, 3)
    return Step(lambda: model(x).mean(), {"": model}, samples=4)


@born("pow", "root at zero", phase="backward", samples=(3,))
def power_of_a_half() -> Step:
    """`** 0.5` at 0."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 2, bias=False), torch.randn(6, 3)
    x[3] = 0

    def step() -> Tensor:
        energy = model(x).square().sum(1)
        return (energy**0.5).mean()  # born here

    return Step(step, {"": model}, samples=6)


@born("sqrt", "root at zero", phase="backward", samples=(2,), module="block.1")
def square_then_root() -> Step:
    """The root of a square that is 0, deep in a model."""
    torch.manual_seed(0)

    class Square(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x**2

    class Root(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.sqrt(x)  # born here

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block = nn.Sequential(Square(), Root())
            self.head = nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.block(x * self.head.weight[0]))

    model, x = Net(), torch.rand(5, 4)
    x[2] = 0
    return Step(lambda: model(x).pow(2).mean(), {"": model}, samples=5)


@born("sqrt", "root at zero", phase="backward", samples=(4,), dtype="bfloat16")
def root_in_bfloat16() -> Step:
    """A model that is in bfloat16 as a whole."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 2, bias=False).bfloat16(), torch.randn(6, 3).bfloat16()
    x[4] = 0

    def step() -> Tensor:
        squares = model(x).pow(2).sum(1)
        return squares.sqrt().mean()  # born here

    return Step(step, {"": model}, samples=6)


@born("rsqrt", "root at zero", samples=(1,))
def rms_norm_by_hand() -> Step:
    """An RMS norm without eps, on a row of zeros."""
    torch.manual_seed(0)
    model, x = nn.Linear(4, 4, bias=False), torch.randn(3, 4)
    x[1] = 0

    def step() -> Tensor:
        h = model(x)
        h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True))  # born here
        return h.mean()

    return Step(step, {"": model}, samples=3)


@born("sqrt", "root at zero", phase="backward", samples=(2,))
def penalty_on_gradients() -> Step:
    """A gradient penalty: the norm, by hand, of a gradient that is 0."""
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1)), torch.randn(5, 3)
    x[2] = 0
    model[0].bias.data.fill_(-0.1)

    def step() -> Tensor:
        seen = x.clone().requires_grad_()
        score = model(seen)
        (slope,) = torch.autograd.grad(score.sum(), seen, create_graph=True)
        length = slope.pow(2).sum(1).sqrt()  # born here
        return score.mean() + (length - 1).pow(2).mean()

    return Step(step, {"": model}, samples=5)
