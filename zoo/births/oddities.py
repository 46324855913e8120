"""More healthy steps that look odd: losses with their own guards, searches, graphs, teachers."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributions import Categorical
from torch.optim import SGD, Adam

from zoo.births import Step, healthy


@healthy
def losses_with_their_own_guards() -> Step:
    """Losses of torch at 0: each has its own eps or its own gradient."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 4, bias=False), torch.zeros(5, 3)

    def step() -> Tensor:
        h = model(x)
        return (
            F.gaussian_nll_loss(h, h.detach() + 1, torch.zeros(5, 4))
            + F.cosine_similarity(h, h).mean()
            + F.pairwise_distance(h, h).mean()
            + F.triplet_margin_loss(h, h, h)
            + torch.atan2(h[:, 0], h[:, 1]).mean()
            + F.kl_div(F.log_softmax(h, 1), torch.eye(5, 4), reduction="batchmean")
            + F.binary_cross_entropy(h.sigmoid() * 0, torch.ones(5, 4))
        )

    return Step(step, {"": model}, [Adam(model.parameters())], 5)


@healthy
def masked_policy() -> Step:
    """Illegal moves have logits of -inf; torch's entropy knows how to treat them."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 4), torch.randn(5, 3)
    legal = torch.ones(5, 4, dtype=torch.bool)
    legal[:, 2] = False

    def step() -> Tensor:
        policy = Categorical(logits=torch.where(legal, model(x), torch.tensor(-math.inf)))
        return -(policy.log_prob(policy.sample()) + policy.entropy()).mean()

    return Step(step, {"": model}, [Adam(model.parameters())], 5)


@healthy
def best_path() -> Step:
    """Viterbi's search begins with -inf in all states but one."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 4), torch.randn(6, 7, 3)

    def step() -> Tensor:
        scores = model(x)
        best = torch.full((6, 4), -math.inf)
        best[:, 0] = 0
        for t in range(7):
            best = (best[:, :, None] + model.bias[None, None]).max(1).values + scores[:, t]
        return -best.max(1).values.mean()

    return Step(step, {"": model}, [SGD(model.parameters(), 0.1)], 6)


@healthy
def sums_of_paths() -> Step:
    """A forward algorithm that begins with -inf: each sum has at least one finite term."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 4), torch.randn(6, 5, 3)

    def step() -> Tensor:
        scores = model(x)
        total = torch.full((6, 4), -math.inf)
        total = torch.cat([torch.zeros(6, 1), total[:, 1:]], 1)
        for t in range(5):
            total = torch.logsumexp(total[:, :, None] + model.weight.sum() * 0, 1) + scores[:, t]
            total = torch.logaddexp(total, torch.full_like(total, -math.inf))
        return -total.logsumexp(1).mean()

    return Step(step, {"": model}, [SGD(model.parameters(), 0.1)], 6)


@healthy
def nodes_without_neighbours() -> Step:
    """Means over neighbours; the count is at least 1."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 4), torch.randn(6, 3)
    source, target = torch.tensor([0, 1, 2, 3]), torch.tensor([1, 2, 1, 0])

    def step() -> Tensor:
        h = model(x)
        total = torch.zeros(6, 4).index_add_(0, target, h[source])
        count = torch.zeros(6).index_add_(0, target, torch.ones(4)).clamp_min(1)
        return (total / count[:, None]).pow(2).mean()

    return Step(step, {"": model}, [Adam(model.parameters())], 6)


@healthy
def noise_schedule() -> Step:
    """At the first step of a diffusion 1 - alpha is 0; its root has no gradient."""
    torch.manual_seed(0)
    model, x, noise = nn.Linear(4, 4), torch.randn(5, 4), torch.randn(5, 4)

    def step() -> Tensor:
        alpha = torch.linspace(1, 0, 5)[:, None]
        weight = 1 / (1 - alpha).sqrt()
        weight = torch.where(alpha == 1, torch.ones_like(weight), weight)
        noisy = alpha.sqrt() * x + (1 - alpha).sqrt() * noise
        return (weight * (model(noisy) - noise) ** 2).mean()

    return Step(step, {"": model}, [Adam(model.parameters())], 5)


@healthy
def size_of_complex_numbers() -> Step:
    """The absolute value of a spectrum that is 0 at places."""
    torch.manual_seed(0)
    model, x = nn.Linear(8, 8, bias=False), torch.zeros(3, 8)

    def step() -> Tensor:
        spectrum = torch.fft.rfft(model(x))
        return spectrum.abs().mean() + torch.view_as_real(spectrum).pow(2).sum()

    return Step(step, {"": model}, [SGD(model.parameters(), 0.1)], 3)


@healthy
def teacher_and_student() -> Step:
    """A teacher without gradients, its statistics centred; the student is sharpened."""
    torch.manual_seed(0)
    student, teacher = nn.Linear(3, 5), nn.Linear(3, 5)
    x = torch.randn(4, 3)

    def step() -> Tensor:
        with torch.no_grad():
            target = (teacher(x) / 0.04).softmax(1)
            for a, b in zip(teacher.parameters(), student.parameters(), strict=True):
                a.mul_(0.99).add_(b, alpha=0.01)
        return -(target * F.log_softmax(student(x) / 0.1, 1)).sum(1).mean()

    models = {"student": student, "teacher": teacher}
    return Step(step, models, [Adam(student.parameters())], 4)


@healthy
def normalised_weights() -> Step:
    """Weight norm and spectral norm, trained and frozen batch norm."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.utils.parametrizations.weight_norm(nn.Linear(3, 6)),
        nn.BatchNorm1d(6),
        nn.utils.parametrizations.spectral_norm(nn.Linear(6, 6)),
        nn.BatchNorm1d(6).eval(),
    )
    x = torch.randn(5, 3)
    x[:, 1] = 2.0
    return Step(lambda: model(x).pow(2).mean(), {"": model}, [Adam(model.parameters())], 5)


@healthy
def nearly_too_large() -> Step:
    """Activations of 60000 in float16 fit; so does a loss of 1e38 in float32."""
    torch.manual_seed(0)
    model, x = nn.Linear(2, 2).half(), torch.full((3, 2), 1.0).half()
    with torch.no_grad():
        model.weight.fill_(30000.0)
        model.bias.fill_(0.0)

    def step() -> Tensor:
        return (model(x) / 60000).float().mean() * 1e-3

    return Step(step, {"": model}, [SGD(model.parameters(), 1e-6)], 3)
