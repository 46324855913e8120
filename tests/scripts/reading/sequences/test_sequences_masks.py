"""Readers of masks, and twins without a pattern."""

import pytest

from holter.scripts.reading import read

NET = """
class Net(nn.Module):
    def __init__(self, teacher=None):
        super().__init__()
        {}

    def forward(self, x, mask=None):
        return self.head(x)
"""


def net(*lines: str) -> str:
    """A module whose constructor has these lines."""
    return NET.format("\n        ".join(lines))


FOUND = {
    "inverted mask": [
        "a = scores.masked_fill(tokens != PAD, float('-inf')).softmax(-1)\n",
        (
            "keep = torch.arange(n)[None] < lengths[:, None]\n"
            "a = scores.masked_fill(keep, -float('inf')).softmax(-1)\n"
        ),
        "a = F.scaled_dot_product_attention(q, k, v, attn_mask=torch.triu(torch.ones(9, 9), 1))\n",
        net("self.attn = nn.MultiheadAttention(8, 2)") + "    def attend(self, x, tokens):\n"
        "        return self.attn(x, x, x, key_padding_mask=tokens != self.pad_idx)\n",
        (
            "def attention(scores, mask):\n"
            "    return scores.masked_fill(mask, -1e9).softmax(-1)\n\n"
            "mask = tokens != PAD\nout = attention(scores, mask)\n"
        ),
    ],
}
CLEAN = {
    "inverted mask": [
        "a = scores.masked_fill(tokens == PAD, float('-inf')).softmax(-1)\n",
        "a = scores.masked_fill(padding_mask != 0, -1e9).softmax(-1)\n",
        "a = scores.masked_fill(is_pad != 0, -1e9).softmax(-1)\n",
        (
            "def attention(scores, mask):\n"
            "    return scores.masked_fill(mask, -1e9).softmax(-1)\n\n"
            "mask = tokens != PAD\nout = attention(scores, ~mask)\n"
        ),
        (
            "class Attention(nn.Module):\n    def forward(self, x, mask):\n"
            "        return x.masked_fill(mask == 0, -1e9).softmax(-1)\n\n"
            "attention = Attention()\nout = attention(x, mask=torch.tril(torch.ones(9, 9)))\n"
        ),
        "best = scores.masked_fill(torch.tril(torch.ones(9, 9)).bool(), -1e9).max()\n",
        "a = F.scaled_dot_product_attention(q, k, v, attn_mask=torch.tril(torch.ones(9, 9)))\n",
        net("self.attn = nn.MultiheadAttention(8, 2)") + "    def attend(self, x, tokens):\n"
        "        return self.attn(x, x, x, key_padding_mask=tokens == self.pad_idx)\n",
    ],
}


def rows(table: dict[str, list[str]]) -> list[object]:
    return [
        pytest.param(kind, text, id=f"{kind}-{number}")
        for kind, texts in table.items()
        for number, text in enumerate(texts)
    ]


@pytest.mark.parametrize(("kind", "text"), rows(FOUND))
def test_the_pattern_is_found(kind: str, text: str) -> None:
    assert [pattern.kind for pattern in read(text)] == [kind]


@pytest.mark.parametrize(("kind", "text"), rows(CLEAN))
def test_the_twin_is_clean(kind: str, text: str) -> None:
    compile(text, kind, "exec")
    assert [pattern.code for pattern in read(text) if pattern.kind == kind] == []
