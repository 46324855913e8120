"""Rows of attention that are masked as a whole."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import AdamW

from zoo.births import Step, born


class Attention(nn.Module):
    """Attention of one head, by hand."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def scores(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Scores that are not masked yet, and values."""
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        return q @ k.transpose(-2, -1) / math.sqrt(x.shape[-1]), v


@born("softmax", "masked row", samples=(3,), module="layers.1")
def padded_query() -> Step:
    """A sample that is all padding: every key of its rows is -inf."""
    torch.manual_seed(0)

    class Masked(Attention):
        def forward(self, x: Tensor, keep: Tensor) -> Tensor:
            scores, v = self.scores(x)
            scores = scores.masked_fill(~keep[:, None, :], float("-inf"))
            weights = scores.softmax(-1)  # born here
            return x + self.out(weights @ v)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(12, 8)
            self.layers = nn.ModuleList([Attention2(8), Masked(8), Attention2(8)])

        def forward(self, tokens: Tensor) -> Tensor:
            x, keep = self.embed(tokens), tokens > 0
            for layer in self.layers:
                x = layer(x, keep)
            return x

    class Attention2(Attention):
        def forward(self, x: Tensor, keep: Tensor) -> Tensor:
            scores, v = self.scores(x)
            scores = scores.masked_fill(~keep[:, None, :], -1e9)
            return x + self.out(scores.softmax(-1) @ v)

    model, tokens = Net(), torch.randint(1, 12, (5, 6))
    tokens[3] = 0
    return Step(lambda: model(tokens).pow(2).mean(), {"": model}, [AdamW(model.parameters())], 5)


@born("softmax", "masked row", samples=(1,), dtype="bfloat16")
def additive_mask_in_bfloat16() -> Step:
    """The mask is added, under autocast to bfloat16."""
    torch.manual_seed(0)
    model, x = Attention(8), torch.randn(4, 5, 8)
    keep = torch.ones(4, 5, dtype=torch.bool)
    keep[1] = False
    mask = torch.zeros(4, 1, 5).masked_fill(~keep[:, None], float("-inf"))

    def step() -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            scores, v = model.scores(x)
            weights = F.softmax((scores + mask).bfloat16(), dim=-1)  # born here
            return model.out(weights.bfloat16() @ v).float().pow(2).mean()

    return Step(step, {"": model}, samples=4)


@born("sub", "masked row", samples=(2,))
def stable_softmax_by_hand() -> Step:
    """The maximum of a row of -inf is -inf, and -inf less -inf is NaN."""
    torch.manual_seed(0)
    model, x = Attention(8), torch.randn(3, 4, 8)
    keep = torch.ones(3, 4, dtype=torch.bool)
    keep[2] = False

    def step() -> Tensor:
        scores, v = model.scores(x)
        scores[~keep[:, None].expand(3, 4, 4)] = float("-inf")
        shifted = scores - scores.amax(-1, keepdim=True)  # born here
        weights = shifted.exp() / shifted.exp().sum(-1, keepdim=True)
        return model.out(weights @ v).pow(2).mean()

    return Step(step, {"": model}, samples=3)


@born("softmax", "masked row", samples=(4,), module="attention")
def attention_of_torch() -> Step:
    """nn.MultiheadAttention with weights returned, and a sample that is all padding."""
    torch.manual_seed(0)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

        def forward(self, x: Tensor, padding: Tensor) -> Tensor:
            out, _ = self.attention(x, x, x, key_padding_mask=padding)  # born here
            return out

    model, x = Net(), torch.randn(5, 6, 8)
    padding = torch.zeros(5, 6, dtype=torch.bool)
    padding[4] = True
    return Step(lambda: model(x, padding).pow(2).mean(), {"": model}, samples=5)


@born("softmax", "masked row", samples=(1,), module="attention")
def attention_with_sequence_first() -> Step:
    """The same, with the batch in the second dimension."""
    torch.manual_seed(0)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(8, 2)

        def forward(self, x: Tensor, padding: Tensor) -> Tensor:
            return self.attention(x, x, x, key_padding_mask=padding)[0]  # born here

    model, x = Net(), torch.randn(6, 3, 8)
    padding = torch.zeros(3, 6, dtype=torch.bool)
    padding[1] = True
    return Step(lambda: model(x, padding).pow(2).mean(), {"": model}, samples=3)


@born("logsumexp", "masked row", phase="backward", samples=(2,))
def forward_algorithm() -> Step:
    """Impossible states have -inf; where all are, the gradient of logsumexp is NaN."""
    torch.manual_seed(0)
    model, x = nn.Linear(3, 4), torch.randn(5, 3)
    impossible = torch.zeros(5, 4)
    impossible[2] = float("-inf")

    def step() -> Tensor:
        scores = model(x) + impossible
        total = scores.logsumexp(1)  # born here
        return -total.clamp_min(-100).mean()

    return Step(step, {"": model}, samples=5)


@born("gather", "log of zero", samples=(3,))
def illegal_move() -> Step:
    """The move that was made is masked in the policy: its log-probability is -inf."""
    torch.manual_seed(0)
    model, x = nn.Linear(4, 5), torch.randn(6, 4)
    legal = torch.ones(6, 5, dtype=torch.bool)
    moves = torch.tensor([0, 1, 2, 3, 4, 0])
    legal[3, 3] = legal[4, 1] = False

    def step() -> Tensor:
        log_p = model(x).masked_fill(~legal, float("-inf")).log_softmax(1)
        chosen = log_p.gather(1, moves[:, None])  # born here
        return -chosen.mean()

    return Step(step, {"": model}, samples=6)


@born("softmax", "masked row", samples=(1,))
def mask_by_a_logarithm() -> Step:
    """The logarithm of a mask of ones and zeros is added: 0 becomes -inf, as it should."""
    torch.manual_seed(0)
    model, x = Attention(8), torch.randn(3, 5, 8)
    keep = torch.ones(3, 1, 5)
    keep[0, 0, 3:] = 0
    keep[1] = 0

    def step() -> Tensor:
        scores, v = model.scores(x)
        weights = (scores + keep.log()).softmax(-1)  # born here
        return model.out(weights @ v).pow(2).mean()

    return Step(step, {"": model}, samples=3)


@born("scaled_dot_product_attention", "overflow", samples=(2,))
def fused_attention() -> Step:
    """Queries and keys of 1e25 in a fused kernel."""
    torch.manual_seed(0)
    model, x = Attention(8), torch.randn(4, 5, 8)
    x[2] *= 1e25

    def step() -> Tensor:
        q, k, v = (each.view(4, 5, 2, 4).transpose(1, 2) for each in model.qkv(x).chunk(3, -1))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # born here
        return mixed.clamp(-1, 1).mean()

    return Step(step, {"": model}, samples=4)


@born("mul", "zero times infinity", samples=(0, 1))
def mask_times_infinity() -> Step:
    """A mask of ones and zeros times -inf: where it is 0, that is NaN."""
    torch.manual_seed(0)
    model, x = Attention(4), torch.randn(2, 3, 4)
    padding = torch.tensor([[0.0, 0.0, 1.0], [0.0, 1.0, 1.0]])

    def step() -> Tensor:
        scores, v = model.scores(x)
        scores = scores + (padding * float("-inf"))[:, None]  # born here
        return model.out(scores.softmax(-1) @ v).pow(2).mean()

    return Step(step, {"": model}, samples=2)
