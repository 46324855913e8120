"""Logarithms of zero, and exponentials that overflow."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import SGD

from zoo.births import Step, born


@born("log", "log of zero", samples=(2, 5), module="Scorer")
def entropy_by_hand() -> Step:
    """Two samples are classified with certainty, and the entropy takes the logarithm of 0."""
    torch.manual_seed(0)

    class Scorer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(4, 3)

        def forward(self, x: Tensor) -> Tensor:
            p = self.head(x).softmax(1)
            return -(p * p.log()).sum(1)  # born here

    model, x = Scorer(), torch.randn(8, 4)
    x[2], x[5] = 5000 * x[2], 7000 * x[5]
    return Step(lambda: model(x).mean(), {"": model}, [SGD(model.parameters(), 0.1)], 8)


@born("log", "log of zero", samples=(1,))
def bce_by_hand() -> Step:
    """A sigmoid that has saturated to 1, in a binary cross-entropy written by hand."""
    torch.manual_seed(0)
    model, x = nn.Linear(4, 1), torch.randn(6, 4)
    x[1] = 500 * model.weight.detach()[0]
    y = torch.tensor([1.0, 0.0, 0.0, 1.0, 0.0, 1.0])

    def step() -> Tensor:
        p = torch.sigmoid(model(x)[:, 0])
        right = y * (p + 1e-8).log()
        wrong = (1 - y) * (1 - p).log()  # born here
        return -(right + wrong).mean()

    return Step(step, {"": model}, samples=6)


@born("log", "log of zero", samples=(0, 3))
def divergence_by_hand() -> Step:
    """A target distribution with zeros: 0 times the logarithm of 0."""
    torch.manual_seed(0)
    model, x = nn.Linear(5, 4), torch.randn(6, 5)
    target = torch.rand(6, 4).softmax(1)
    target[0] = torch.tensor([0.0, 0.0, 1.0, 0.0])
    target[3] = torch.tensor([0.5, 0.5, 0.0, 0.0])

    def step() -> Tensor:
        log_q = F.log_softmax(model(x), dim=1)
        return (target * (target.log() - log_q)).sum(1).mean()  # born here

    return Step(step, {"": model}, samples=6)


@born("log1p", "log of zero", samples=(4,))
def log1p_at_the_end() -> Step:
    """log(1 + x) at x = -1."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 3), torch.randn(5, 3)

    def step() -> Tensor:
        h = torch.tanh(model(x))
        h = torch.cat([h[:4], h[4:] * 0 - 1])
        return torch.log1p(h).mean()  # born here

    return Step(step, {"": model}, samples=5)


@born("log", "log of zero", phase="backward", samples=(0, 2))
def guarded_logarithm() -> Step:
    """`where` hides the logarithm of 0 from the loss, not from the gradient: 0 times infinity."""
    torch.manual_seed(0)
    model, x = nn.Linear(4, 4), torch.randn(7, 4)
    keep = torch.ones(7, 1)
    keep[0] = keep[2] = 0

    def step() -> Tensor:
        h = F.softplus(model(x)) * keep
        safe = torch.where(h > 0, h.log(), torch.zeros_like(h))  # born here
        return safe.mean()

    return Step(step, {"": model}, [SGD(model.parameters(), 0.1)], 7)


@born("nll_loss", "log of zero", samples=(3,))
def masked_target() -> Step:
    """The class that is the target is masked out: its log-probability is -inf."""
    torch.manual_seed(0)
    model, x = nn.Linear(4, 5), torch.randn(6, 4)
    legal = torch.ones(6, 5, dtype=torch.bool)
    y = torch.tensor([0, 1, 2, 3, 4, 0])
    legal[3, 3] = False

    def step() -> Tensor:
        logits = model(x).masked_fill(~legal, float("-inf"))
        return F.cross_entropy(logits, y)  # born here

    return Step(step, {"": model}, samples=6)


@born("exp", "exp overflow", samples=(6,))
def softmax_by_hand() -> Step:
    """A softmax that does not subtract the maximum."""
    torch.manual_seed(0)
    model, x = nn.Linear(4, 3), torch.randn(9, 4)
    x[6] = 900 * model.weight.detach()[0]

    def step() -> Tensor:
        scores = model(x)
        weights = scores.exp()  # born here
        p = weights / weights.sum(1, keepdim=True)
        return -p[:, 0].clamp_min(1e-9).log().mean()

    return Step(step, {"": model}, samples=9)


@born("exp", "exp overflow", samples=(0, 3))
def exponential_beside_a_mask() -> Step:
    """A contrastive loss by hand: the diagonal is masked with -inf, two others overflow."""
    torch.manual_seed(0)
    model, x = nn.Linear(4, 4), torch.randn(6, 4)

    def step() -> Tensor:
        z = model(x)
        scale = torch.tensor([300.0, 2.0, 2.0, 300.0, 2.0, 2.0])[:, None]
        scores = (F.normalize(z, dim=1) @ F.normalize(z, dim=1).T).abs() * scale
        scores = scores.masked_fill(torch.eye(6, dtype=torch.bool), float("-inf"))
        weights = scores.exp()  # born here
        return (weights[:, 0] / weights.sum(1)).clamp_min(1e-6).log().mean()

    return Step(step, {"": model}, samples=6)


@born("exp", "exp overflow", samples=(1,))
def logsumexp_by_hand() -> Step:
    """The logarithm of a sum of exponentials, one of which overflows."""
    torch.manual_seed(0)
    model, x = nn.Linear(4, 3), torch.randn(4, 4)
    x[1] = 900 * model.weight.detach()[2]

    def step() -> Tensor:
        logits = model(x)
        return (
            torch.log(
                torch.exp(logits).sum(1)  # born here
            )
            - logits[:, 0]
        ).mean()

    return Step(step, {"": model}, samples=4)


@born("exp", "exp overflow", samples=(2,), module="encoder")
def variance_of_a_vae() -> Step:
    """The log-variance of one sample runs away, and its exponential overflows."""
    torch.manual_seed(0)

    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.both = nn.Linear(6, 4)

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            mean, logvar = self.both(x).chunk(2, dim=1)
            noise = torch.randn_like(mean)
            variance = logvar.exp()  # born here
            return mean + noise * variance.sqrt(), mean, logvar

    class Vae(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.decoder = Encoder(), nn.Linear(2, 6)

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            z, mean, logvar = self.encoder(x)
            return self.decoder(z), mean, logvar

    model, x = Vae(), torch.randn(5, 6)
    x[2] = 1000 * model.encoder.both.weight.detach()[3]

    def step() -> Tensor:
        back, mean, logvar = model(x)
        kl = -0.5 * (1 + logvar - mean**2 - logvar.exp()).sum(1)
        return (F.mse_loss(back, x, reduction="none").sum(1) + kl).mean()

    return Step(step, {"": model}, samples=5)


@born("exp", "exp overflow", phase="backward", samples=(1,))
def guarded_exponential() -> Step:
    """`where` keeps the overflow out of the loss; its gradient is 0 times infinity."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 2), torch.randn(5, 3)
    x[1] = 500 * model.weight.detach()[0]

    def step() -> Tensor:
        h = model(x)
        small = h < 20
        grown = torch.where(small, h.exp(), h)  # born here
        return grown.clamp_max(50).mean()

    return Step(step, {"": model}, samples=5)
