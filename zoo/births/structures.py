"""Births inside of checkpoints, custom functions, hooks, compiled models; and odd layouts."""

import torch
from torch import Tensor, nn
from torch.distributions import Normal
from torch.utils.checkpoint import checkpoint

from zoo.births import Step, born


@born("sqrt", "root at zero", phase="backward", samples=(1,), module="1.0")
def inside_a_checkpoint() -> Step:
    """Activations are computed again in backward."""
    torch.manual_seed(0)

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(3, 3, bias=False)

        def forward(self, x: Tensor) -> Tensor:
            squares = self.inner(x).square().sum(1)
            return squares.sqrt()  # born here

    class Checkpointed(nn.Sequential):
        def forward(self, x: Tensor) -> Tensor:
            return checkpoint(self[0], x, use_reentrant=False)

    model, x = nn.Sequential(nn.Identity(), Checkpointed(Layer())), torch.randn(4, 3)
    x[1] = 0
    return Step(lambda: model(x).mean(), {"": model}, samples=4)


@born("sqrt", "root at zero", phase="backward", samples=(2,), module="layer")
def inside_a_reentrant_checkpoint() -> Step:
    """The older kind of checkpoint."""
    torch.manual_seed(0)

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(3, 3, bias=False)

        def forward(self, x: Tensor) -> Tensor:
            squares = self.inner(x).square().sum(1)
            return squares.sqrt()  # born here

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.layer = nn.Linear(3, 3, bias=False), Layer()

        def forward(self, x: Tensor) -> Tensor:
            return checkpoint(self.layer, self.first(x), use_reentrant=True)

    model, x = Net(), torch.randn(4, 3)
    x[2] = 0
    return Step(lambda: model(x).mean(), {"": model}, samples=4)


@born("div", "division by zero", phase="backward", samples=(0,))
def gradient_of_the_authors_own() -> Step:
    """A custom autograd function divides by 0 in its backward."""
    torch.manual_seed(0)

    class Divided(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x: Tensor, by: Tensor) -> Tensor:
            ctx.save_for_backward(by)
            return x * 2

        @staticmethod
        def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:
            (by,) = ctx.saved_tensors
            return grad / by, None  # born here

    model, x, by = nn.Linear(3, 2), torch.randn(4, 3), torch.ones(4, 1)
    by[0] = 0

    def step() -> Tensor:
        return Divided.apply(model(x), by).mean()

    return Step(step, {"": model}, samples=4)


@born("log", "log of zero", samples=(3,))
def forward_of_the_authors_own() -> Step:
    """A custom autograd function takes the logarithm of 0 in its forward."""
    torch.manual_seed(0)

    class Log(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return x.log()  # born here

        @staticmethod
        def backward(ctx, grad: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            return grad / x

    model, x = nn.Linear(3, 1, bias=False), torch.randn(5, 3)
    x[3] = 0

    def step() -> Tensor:
        return Log.apply(model(x).abs()).mean()

    return Step(step, {"": model}, samples=5)


@born("div", "zero by zero", phase="backward", samples=(3,))
def hook_on_a_gradient() -> Step:
    """A hook normalises gradients, and that of one sample is 0: it has no weight in the loss."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 2), torch.randn(4, 3)
    weights = torch.tensor([1.0, 2.0, 1.0, 0.0])[:, None]

    def step() -> Tensor:
        h = model(x)
        h.register_hook(lambda grad: grad / grad.abs().amax(1, keepdim=True))  # born here
        return (h * weights).sum()

    return Step(step, {"": model}, samples=4)


@born("sqrt", "root at zero", phase="backward", samples=(2,), module="Compiled")
def compiled_model() -> Step:
    """A compiled model is run eagerly when it is traced."""
    torch.manual_seed(0)

    class Compiled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(3, 3, bias=False)

        def forward(self, x: Tensor) -> Tensor:
            squares = self.inner(x).square().sum(1)
            return squares.sqrt()  # born here

    x = torch.randn(4, 3)
    x[2] = 0
    model = torch.compile(Compiled(), backend="eager")
    return Step(lambda: model(x).mean(), {"": model}, samples=4)


@born("log", "outside domain", samples=(1,))
def step_that_raises() -> Step:
    """torch.distributions refuses a scale that is NaN: the step ends with an error."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 2), torch.zeros(4, 3)
    x[1] = -90 * model.weight.detach()[1]

    def step() -> Tensor:
        mean, raw = model(x).clamp(-5, 5).unbind(1)
        scale = (raw + 2).log().abs() + 0.1  # born here
        return -Normal(mean, scale).log_prob(torch.zeros(4)).mean()

    return Step(step, {"": model}, samples=4)


@born("log", "log of zero", samples=(2,))
def as_many_features_as_samples() -> Step:
    """Batch, width and length are all 4: the batch dimension cannot be told by its size."""
    torch.manual_seed(0)
    model, x = nn.Linear(4, 4, bias=False), torch.randn(4, 4, 4)
    x[2, 1] = 0

    def step() -> Tensor:
        h = model(x.transpose(0, 1)).abs()
        return h.reshape(16, 4).log().mean()  # born here

    return Step(step, {"": model}, samples=4)


@born("log_softmax", "masked row", samples=(1,))
def flattened_tokens() -> Step:
    """Logits of a sequence-first model, flattened to tokens; one sample has no legal token."""
    torch.manual_seed(0)
    model, x = nn.Linear(4, 6), torch.randn(5, 3, 4)
    legal = torch.ones(5, 3, 6, dtype=torch.bool)
    legal[2, 1] = False
    y = torch.randint(0, 6, (15,))

    def step() -> Tensor:
        logits = model(x).masked_fill(~legal, float("-inf")).view(15, 6)
        return nn.functional.cross_entropy(logits, y)  # born here

    return Step(step, {"": model}, samples=3)
