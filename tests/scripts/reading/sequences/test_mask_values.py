"""Readers of mask values, and twins without a pattern."""

from textwrap import dedent, indent

import pytest

from holter.scripts.reading import read


def function(body: str, arguments: str = "s, n, h") -> str:
    """A function that is used."""
    return f"def f({arguments}):\n{indent(dedent(body), '    ')}\nf(*given)\n"


CAUSAL = "mask = {}\nattn = scores.masked_fill(mask, -1e9).softmax(-1)\n"
FOUND = {
    "zero before softmax": (
        "a = scores.masked_fill(mask, 0).softmax(-1)\n",
        function("s = q @ k.mT\ns = s.masked_fill(pad, 0.0)\nreturn F.softmax(s, -1)\n", "q, k"),
        "a = torch.softmax(scores * mask, dim=-1)\n",
        "a = F.softmax(torch.where(keep, scores, torch.zeros_like(scores)), 1)\n",
    ),
    "zero before minimum": (
        "hard = distances.masked_fill(same, 0).min(1)\n",
        "dist = torch.cdist(a, b)\nhard = (dist * negative_mask).min(dim=1)\n",
    ),
    "off diagonal": (
        CAUSAL.format("torch.ones(T, T).tril(1) == 0"),
        CAUSAL.format("torch.triu(torch.ones(T, T), diagonal=2).bool()"),
        "ones = torch.ones(T, T)\n" + CAUSAL.format("ones.triu(2).bool()"),
    ),
}  # fmt: skip
HEALTHY = {
    "zero before softmax": (
        "a = scores.masked_fill(mask, -1e9).softmax(-1)\n",
        "a = scores.softmax(-1).masked_fill(mask, 0)\n",
        function("a = (s * mask).softmax(-1) * mask\nreturn a / a.sum(-1, True)\n", "s, mask"),
        "s = s.masked_fill(mask, 0)\ns = s + bias\na = s.softmax(-1)\n",
    ),
    "zero before minimum": (
        "hard = distances.masked_fill(same, float('inf')).min(1)\n",
        "worst = log_probabilities.masked_fill(pad, 0).min(1)\n",
        "least = distances.masked_fill(same, 0).min()\n",
    ),
    "off diagonal": (
        CAUSAL.format("torch.ones(T, T).tril() == 0"),
        CAUSAL.format("torch.ones(T, T).triu(1).bool()"),
        CAUSAL.format("torch.ones(T, T + 1).tril(1) == 0"),
        "band = torch.ones(T, T).tril(1) * torch.ones(T, T).triu(-1)\na = s.softmax(-1)\n",
        "pairs = torch.ones(T, T).triu(2)\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in FOUND.items() for text in texts]
)
def test_mistakes_are_found(kind: str, text: str) -> None:
    assert kind in {pattern.kind for pattern in read(text)}, text


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in HEALTHY.items() for text in texts]
)
def test_what_is_meant_so_is_not(kind: str, text: str) -> None:
    assert kind not in {pattern.kind for pattern in read(text)}, text
