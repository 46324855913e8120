"""Healthy steps in which something is infinite, or nearly so, and nothing is wrong."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.amp import GradScaler
from torch.optim import SGD, Adam, AdamW
from torch.utils.checkpoint import checkpoint

from zoo.births import Step, healthy


@healthy
def causal_mask() -> Step:
    """Attention with a causal mask of -inf, by hand."""
    torch.manual_seed(0)
    qkv, x = nn.Linear(8, 24), torch.randn(3, 5, 8)

    def step() -> Tensor:
        q, k, v = qkv(x).chunk(3, -1)
        scores = q @ k.transpose(1, 2)
        future = torch.triu(torch.ones(5, 5, dtype=torch.bool), 1)
        return (scores.masked_fill(future, -math.inf).softmax(-1) @ v).pow(2).mean()

    return Step(step, {"": qkv}, [AdamW(qkv.parameters())], 3)


@healthy
def causal_mask_in_a_buffer() -> Step:
    """The mask is a buffer of the model, full of -inf above the diagonal."""
    torch.manual_seed(0)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
            mask = nn.Transformer.generate_square_subsequent_mask(6)
            self.register_buffer("mask", mask)
            self.mask = mask

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(x, src_mask=self.mask, is_causal=True)

    model, x = Net(), torch.randn(3, 6, 8)
    return Step(lambda: model(x).pow(2).mean(), {"": model}, [Adam(model.parameters())], 3)


@healthy
def padding_in_a_fused_kernel() -> Step:
    """scaled_dot_product_attention with a mask by which each row keeps a key."""
    torch.manual_seed(0)
    qkv, x = nn.Linear(8, 24), torch.randn(3, 5, 8)
    keep = torch.ones(3, 1, 1, 5, dtype=torch.bool)
    keep[1, ..., 2:] = False

    def step() -> Tensor:
        q, k, v = (each.view(3, 5, 2, 4).transpose(1, 2) for each in qkv(x).chunk(3, -1))
        return F.scaled_dot_product_attention(q, k, v, attn_mask=keep).pow(2).mean()

    return Step(step, {"": qkv}, [Adam(qkv.parameters())], 3)


@healthy
def lowest_number_as_a_mask() -> Step:
    """finfo.min instead of -inf: a row that is masked as a whole is uniform."""
    torch.manual_seed(0)
    model, x = nn.Linear(4, 5), torch.randn(3, 4)

    def step() -> Tensor:
        scores = model(x)
        low = torch.finfo(scores.dtype).min
        return scores.masked_fill(torch.ones(3, 5, dtype=torch.bool), low).softmax(1).sum()

    return Step(step, {"": model}, [SGD(model.parameters(), 0.1)], 3)


@healthy
def twofold_where() -> Step:
    """The argument is made safe before the logarithm: loss and gradient are finite."""
    torch.manual_seed(0)
    model, x = nn.Linear(4, 3), torch.randn(6, 4)

    def step() -> Tensor:
        h = model(x).relu()
        safe = torch.where(h > 0, h, torch.ones_like(h))
        return torch.where(h > 0, safe.log(), torch.zeros_like(h)).mean()

    return Step(step, {"": model}, [SGD(model.parameters(), 0.1)], 6)


@healthy
def root_of_a_relu() -> Step:
    """The gradient of the root is infinite where the ReLU is 0, but that of the ReLU is 0 there."""
    torch.manual_seed(0)
    model, x = nn.Linear(4, 3), torch.randn(6, 4)
    return Step(
        lambda: model(x).relu().sqrt().mean(), {"": model}, [SGD(model.parameters(), 0.1)], 6
    )


@healthy
def logarithm_for_a_log_line() -> Step:
    """A logarithm of 0 that is only shown, and never a part of the loss."""
    torch.manual_seed(0)
    model, x = nn.Linear(4, 3), torch.randn(6, 4)
    shown = []

    def step() -> Tensor:
        h = model(x).relu()
        shown.append(h.detach().log().mean().item())
        return h.mean()

    return Step(step, {"": model}, [SGD(model.parameters(), 0.1)], 6)


@healthy
def impossible_alignment() -> Step:
    """A CTC loss with zero_infinity: the loss of a target that is too long is 0 by design."""
    torch.manual_seed(0)
    model, x = nn.Linear(4, 5), torch.randn(6, 3, 4)
    targets = torch.randint(1, 5, (3, 5))
    lengths = torch.tensor([6, 6, 2])

    def step() -> Tensor:
        log_p = model(x).log_softmax(-1)
        sizes = torch.tensor([3, 2, 5])
        return F.ctc_loss(log_p, targets, lengths, sizes, zero_infinity=True)

    return Step(step, {"": model}, [SGD(model.parameters(), 0.1)], 3)


@healthy
def norms_of_zero() -> Step:
    """torch's own norm has gradient 0 at 0, and normalize has an eps."""
    torch.manual_seed(0)
    model, x = nn.Linear(4, 3, bias=False), torch.randn(5, 4)
    x[2] = 0

    def step() -> Tensor:
        h = model(x)
        return h.norm(dim=1).mean() + F.normalize(h, dim=1).sum() + torch.cdist(h, h).mean()

    return Step(step, {"": model}, [SGD(model.parameters(), 0.1)], 5)


@healthy
def gradients_for_a_scaler() -> Step:
    """The first scale of AMP is too large: gradients overflow, the scaler skips the step."""
    torch.manual_seed(0)
    model, x = nn.Linear(4, 3).half(), torch.randn(5, 4).half()
    scaler = GradScaler("cpu", init_scale=2.0**24)
    return Step(
        lambda: scaler.scale(model(x).float().pow(2).mean()),
        {"": model},
        [SGD(model.parameters(), 0.1)],
        5,
    )


@healthy
def gradients_that_a_scaler_bears() -> Step:
    """AMP as it should be: finite, and the scaled gradients are not used for an update."""
    torch.manual_seed(0)
    model, x = nn.Linear(4, 3), torch.randn(5, 4)
    scaler = GradScaler("cpu", init_scale=1024.0)

    def step() -> Tensor:
        with torch.autocast("cpu", dtype=torch.float16):
            loss = model(x).pow(2).mean()
        return scaler.scale(loss)

    return Step(step, {"": model}, [Adam(model.parameters())], 5)


@healthy
def infinite_distance_to_itself() -> Step:
    """The diagonal is filled with inf, so that nobody is its own neighbour."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 4), torch.randn(6, 3)

    def step() -> Tensor:
        h = model(x)
        far = torch.cdist(h, h).clone().fill_diagonal_(math.inf)
        return far.min(1).values.mean() + (-far).softmax(1).pow(2).sum()

    return Step(step, {"": model}, [SGD(model.parameters(), 0.1)], 6)


@healthy
def missing_values_replaced() -> Step:
    """NaN in the data is replaced before the model sees it."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 1), torch.randn(6, 3)
    x[1, 2] = x[4, 0] = math.nan

    def step() -> Tensor:
        known = ~torch.isnan(x)
        filled = torch.where(known, x, torch.zeros_like(x))
        return model(torch.nan_to_num(x) + filled).pow(2).mean()

    return Step(step, {"": model}, [Adam(model.parameters())], 6)


@healthy
def sampling_among_the_best() -> Step:
    """Logits outside the best k are set to -inf in place, as samplers do."""
    torch.manual_seed(0)
    model, x = nn.Linear(4, 9), torch.randn(5, 4)

    def step() -> Tensor:
        logits = model(x)
        kept = logits.clone()
        kept[kept < kept.topk(3, 1).values[:, -1:]] = -math.inf
        choice = torch.multinomial(kept.detach().softmax(1), 1)[:, 0]
        return F.cross_entropy(logits, choice) - kept.softmax(1).amax(1).mean()

    return Step(step, {"": model}, [Adam(model.parameters())], 5)


@healthy
def memory_that_is_filled_later() -> Step:
    """torch.empty holds whatever was in memory until it is filled."""
    torch.manual_seed(0)
    model, x = nn.Linear(4, 3), torch.randn(5, 4)

    def step() -> Tensor:
        for _ in range(20):
            torch.full((5, 3), math.nan)  # so that there is something to find
            noise = torch.empty(5, 3)
            noise.normal_()
        held = torch.empty_like(noise)
        held.copy_(noise)
        gumbel = -torch.empty(5, 3).exponential_().log()
        return (model(x) + held + gumbel.clamp(-9, 9)).pow(2).mean()

    return Step(step, {"": model}, [SGD(model.parameters(), 0.1)], 5)


@healthy
def recurrent_network() -> Step:
    """An LSTM with packed sequences."""
    torch.manual_seed(0)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.head = nn.LSTM(3, 5, batch_first=True), nn.Linear(5, 2)

        def forward(self, x: Tensor) -> Tensor:
            packed = nn.utils.rnn.pack_padded_sequence(x, [7, 4, 2], batch_first=True)
            out, _ = nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
            return self.head(out)

    model, x = Net(), torch.randn(3, 7, 3)
    return Step(lambda: model(x).pow(2).mean(), {"": model}, [Adam(model.parameters())], 3)


@healthy
def convolutional_network() -> Step:
    """Convolutions, batch norm, pooling with -inf at the edges, dropout, bfloat16 autocast."""
    torch.manual_seed(0)
    model = nn.Sequential(
        *(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU()),
        *(nn.MaxPool2d(3, 2, 1), nn.Dropout(0.2), nn.Flatten(), nn.Linear(64, 3)),
    )
    images, y = torch.rand(5, 1, 8, 8), torch.tensor([0, 1, 2, 0, 1])

    def step() -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return F.cross_entropy(model(images), y, label_smoothing=0.1)

    return Step(step, {"": model}, [AdamW(model.parameters(), amsgrad=True)], 5)


@healthy
def sparse_embedding() -> Step:
    """Sparse gradients, and an optimizer for them."""
    torch.manual_seed(0)
    model, tokens = nn.Embedding(20, 4, sparse=True), torch.randint(20, (5, 3))
    return Step(
        lambda: model(tokens).pow(2).mean(),
        {"": model},
        [torch.optim.SparseAdam(model.parameters())],
        5,
    )


@healthy
def two_players() -> Step:
    """The discriminator's step of a GAN, with a gradient penalty by torch's own norm."""
    torch.manual_seed(0)
    generator, critic = nn.Linear(3, 4), nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    real = torch.randn(6, 4)

    def step() -> Tensor:
        fake = generator(torch.randn(6, 3)).detach()
        mixed = (real + fake).requires_grad_()
        (slope,) = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
        penalty = (slope.norm(dim=1) - 1).pow(2).mean()
        return critic(fake).mean() - critic(real).mean() + 10 * penalty

    return Step(
        step, {"generator": generator, "critic": critic}, [Adam(critic.parameters(), 1e-4)], 6
    )


@healthy
def checkpointed_layers() -> Step:
    """Activations are computed again; dropout draws the same numbers."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.GELU(), nn.Linear(8, 2))
    x = torch.randn(5, 4, requires_grad=True)

    def step() -> Tensor:
        return checkpoint(model, x, use_reentrant=False).pow(2).mean()

    return Step(step, {"": model}, [Adam(model.parameters(), fused=True)], 5)


@healthy
def spread_of_a_constant() -> Step:
    """The standard deviation of equal values is 0, and torch gives it the gradient 0."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 4, bias=False), torch.zeros(6, 3)
    return Step(
        lambda: model(x).std(0).mean() + (1 / (model.weight.std() + 1)),
        {"": model},
        [SGD(model.parameters(), 0.1, momentum=0.9, nesterov=True)],
        6,
    )


@healthy
def reciprocal_of_infinity() -> Step:
    """1 / (1 + exp(1000)) is 0: nothing of it reaches the weights, which are not behind it."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 2), torch.randn(4, 3)
    far = torch.full((4, 2), 1000.0)

    def step() -> Tensor:
        h = model(x)
        return (h / (1 + far.exp()) + h).mean()

    return Step(step, {"": model}, [Adam(model.parameters())], 4)


@healthy
def start_of_a_minimum() -> Step:
    """A search for a minimum begins at inf."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 2), torch.randn(4, 3)

    def step() -> Tensor:
        best = torch.full((4,), math.inf)
        for candidate in model(x).unbind(1):
            best = torch.minimum(best, candidate)
        return best.mean()

    return Step(step, {"": model}, [SGD(model.parameters(), 0.1)], 4)


@healthy
def quasi_newton() -> Step:
    """LBFGS, which needs a closure, is not stepped."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 2), torch.randn(4, 3)
    return Step(
        lambda: model(x).pow(2).mean(), {"": model}, [torch.optim.LBFGS(model.parameters())], 4
    )
