"""Births on a GPU, where backward runs in a thread of its own."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.amp import GradScaler
from torch.optim import Adam
from torch.utils.checkpoint import checkpoint

from holter.lab.birth import find

pytestmark = pytest.mark.cuda


class Root(nn.Module):
    """The root of a sum of squares."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(8, 8, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        squares = self.inner(x).square().sum(1)
        return squares.sqrt()  # the line


@pytest.mark.parametrize("way", ["plain", "checkpoint", "reentrant"])
def test_a_gradient_is_traced_to_its_line(way: str) -> None:
    torch.manual_seed(0)
    model = nn.ModuleDict({"first": nn.Linear(8, 8, bias=False), "root": Root()}).cuda()
    x = torch.randn(16, 8, device="cuda")
    x[5] = 0

    def step() -> Tensor:
        h = model["first"](x)
        if way == "plain":
            return model["root"](h).mean()
        return checkpoint(model["root"], h, use_reentrant=way == "reentrant").mean()

    birth = find(step, {"": model}, [Adam(model.parameters(), fused=True)], samples=16)
    assert birth is not None
    assert (birth.operation, birth.kind, birth.phase) == ("sqrt", "root at zero", "backward")
    assert birth.node == "SqrtBackward0"
    assert birth.line.endswith("# the line")
    assert (birth.module, birth.samples) == ("root", (5,))


def test_half_precision_in_autocast() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 8)).cuda()
    x = torch.randn(16, 8, device="cuda")
    x[3] *= 1e5
    with torch.no_grad():
        model[2].weight.mul_(30)

    def step() -> Tensor:
        with torch.autocast("cuda", dtype=torch.float16):
            out = model(x)
        return out.float().pow(2).mean()

    birth = find(step, {"": model}, samples=16)
    assert birth is not None
    assert (birth.kind, birth.samples) == ("half range", (3,))


def test_attention_with_causal_mask_and_amp_is_healthy() -> None:
    torch.manual_seed(0)
    qkv, x = nn.Linear(64, 192).cuda(), torch.randn(4, 16, 64, device="cuda")
    scaler = GradScaler("cuda", init_scale=2.0**30)

    def step() -> Tensor:
        with torch.autocast("cuda", dtype=torch.float16):
            parts = qkv(x).chunk(3, -1)
            q, k, v = (each.view(4, 16, 4, 16).transpose(1, 2) for each in parts)
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return scaler.scale(mixed.float().pow(2).mean())

    assert find(step, {"": qkv}, [Adam(qkv.parameters())], samples=4) is None


def test_a_healthy_step_is_the_same_bit_for_bit() -> None:
    torch.manual_seed(0)
    model, x = (
        nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 2)).cuda(),
        torch.randn(16, 8),
    )
    x = x.cuda()

    def grads() -> list[Tensor]:
        return [each.grad.clone() for each in model.parameters()]

    model(x).pow(2).mean().backward()
    plain = grads()
    assert find(lambda: model(x).pow(2).mean(), {"": model}, samples=16) is None
    assert all(torch.equal(a, b) for a, b in zip(plain, grads(), strict=True))
