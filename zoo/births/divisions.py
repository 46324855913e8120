"""Divisions by zero, by the norm of nothing, and by a count of nothing."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import SGD

from zoo.births import Step, born


@born("div", "zero by zero", samples=(3,))
def masked_mean() -> Step:
    """A sample of padding only: the mean over its tokens is 0 by 0."""
    torch.manual_seed(0)
    model, tokens = nn.Embedding(10, 4), torch.randint(1, 10, (5, 6))
    tokens[3] = 0
    head = nn.Linear(4, 1)

    def step() -> Tensor:
        mask = (tokens > 0).float()[:, :, None]
        pooled = (model(tokens) * mask).sum(1) / mask.sum(1)  # born here
        return head(pooled).pow(2).mean()

    return Step(step, {"embedding": model, "head": head}, samples=5)


@born("div", "zero norm", samples=(4,))
def unit_vectors() -> Step:
    """Vectors are divided by their norms, and one of them is 0."""
    torch.manual_seed(0)
    model, x = nn.Linear(4, 6, bias=False), torch.randn(6, 4)
    x[4] = 0

    def step() -> Tensor:
        h = model(x)
        h = h / h.norm(dim=1, keepdim=True)  # born here
        return (h @ h.T).mean()

    return Step(step, {"": model}, [SGD(model.parameters(), 0.1)], 6)


@born("div", "zero norm", samples=(0,))
def cosine_by_hand() -> Step:
    """A cosine similarity by hand, with the norm of a vector of zeros."""
    torch.manual_seed(0)
    model, a, b = nn.Linear(4, 4), torch.randn(5, 4), torch.randn(5, 4)
    b[0] = 0

    def step() -> Tensor:
        u = model(a)
        length = u.pow(2).sum(-1).sqrt() * b.pow(2).sum(-1).sqrt()
        cosine = (u * b).sum(-1) / b.pow(2).sum(-1).sqrt()  # born here
        return (1 - cosine * length).mean()

    return Step(step, {"": model}, samples=5)


@born("div", "zero by zero", samples=(2,))
def standardised_constant() -> Step:
    """A window that is constant is divided by its standard deviation."""
    torch.manual_seed(0)
    model, x = nn.Linear(8, 1), torch.randn(4, 8)
    x[2] = 3.0

    def step() -> Tensor:
        mean, spread = x.mean(1, keepdim=True), x.std(1, keepdim=True)
        scaled = (x - mean) / spread  # born here
        return model(scaled).pow(2).mean()

    return Step(step, {"": model}, samples=4)


@born("div", "division by zero", samples=(1, 3))
def percentage_error() -> Step:
    """Relative errors where the target is 0."""
    torch.manual_seed(0)
    model, x, y = nn.Linear(3, 1), torch.randn(5, 3), torch.randn(5, 1)
    y[1] = y[3] = 0

    def step() -> Tensor:
        error = (model(x) - y).abs() / y.abs()  # born here
        return error.mean()

    return Step(step, {"": model}, samples=5)


@born("div", "zero by zero", phase="backward", samples=(2,))
def guarded_division() -> Step:
    """`where` hides 0 by 0 from the loss, not from the gradient."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 2), torch.randn(6, 3)
    count = torch.tensor([1.0, 2.0, 0.0, 3.0, 1.0, 1.0])[:, None]

    def step() -> Tensor:
        total = model(x) * count
        mean = torch.where(count > 0, total / count, total)  # born here
        return mean.pow(2).mean()

    return Step(step, {"": model}, samples=6)


@born("reciprocal", "division by zero", samples=(1,))
def inverse_frequency() -> Step:
    """Weights are one by the count, and a class has none."""
    torch.manual_seed(0)
    model, x, y = nn.Linear(3, 4), torch.randn(4, 3), torch.tensor([0, 1, 2, 3])
    counts = torch.tensor([5.0, 0.0, 3.0, 2.0])

    def step() -> Tensor:
        losses = F.cross_entropy(model(x), y, reduction="none")
        weights = counts[y].reciprocal()  # born here
        return (losses * weights).mean()

    return Step(step, {"": model}, samples=4)


@born("layer_norm", "zero by zero", samples=(1,), module="norm")
def constant_layer_norm() -> Step:
    """A layer norm without eps, and a row that is constant."""
    torch.manual_seed(0)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.head = nn.LayerNorm(3, eps=0.0), nn.Linear(3, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.norm(x))  # born here

    model, x = Net(), torch.randn(4, 3)
    x[1] = 2.0
    return Step(lambda: model(x).pow(2).mean(), {"": model}, samples=4)


@born("div", "zero by zero", samples=(4,))
def reward_normalisation() -> Step:
    """Advantages within groups: one group has the same reward everywhere, so that its std is 0."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 2), torch.randn(6, 4, 3)
    rewards = torch.randn(6, 4)
    rewards[4] = 1.0

    def step() -> Tensor:
        centred = rewards - rewards.mean(1, keepdim=True)
        spread = rewards.var(1, keepdim=True).sqrt()
        advantage = centred / spread  # born here
        log_p = F.log_softmax(model(x), -1)[..., 0]
        return -(advantage * log_p).mean()

    return Step(step, {"": model}, samples=6)
