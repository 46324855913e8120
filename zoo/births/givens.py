"""What was wrong before: inputs, targets, weights; and what is written into tensors."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import SGD, Adam

from zoo.births import Step, born


@born("addmm", "bad input", samples=(2,), module="0")
def nan_in_the_inputs() -> Step:
    """A feature of one sample is NaN."""
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)), torch.randn(7, 4)
    x[2, 1] = math.nan

    def step() -> Tensor:
        return model(x).pow(2).mean()  # born here

    return Step(step, {"": model}, [SGD(model.parameters(), 0.1)], 7)


@born("conv", "bad input", samples=(1,), module="0")
def infinity_in_an_image() -> Step:
    """A pixel is infinite."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(18, 2))
    images, y = torch.rand(4, 1, 5, 5), torch.tensor([0, 1, 1, 0])
    images[1, 0, 2, 2] = math.inf

    def step() -> Tensor:
        logits = model(images)  # born here
        return F.cross_entropy(logits, y)

    return Step(step, {"": model}, samples=4)


@born("mse_loss", "bad input", samples=(0, 5))
def nan_in_the_targets() -> Step:
    """Missing targets were left as NaN."""
    torch.manual_seed(0)
    model, x, y = nn.Linear(3, 1), torch.randn(6, 3), torch.randn(6, 1)
    y[0] = y[5] = math.nan

    def step() -> Tensor:
        return F.mse_loss(model(x), y)  # born here

    return Step(step, {"": model}, samples=6)


@born("addmm", "bad input", samples=(3,))
def logarithmic_features() -> Step:
    """Features are logarithms of counts, made before the step: one count was 0."""
    torch.manual_seed(0)
    model, counts = nn.Linear(3, 2), torch.randint(1, 9, (5, 3)).float()
    counts[3, 0] = 0
    x = counts.log()

    def step() -> Tensor:
        h = F.linear(x, model.weight, model.bias)  # born here
        return F.softplus(h).sub(1).pow(2).mean()

    return Step(step, {"": model}, samples=5)


@born("addmm", "bad input", phase="backward", samples=(4,))
def masked_input() -> Step:
    """NaN inputs are masked out of the loss, but the weights' gradient multiplies them by 0."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 2), torch.randn(6, 3)
    x[4, 0] = math.nan
    known = torch.tensor([True, True, True, True, False, True])

    def step() -> Tensor:
        h = F.linear(x, model.weight, model.bias)  # born here
        losses = torch.where(known, h.pow(2).sum(1), torch.zeros(6))
        return losses.mean()

    return Step(step, {"": model}, samples=6)


@born("addmm", "spoiled weights", module="2")
def weights_that_were_nan() -> Step:
    """The update before has spoiled a weight."""
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)), torch.randn(7, 4)
    with torch.no_grad():
        model[2].weight[0, 3] = math.nan

    def step() -> Tensor:
        return model(x).pow(2).mean()  # born here

    return Step(step, {"": model}, [SGD(model.parameters(), 0.1)], 7)


@born("batch_norm", "spoiled weights", module="norm")
def running_statistics_that_were_nan() -> Step:
    """A frozen batch norm whose running variance is NaN."""
    torch.manual_seed(0)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.head = nn.BatchNorm1d(3).eval(), nn.Linear(3, 1)

        def forward(self, x: Tensor) -> Tensor:
            h = self.norm(x)  # born here
            return self.head(h)

    model, x = Net(), torch.randn(4, 3)
    assert model.norm.running_var is not None
    model.norm.running_var[1] = math.nan
    return Step(lambda: model(x).pow(2).mean(), {"": model})


@born("fill", "in-place edit", samples=(2,))
def nan_written_into_a_tensor() -> Step:
    """Missing values are marked by NaN, in place, and then averaged."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 4), torch.randn(5, 3)

    def step() -> Tensor:
        h = model(x)
        h[2] = math.nan  # born here
        return h.mean(1).pow(2).mean()

    return Step(step, {"": model}, samples=5)


@born("index_put", "in-place edit", samples=(0, 3))
def infinity_written_into_a_tensor() -> Step:
    """Outliers are set to infinity in place; the layer norm behind it makes NaN of them."""
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4)), torch.randn(5, 3)
    x[0] = x[3] = 90 * model[0].weight.detach()[0]

    def step() -> Tensor:
        h = model[0](x).clone()
        h[h > 20] = math.inf  # born here
        return model[1](h).pow(2).mean()

    return Step(step, {"": model}, samples=5)


@born("masked_fill", "in-place edit", samples=(1,))
def nan_filled_by_a_mask() -> Step:
    """`masked_fill_` with NaN."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 4), torch.randn(5, 3)
    missing = torch.tensor([False, True, False, False, False])[:, None]

    def step() -> Tensor:
        h = torch.tanh(model(x)) * 2
        h.masked_fill_(missing, math.nan)  # born here
        return h.pow(2).mean()

    return Step(step, {"": model}, samples=5)


@born("addcdiv", "zero by zero", phase="update")
def adam_without_eps() -> Step:
    """eps = 0: an element that never had a gradient is updated by 0 by 0."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 2), torch.randn(4, 3)
    x[:, 1] = 0

    def step() -> Tensor:
        return model(x).pow(2).mean()

    return Step(step, {"": model}, [Adam(model.parameters(), eps=0.0)], 4)


@born("addcmul", "overflow", phase="update")
def second_moment_overflow() -> Step:
    """A gradient of 1e25 is finite, its square is not: Adam's second moment is infinite."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 1), torch.randn(4, 3)

    def step() -> Tensor:
        return model(x).sum() * 1e25

    return Step(step, {"": model}, [Adam(model.parameters())], 4)


@born("mul", "spoiled weights", phase="update")
def momentum_that_was_nan() -> Step:
    """The momentum buffer is NaN since an earlier step, the weights are clean."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 1), torch.randn(4, 3)
    optimizer = SGD(model.parameters(), 0.1, momentum=0.9)
    model(x).mean().backward()
    optimizer.step()
    optimizer.state[model.weight]["momentum_buffer"][0, 1] = math.nan

    def step() -> Tensor:
        return model(x).pow(2).mean()

    return Step(step, {"": model}, [optimizer], 4)
