"""Functions outside of where they are defined, and means of nothing."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from zoo.births import Step, born


@born("acos", "outside domain", samples=(2,))
def angle_of_unit_vectors() -> Step:
    """A cosine that rounding has carried above 1."""
    torch.manual_seed(0)
    model, x = nn.Linear(4, 4), torch.randn(5, 4)

    def step() -> Tensor:
        h = F.normalize(model(x), dim=1)
        cosine = (h * h.roll(1, 0)).sum(1)
        cosine = torch.where(torch.arange(5) == 2, cosine * 0 + 1.0000002, cosine)
        return torch.acos(cosine).mean()  # born here

    return Step(step, {"": model}, samples=5)


@born("acos", "outside domain", phase="backward", samples=(0,))
def angle_of_equal_vectors() -> Step:
    """acos(1) is 0, and its gradient infinite."""
    torch.manual_seed(0)
    model, x = nn.Linear(4, 4), torch.randn(5, 4)
    ones = torch.tensor([1.0, 0.0, 0.0, 0.0, 0.0])

    def step() -> Tensor:
        cosine = torch.tanh(model(x)[:, 0]) * (1 - ones) + ones
        return torch.acos(cosine).mean()  # born here

    return Step(step, {"": model}, samples=5)


@born("asin", "outside domain", samples=(1, 4))
def arcsine() -> Step:
    """asin of something that nobody has bounded."""
    torch.manual_seed(0)
    model, x = nn.Linear(2, 1), torch.zeros(6, 2)
    x[1] = x[4] = 50 * model.weight.detach()[0]

    def step() -> Tensor:
        return torch.asin(model(x)).mean()  # born here

    return Step(step, {"": model}, samples=6)


@born("atanh", "outside domain", samples=(3,))
def inverse_of_a_saturated_tanh() -> Step:
    """tanh has saturated to 1, and atanh of 1 is infinite: as squashed policies do it."""
    torch.manual_seed(0)
    model, x = nn.Linear(4, 1), torch.randn(5, 4)
    x[3] = 200 * model.weight.detach()[0]

    def step() -> Tensor:
        action = torch.tanh(model(x))
        return torch.atanh(action).pow(2).mean()  # born here

    return Step(step, {"": model}, samples=5)


@born("pow", "outside domain", samples=(2,))
def power_of_a_negative() -> Step:
    """A negative number to the power of 1.5."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 1), torch.randn(4, 3)
    x[2] = -40 * model.weight.detach()[0]

    def step() -> Tensor:
        price = model(x).clamp_max(4) + 2
        return (price**1.5).mean()  # born here

    return Step(step, {"": model}, samples=4)


@born("log", "outside domain", samples=(0,))
def logarithm_of_a_negative() -> Step:
    """A prediction that was meant to be positive, and is not."""
    torch.manual_seed(0)
    model, x, y = nn.Linear(3, 1), torch.randn(4, 3), torch.rand(4, 1)
    x[0] = -40 * model.weight.detach()[0]

    def step() -> Tensor:
        predicted = model(x).clamp_max(3.0) + 2.0
        return (predicted.log() - (y + 1).log()).pow(2).mean()  # born here

    return Step(step, {"": model}, samples=4)


@born("sqrt", "outside domain", samples=(3,))
def root_of_a_negative() -> Step:
    """A variance that noise was subtracted from, and that was 0."""
    torch.manual_seed(0)
    model, x = nn.Linear(1, 1), torch.randn(5, 16) * 3
    x[3] = 1234.567

    def step() -> Tensor:
        variance = x.pow(2).mean(1) - x.mean(1).pow(2) - 1
        scale = variance.sqrt()  # born here
        return model(scale[:, None]).mean()

    return Step(step, {"": model}, samples=5)


@born("mean", "empty mean")
def mean_of_nothing() -> Step:
    """No sample of the batch is a positive one."""
    torch.manual_seed(0)
    model, x, y = nn.Linear(3, 2), torch.randn(4, 3), torch.zeros(4)

    def step() -> Tensor:
        scores = model(x)
        positive = scores[y == 1]
        return scores.pow(2).mean() - positive.mean()  # born here

    return Step(step, {"": model}, samples=4)


@born("nll_loss", "empty mean", samples=())
def all_targets_ignored() -> Step:
    """After truncation no token of the batch is supervised: all labels are -100."""
    torch.manual_seed(0)
    model, tokens = nn.Sequential(nn.Embedding(9, 6), nn.Linear(6, 9)), torch.randint(9, (4, 5))
    labels = torch.full((4, 5), -100)

    def step() -> Tensor:
        logits = model(tokens)
        return F.cross_entropy(logits.view(-1, 9), labels.view(-1))  # born here

    return Step(step, {"": model}, samples=4)


@born("std", "empty mean")
def spread_of_one() -> Step:
    """The standard deviation of a batch of one."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 4), torch.randn(1, 3)

    def step() -> Tensor:
        h = model(x)
        return (1 - h.std(0)).relu().mean()  # born here

    return Step(step, {"": model})


@born("mse_loss", "empty mean")
def loss_of_nothing() -> Step:
    """The last batch has no masked position left."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 3), torch.randn(4, 3)
    hidden = torch.zeros(4, dtype=torch.bool)

    def step() -> Tensor:
        return F.mse_loss(model(x)[hidden], x[hidden])  # born here

    return Step(step, {"": model}, samples=4)
