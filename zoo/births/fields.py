"""Births as they happen in several fields: segmentation, detection, policies, transport."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.amp import GradScaler
from torch.distributions import Categorical
from torch.optim import SGD, RMSprop
from torch.utils.checkpoint import checkpoint

from zoo.births import Step, born


@born("div", "zero by zero", samples=(1,))
def dice_without_smoothing() -> Step:
    """A mask that is empty, and a prediction that is empty: the dice score is 0 by 0."""
    torch.manual_seed(0)
    model, images = nn.Conv2d(1, 1, 3, padding=1), torch.rand(3, 1, 4, 4)
    masks = (torch.rand(3, 1, 4, 4) > 0.5).float()
    masks[1], images[1] = 0, 0

    def step() -> Tensor:
        p = torch.relu(model(images) - model.bias[None, :, None, None])
        shared = (p * masks).sum((1, 2, 3))
        dice = 2 * shared / (p.sum((1, 2, 3)) + masks.sum((1, 2, 3)))  # born here
        return 1 - dice.mean()

    return Step(step, {"": model}, samples=3)


@born("div", "zero by zero", samples=(2,))
def overlap_of_empty_boxes() -> Step:
    """A box without area is compared with one without area."""
    torch.manual_seed(0)
    model, x = nn.Linear(4, 4), torch.rand(5, 4)
    target = torch.rand(5, 4)
    weight = torch.tensor([1.0, 1.0, 0.0, 1.0, 1.0])[:, None]

    def step() -> Tensor:
        box, true = model(x).abs() * weight, target * weight
        area, other = box[:, 2] * box[:, 3], true[:, 2] * true[:, 3]
        shared = torch.minimum(box[:, 2], true[:, 2]) * torch.minimum(box[:, 3], true[:, 3])
        iou = shared / (area + other - shared)  # born here
        return (1 - iou).mean()

    return Step(step, {"": model}, samples=5)


@born("exp", "exp overflow", samples=(3,))
def ratio_of_policies() -> Step:
    """The ratio of two policies is the exponential of a difference that has run away."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 4), torch.randn(5, 3)
    actions, advantages = torch.tensor([0, 1, 2, 3, 0]), torch.randn(5)
    old = torch.full((5,), -1.4)
    old[3] = -200.0

    def step() -> Tensor:
        new = Categorical(logits=model(x)).log_prob(actions)
        ratio = (new - old).exp()  # born here
        return -(ratio * advantages).mean()

    return Step(step, {"": model}, samples=5)


@born("reciprocal", "division by zero")
def transport_by_hand() -> Step:
    """Sinkhorn's kernel exp(-cost / eps) is 0 everywhere, and is divided by."""
    torch.manual_seed(0)
    model, x = nn.Linear(2, 2), torch.randn(4, 2) * 100

    def step() -> Tensor:
        cost = torch.cdist(model(x), torch.randn(6, 2) * 100 + 1000)
        kernel = torch.exp(-cost / 1e-3)
        u, v = torch.ones(4) / 4, torch.ones(6) / 6
        for _ in range(3):
            u = 0.25 / (kernel @ v)  # born here
            v = 0.16 / (kernel.T @ u)
        return (u[:, None] * kernel * v * cost).sum()

    return Step(step, {"": model})


@born("log", "log of zero", samples=(0,))
def likelihood_without_variance() -> Step:
    """A Gaussian likelihood by hand, with a variance that a ReLU has made 0."""
    torch.manual_seed(0)
    model, x, y = nn.Linear(2, 2), torch.randn(4, 2), torch.randn(4)
    with torch.no_grad():
        model.bias[1] = 3.0
    x[0] = -60 * model.weight.detach()[1]

    def step() -> Tensor:
        mean, raw = model(x).unbind(1)
        variance = raw.relu()
        nll = 0.5 * (variance.log() + (y - mean) ** 2 / variance)  # born here
        return nll.mean()

    return Step(step, {"": model}, samples=4)


@born("pow", "root at zero", phase="backward", samples=(2,))
def focal_loss() -> Step:
    """(1 - p) to the power of 0.5 where p has become 1."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 2), torch.randn(4, 3)
    x[2] = 300 * (model.weight.detach()[0] - model.weight.detach()[1])

    def step() -> Tensor:
        p = model(x).softmax(1)[:, 0]
        focus = (1 - p) ** 0.5  # born here
        return -(focus * p.clamp_min(1e-6).log()).mean()

    return Step(step, {"": model}, samples=4)


@born("log", "log of zero", samples=(1,))
def gumbel_noise() -> Step:
    """Uniform noise may be 0, and Gumbel noise takes its logarithm twice."""
    torch.manual_seed(0)
    model, x, u = nn.Linear(3, 4), torch.randn(3, 3), torch.rand(3, 4)
    u[1, 2] = 0

    def step() -> Tensor:
        inner = u.log()  # born here
        gumbel = -(-inner).log()
        return ((model(x) + gumbel).softmax(1) * (model(x) + gumbel)).sum(1).mean()

    return Step(step, {"": model}, samples=3)


@born("div", "division by zero", samples=(0, 1, 2))
def temperature_of_zero() -> Step:
    """Annealing has brought the temperature to 0."""
    torch.manual_seed(0)
    model, x, temperature = nn.Linear(3, 4), torch.randn(3, 3), 0.0

    def step() -> Tensor:
        p = (model(x) / temperature).softmax(1)  # born here
        return p[:, 0].mean()

    return Step(step, {"": model}, samples=3)


@born("exp", "exp overflow", module="scale")
def learned_scale() -> Step:
    """The scale of the logits is the exponential of a parameter that has grown to 90."""
    torch.manual_seed(0)

    class Scale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.log = nn.Parameter(torch.tensor(90.0))

        def forward(self, x: Tensor) -> Tensor:
            return x * self.log.exp()  # born here

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.scale = nn.Linear(3, 2), Scale()

        def forward(self, x: Tensor) -> Tensor:
            return self.scale(self.body(x))

    model, x, y = Net(), torch.randn(4, 3), torch.tensor([0, 1, 0, 1])
    return Step(lambda: F.cross_entropy(model(x), y), {"": model}, samples=4)


@born("embedding", "spoiled weights", module="words")
def spoiled_word() -> Step:
    """One row of an embedding is NaN; it hurts the samples that have the word."""
    torch.manual_seed(0)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.head = nn.Embedding(9, 4), nn.Linear(4, 2)

        def forward(self, tokens: Tensor) -> Tensor:
            h = self.words(tokens)  # born here
            return self.head(h.mean(1))

    model, tokens = Net(), torch.randint(0, 8, (4, 5))
    tokens[2, 3] = 8
    with torch.no_grad():
        model.words.weight[8] = math.nan
    return Step(lambda: model(tokens).pow(2).mean(), {"": model}, samples=4)


@born("div", "zero by zero", samples=(2,))
def black_image() -> Step:
    """Images are divided by their maximum, and one is black."""
    torch.manual_seed(0)
    model, images = nn.Conv2d(1, 2, 3), torch.rand(4, 1, 5, 5)
    images[2] = 0

    def step() -> Tensor:
        bright = images / images.amax((1, 2, 3), keepdim=True)  # born here
        return model(bright).pow(2).mean()

    return Step(step, {"": model}, samples=4)


@born("div", "zero by zero", samples=(0, 1, 2, 3))
def constant_feature() -> Step:
    """A batch is standardised feature by feature, and a feature is constant."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 1), torch.randn(4, 3)
    x[:, 1] = 7.0

    def step() -> Tensor:
        centred = x - x.mean(0)
        return model(centred / x.std(0)).pow(2).mean()  # born here

    return Step(step, {"": model}, samples=4)


@born("ctc_loss", "unknown", samples=(1,))
def alignment_that_is_impossible() -> Step:
    """A CTC loss without zero_infinity, and a target that is longer than the input."""
    torch.manual_seed(0)
    model, x = nn.Linear(4, 5), torch.randn(6, 3, 4)
    targets = torch.randint(1, 5, (3, 5))

    def step() -> Tensor:
        log_p = model(x).log_softmax(-1)
        lengths, sizes = torch.tensor([6, 2, 6]), torch.tensor([2, 5, 2])
        return F.ctc_loss(log_p, targets, lengths, sizes)  # born here

    return Step(step, {"": model}, samples=3)


@born("log", "log of zero", samples=(3,), dtype="float32")
def loss_for_a_scaler() -> Step:
    """A scaler cannot help where the loss itself is infinite."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 1), torch.randn(4, 3)
    x[3] = -900 * model.weight.detach()[0]
    scaler = GradScaler("cpu", init_scale=1024.0)

    def step() -> Tensor:
        with torch.autocast("cpu", dtype=torch.float16):
            logits = model(x)
        p = logits.float().sigmoid()
        return scaler.scale(-p.log().mean())  # born here

    return Step(step, {"": model}, [SGD(model.parameters(), 0.1)], 4)


@born("sqrt", "root at zero", phase="backward", samples=(0,))
def root_under_a_scaler() -> Step:
    """Nor where the gradient is infinite at any scale."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 2, bias=False), torch.randn(4, 3)
    x[0] = 0
    scaler = GradScaler("cpu", init_scale=1024.0)

    def step() -> Tensor:
        energy = model(x).pow(2).sum(1)
        return scaler.scale(energy.sqrt().mean())  # born here

    return Step(step, {"": model}, [SGD(model.parameters(), 0.1)], 4)


@born("exp", "exp overflow", phase="backward", samples=(2,), module="Gate")
def guarded_in_a_checkpoint() -> Step:
    """An overflow that `where` hides, inside a checkpoint."""
    torch.manual_seed(0)

    class Gate(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(3, 2)

        def forward(self, x: Tensor) -> Tensor:
            h = self.inner(x)
            return torch.where(h > 30, h, torch.log1p(h.exp()))  # born here

    model, x = Gate(), torch.randn(4, 3)
    x[2] = 600 * model.inner.weight.detach()[1]
    return Step(lambda: checkpoint(model, x, use_reentrant=False).mean(), {"": model}, samples=4)


@born("addcdiv", "zero by zero", phase="update")
def rmsprop_without_eps() -> Step:
    """RMSprop with eps = 0, and an input that is always 0."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 2), torch.randn(4, 3)
    x[:, 2] = 0
    optimizer = RMSprop(model.parameters(), eps=0.0)
    return Step(lambda: model(x).pow(2).mean(), {"": model}, [optimizer], 4)


@born("addmm", "overflow", samples=(0, 1, 2, 3, 4), module="2")
def weights_that_exploded() -> Step:
    """The weights are finite, but of the order of 1e30, after a learning rate that was too high."""
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(3, 4), nn.Identity(), nn.Linear(4, 2)), torch.randn(5, 3)
    with torch.no_grad():
        for each in model.parameters():
            each.mul_(1e30)

    def step() -> Tensor:
        out = model(x)  # born here
        return out.pow(2).mean()

    return Step(step, {"": model}, samples=5)


@born("log", "log of zero", samples=(4,))
def inverse_of_softplus() -> Step:
    """log(exp(x) - 1) at x = 0."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 1, bias=False), torch.rand(5, 3) + 1
    x[4] = 0

    def step() -> Tensor:
        rate = model(x).abs()
        return torch.log(torch.expm1(rate)).mean()  # born here

    return Step(step, {"": model}, samples=5)


@born("index_put", "in-place edit", samples=(1,))
def bad_rows_marked() -> Step:
    """Rows are marked by NaN through an index, and a later mean does not know of it."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 2), torch.randn(4, 3)
    rows = torch.tensor([1])

    def step() -> Tensor:
        h = model(x).sigmoid() * 1.0
        h[rows] = math.nan  # born here
        return h.mean()

    return Step(step, {"": model}, samples=4)


@born("mul", "half range", samples=(2,), module="gate", dtype="float16")
def gated_unit() -> Step:
    """The product of two activations of 300 is too large for float16."""
    torch.manual_seed(0)

    class Gated(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up, self.across = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            return F.silu(self.up(x)) * self.across(x)  # born here

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate, self.down = Gated(), nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Tensor:
            return self.down(self.gate(x))

    model, x = Net(), torch.randn(3, 2, 4)
    x[2] = 1500 * (model.gate.up.weight.detach()[0] + model.gate.across.weight.detach()[0])

    def step() -> Tensor:
        with torch.autocast("cpu", dtype=torch.float16):
            return model(x).float().pow(2).mean()

    return Step(step, {"": model}, samples=3)
