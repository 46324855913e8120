"""The guilty sample is found in whatever layout it travels."""

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from holter.lab.birth import find

LOUD = 1e20  # of the guilty sample; its square is too large for float32
WIDTH, LENGTH = 6, 7

Loss = Callable[[nn.Linear, Tensor], Tensor]

ROWS: dict[str, Loss] = {
    "plain": lambda model, x: model(x),
    "gathered": lambda model, x: model(x).gather(1, torch.zeros(len(x), 1, dtype=torch.long)),
    "indexed": lambda model, x: model(x)[torch.arange(len(x)), 0],
    "joined": lambda model, x: torch.cat([model(x), x], 1),
    "stacked": lambda model, x: torch.stack([model(x), x]),
    "one by one": lambda model, x: torch.stack([model(row).max() for row in x]),
    "in chunks": lambda model, x: torch.cat([model(each) for each in x.split(2)]),
    "turned": lambda model, x: model(x).T.contiguous(),
    "expanded": lambda model, x: model(x)[:, None] * torch.ones(1, len(x), 1),
    "mapped": lambda model, x: torch.func.vmap(lambda row: model.weight @ row)(x),
}
SEQUENCES: dict[str, Loss] = {
    "flattened": lambda model, x: model(x.flatten(0, 1)),
    "permuted": lambda model, x: model(x.permute(1, 0, 2)).permute(2, 1, 0).contiguous(),
    "multiplied": lambda model, x: torch.einsum("abi,oi->oab", x, model.weight),
    "padded": lambda model, x: F.pad(model(x), (1, 1)),
}


@pytest.mark.parametrize("batch", [6, 5])  # as many as features, and not
@pytest.mark.parametrize("way", ROWS)
def test_rows(way: str, batch: int) -> None:
    torch.manual_seed(0)
    model, x, guilty = nn.Linear(WIDTH, WIDTH), torch.randn(batch, WIDTH), batch - 2
    x[guilty] *= LOUD * 100
    birth = find(lambda: ROWS[way](model, x).pow(2).mean(), {"": model}, samples=batch)
    assert birth is not None
    assert (birth.operation, birth.samples) == ("pow", (guilty,))


@pytest.mark.parametrize("first", [True, False], ids=["batch first", "sequence first"])
@pytest.mark.parametrize("batch", [6, 7, 5])  # as many as features, as steps, and neither
@pytest.mark.parametrize("way", SEQUENCES)
def test_sequences(way: str, batch: int, *, first: bool) -> None:
    if batch == LENGTH and not first:
        pytest.skip("nothing tells which of two equal dimensions is the batch")
    torch.manual_seed(0)
    model, guilty = nn.Linear(WIDTH, WIDTH), batch - 2
    x = torch.randn(batch, LENGTH, WIDTH)
    x[guilty] *= LOUD * 100
    x = x if first else x.transpose(0, 1).contiguous()
    birth = find(lambda: SEQUENCES[way](model, x).pow(2).mean(), {"": model}, samples=batch)
    assert birth is not None
    assert (birth.operation, birth.samples) == ("pow", (guilty,))


@pytest.mark.parametrize("fused", [True, False])
def test_a_transformer_with_heads(*, fused: bool) -> None:
    torch.manual_seed(0)
    batch, heads, guilty = 4, 2, 2
    model = nn.ModuleDict({"embed": nn.Embedding(9, 8), "qkv": nn.Linear(8, 24)})
    tokens = torch.randint(0, 8, (batch, 5))
    tokens[guilty, 3] = 8
    with torch.no_grad():
        model["embed"].weight[8] = LOUD * 100
        model["qkv"].weight.abs_()  # a score of +inf has no softmax, one of -inf is a weight of 0
    future = torch.triu(torch.ones(5, 5, dtype=torch.bool), 1)

    def step() -> Tensor:
        parts = model["qkv"](model["embed"](tokens)).chunk(3, -1)
        q, k, v = (each.view(batch, 5, heads, 4).transpose(1, 2) for each in parts)
        if fused:
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = (q @ k.transpose(-2, -1)).masked_fill(future, -math.inf)
            mixed = scores.softmax(-1) @ v
        return mixed.transpose(1, 2).reshape(batch, 5, 8).mean()

    birth = find(step, {"": model}, samples=batch)
    assert birth is not None
    assert birth.operation == ("scaled_dot_product_attention" if fused else "bmm")
    assert birth.samples == (guilty,)


def test_images_in_channels_last() -> None:
    torch.manual_seed(0)
    model = nn.Conv2d(3, 4, 3, padding=1).to(memory_format=torch.channels_last)
    images = torch.randn(4, 3, 6, 6).to(memory_format=torch.channels_last)
    images[1] *= LOUD * 100
    birth = find(lambda: model(images).pow(2).mean(), {"": model}, samples=4)
    assert birth is not None
    assert birth.samples == (1,)


def test_the_gradient_of_weights_is_blamed_on_the_loudest_sample() -> None:
    torch.manual_seed(0)
    model, x = nn.Linear(3, 2).half(), torch.randn(6, 3).half()
    x[4] = 3000

    def step() -> Tensor:
        return (model(x) / 8).float().pow(2).sum()

    birth = find(step, {"": model}, samples=6)
    assert birth is not None
    assert (birth.phase, birth.kind, birth.samples) == ("backward", "half range", (4,))


def test_no_sample_is_named_where_all_are_alike() -> None:
    model, x = nn.Linear(2, 300).half(), torch.full((8, 2), 30.0).half()

    def step() -> Tensor:
        terms = model(x).abs() + 60
        return terms.sum()

    birth = find(step, {"": model}, samples=8)
    assert birth is not None
    assert (birth.kind, birth.samples) == ("half range", ())


def test_without_the_size_of_the_batch_no_sample_is_named() -> None:
    model, x = nn.Linear(2, 2), torch.zeros(3, 2)
    birth = find(lambda: (model(x) * x).log().mean(), {"": model})
    assert birth is not None
    assert birth.samples == ()


def test_memory_that_is_used_again_is_another_tensor() -> None:
    torch.manual_seed(0)
    model, weights = nn.Linear(3, 1), [1.0] * 16
    x, weights[4] = torch.randn(16, 3), 0.0

    def loss() -> Tensor:
        for size in (7, 40, 3) * 20:  # each is gone before the next
            torch.tensor([1.0] * size).mul(2)
        return (torch.tensor(weights) ** -0.5 * model(x).squeeze(1)).mean()

    found = find(loss, {"": model}, (), samples=16)
    assert found is not None and found.samples == (4,)
