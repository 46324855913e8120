"""Numbers that do not fit into half precision."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import SGD, Adam

from zoo.births import Step, born


@born("addmm", "half range", samples=(3,), module="1", dtype="float16")
def activation_in_autocast() -> Step:
    """A linear layer under autocast to float16, whose output exceeds 65504 for one sample."""
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 4)), torch.randn(6, 4)
    x[3] *= 30000
    with torch.no_grad():
        model[1].weight.mul_(20)

    def step() -> Tensor:
        with torch.autocast("cpu", dtype=torch.float16):
            out = model(x)  # born here
        return out.float().pow(2).mean()

    return Step(step, {"": model}, samples=6)


@born("sum", "half range", samples=(), dtype="float16")
def sum_in_float16() -> Step:
    """A sum over many elements, each of which fits."""
    torch.manual_seed(0)
    model, x = nn.Linear(4, 500).half(), torch.full((16, 4), 40.0).half()

    def step() -> Tensor:
        losses = model(x).abs() + 20
        return losses.sum()  # born here

    return Step(step, {"": model}, samples=16)


@born("pow", "half range", samples=(2,), dtype="float16")
def squares_in_float16() -> Step:
    """A squared error in float16: 300 squared is too much."""
    torch.manual_seed(0)
    model, x, y = nn.Linear(4, 1).half(), torch.randn(5, 4).half(), torch.zeros(5, 1).half()
    y[2] = 300

    def step() -> Tensor:
        error = model(x) - y
        return error.pow(2).mean()  # born here

    return Step(step, {"": model}, samples=5)


@born("to", "half range", samples=(1,), dtype="float16")
def cast_of_the_input() -> Step:
    """An input of 1e6 is cast to float16."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 2).half(), torch.randn(4, 3)
    x[1, 2] = 1e6

    def step() -> Tensor:
        return model(x.half()).float().mean()  # born here

    return Step(step, {"": model}, samples=4)


@born("bmm", "half range", samples=(0,), module="Scores", dtype="float16")
def attention_scores() -> Step:
    """The scores of attention overflow before they are scaled."""
    torch.manual_seed(0)

    class Scores(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.q, self.k = nn.Linear(8, 8), nn.Linear(8, 8)

        def forward(self, x: Tensor) -> Tensor:
            scores = self.q(x) @ self.k(x).transpose(1, 2)  # born here
            return (scores / 8**0.5).softmax(-1)

    model, x = Scores(), torch.randn(3, 5, 8)
    x[0] *= 400
    with torch.no_grad():
        model.q.weight.copy_(model.k.weight)

    def step() -> Tensor:
        with torch.autocast("cpu", dtype=torch.float16):
            return model(x).float()[:, :, 0].mean()

    return Step(step, {"": model}, samples=3)


@born("log", "half range", samples=(2,), dtype="float16")
def epsilon_in_float16() -> Step:
    """1e-8 is to keep a logarithm from 0, but is 0 itself in float16."""
    torch.manual_seed(0)
    model, x = nn.Linear(4, 3).half(), torch.randn(4, 4).half()
    x[2] *= 1000

    def step() -> Tensor:
        p = F.softmax(model(x), dim=1)
        return -(p * (p + 1e-8).log()).sum(1).mean()  # born here

    return Step(step, {"": model}, samples=4)


@born("exp", "half range", samples=(4,), dtype="float16")
def exponential_in_float16() -> Step:
    """exp(12) is more than 65504."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 1).half(), torch.zeros(5, 3).half()
    x[4] = 12 * model.weight.detach()[0] / model.weight.detach()[0].square().sum()

    def step() -> Tensor:
        rate = model(x).exp()  # born here
        return rate.mean()

    with torch.no_grad():
        model.bias.fill_(0.5)
    return Step(step, {"": model}, samples=5)


@born("mul", "half range", phase="backward", samples=(1,), dtype="float16")
def gradient_in_float16() -> Step:
    """The loss fits, its gradient does not: a large factor behind a small activation."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 2).half(), torch.randn(4, 3).half()
    gain = torch.ones(4, 1).half()
    gain[1] = 60000

    def step() -> Tensor:
        small = model(x) * 1e-3
        large = small * gain  # born here
        return (large * 40).float().mul(1000).sum()

    return Step(step, {"": model}, samples=4)


@born("pow", "overflow", samples=(0,), dtype="bfloat16")
def squares_in_bfloat16() -> Step:
    """bfloat16 has the range of float32, and this exceeds both."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 1).bfloat16(), torch.randn(4, 3).bfloat16()
    x[0] *= 1e25

    def step() -> Tensor:
        return (model(x) ** 2).mean()  # born here

    return Step(step, {"": model}, samples=4)


@born("addcdiv", "half range", phase="update", dtype="float16")
def adam_in_float16() -> Step:
    """Adam's eps of 1e-8 is 0 in float16: where a gradient is 0, the update is 0 by 0."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 2).half(), torch.randn(4, 3).half()
    x[:, 1] = 0

    def step() -> Tensor:
        return model(x).float().pow(2).mean()

    return Step(step, {"": model}, [Adam(model.parameters(), eps=1e-8)], 4)


@born("mse_loss", "half range", samples=(5,), dtype="float16")
def summed_squares() -> Step:
    """Each square is below 65504, their sum is not; one target is by far the largest."""
    torch.manual_seed(0)
    model, x, y = nn.Linear(3, 4).half(), torch.randn(8, 3).half(), torch.randn(8, 4).half()
    y[5] = 200

    def step() -> Tensor:
        return F.mse_loss(model(x), y, reduction="sum")  # born here

    return Step(step, {"": model}, [SGD(model.parameters(), 0.1)], 8)
