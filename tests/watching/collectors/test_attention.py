"""Logits and entropy of attention."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from holter import Run
from holter.record.signals import ATTENTION_ENTROPY, ATTENTION_LOGIT_ABSMAX
from watching.collectors.trainings import values, watching


def record(path, attend, layer, steps=2):
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.0)
    with watching(path, layer, optimizer):
        for _ in range(steps):
            attend(layer).sum().backward()
            optimizer.step()
            with torch.no_grad():
                attend(layer)
    return Run.load(path)


def by_hand(query, key, allowed, scale):
    """Largest logit, and entropy over what it could be, of everything."""
    logits = query @ key.transpose(-1, -2) * scale
    shares = torch.softmax(logits.masked_fill(~allowed, -math.inf), -1).double()
    entropy = torch.special.entr(shares).sum()
    most = allowed.expand(logits.shape).sum(-1).double().log().sum()
    return float(logits.abs().max()), float(entropy / most)


@pytest.fixture
def given():
    torch.manual_seed(0)
    return torch.randn(2, 3, 6, 4) * 3, torch.randn(2, 3, 6, 4), torch.randn(2, 3, 6, 4)


TRIANGLE = torch.ones(6, 6, dtype=torch.bool).tril()
PADDED = torch.tensor([True] * 4 + [False] * 2).expand(6, 6)


@pytest.mark.parametrize(
    ("options", "allowed"),
    [
        ({}, torch.ones(6, 6, dtype=torch.bool)),
        ({"is_causal": True}, TRIANGLE),
        ({"attn_mask": PADDED}, PADDED),
        ({"attn_mask": torch.zeros(6, 6).masked_fill(~TRIANGLE, -math.inf)}, TRIANGLE),
        ({"scale": 2.0}, torch.ones(6, 6, dtype=torch.bool)),
    ],
    ids=["plain", "causal", "padded", "added", "scaled"],
)
def test_small_calls_are_read_whole(tmp_path, given, options, allowed):
    def attend(layer):
        query, key, value = given
        return functional.scaled_dot_product_attention(layer.weight * query, key, value, **options)

    layer = nn.PReLU(init=1.0)
    run = record(tmp_path / "run", attend, layer)
    largest, entropy = by_hand(given[0], given[1], allowed, options.get("scale", 0.5))
    assert values(run, ATTENTION_LOGIT_ABSMAX, "attention 0") == pytest.approx([largest] * 2)
    assert values(run, ATTENTION_ENTROPY, "attention 0") == pytest.approx([entropy] * 2, rel=1e-5)


def test_keys_that_heads_share(tmp_path):
    query, key = torch.randn(2, 6, 5, 4), torch.randn(2, 2, 5, 4)

    def attend(layer):
        return functional.scaled_dot_product_attention(
            layer.weight * query, key, key, enable_gqa=True
        )

    run = record(tmp_path / "run", attend, nn.PReLU(init=1.0))
    largest, entropy = by_hand(
        query, key.repeat_interleave(3, 1), torch.ones(5, 5, dtype=torch.bool), 0.5
    )
    assert values(run, ATTENTION_LOGIT_ABSMAX, "attention 0") == pytest.approx([largest] * 2)
    assert values(run, ATTENTION_ENTROPY, "attention 0") == pytest.approx([entropy] * 2, rel=1e-5)


def test_long_calls_are_read_in_part(tmp_path):
    query = torch.randn(5, 20, 700, 8)

    def attend(layer):
        x = layer.weight * query
        return functional.scaled_dot_product_attention(x, x, x, is_causal=True)

    run = record(tmp_path / "run", attend, nn.PReLU(init=1.0), steps=1)
    (largest,) = values(run, ATTENTION_LOGIT_ABSMAX, "attention 0")
    (entropy,) = values(run, ATTENTION_ENTROPY, "attention 0")
    assert 3 < largest < 30
    assert 0.3 < entropy < 1


def test_calls_are_told_apart_by_their_order(tmp_path):
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2, enable_nested_tensor=False
    )
    x = torch.randn(3, 5, 8)
    run = record(tmp_path / "run", lambda layer: layer(x), encoder)
    assert set(run[ATTENTION_ENTROPY]) == {"attention 0", "attention 1"}
    assert all(0 < each < 1.0001 for each in values(run, ATTENTION_ENTROPY, "attention 1"))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_under_autocast(tmp_path, dtype):
    query = torch.randn(2, 2, 5, 4) * 1000

    def attend(layer):
        with torch.autocast("cpu", torch.bfloat16):
            x = (layer.weight * query).to(dtype)
            return functional.scaled_dot_product_attention(x, x, x).float()

    run = record(tmp_path / "run", attend, nn.PReLU(init=1.0))
    assert 1e5 < values(run, ATTENTION_LOGIT_ABSMAX, "attention 0")[0] < 1e8
