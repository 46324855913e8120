"""Masks by what True means in them, where they are used, and twins that are used as meant."""

import pytest

from holter.scripts.reading import read

EMBEDDED = "table = nn.Embedding(99, 8, padding_idx=0)\n"
PASSED = (
    "class Pool(nn.Module):\n    def forward(self, h, {name}):\n"
    "        score = self.v(h).masked_fill({used}, -1e4)\n"
    "        return (score.softmax(1) * h).sum(1)\n\n"
    "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.e = nn.Embedding(9, 8, padding_idx=0)\n        self.pool = Pool()\n\n"
    "    def forward(self, x):\n        return self.pool(self.e(x), {given})\n"
)
ATTENTION = (
    "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.attn = nn.MultiheadAttention(8, 2, batch_first=True)\n\n"
    "    def forward(self, x, ids):\n        return self.attn(x, x, x, {given})\n"
)
LAYER = "layer = nn.TransformerEncoder(one, 2)\nout = layer(x, {given})\n"
FILLED = (
    "mask = torch.zeros(9, 9)\nfor i, s in enumerate(rows):\n    mask[i, : len(s)] = 1\n"
    "a = scores.masked_fill({used}, -1e9).softmax(-1)\n"
)
TRIANGLE = "m = {mask}\na = s.masked_fill({used}, float('-inf')).softmax(-1)\n"
MEAN = "lens = list(map(len, rows))\nmask = torch.arange(9) {than} lens[:, None]\nloss = {value}\n"
BUFFER = (
    "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.register_buffer('seen', torch.tril(torch.ones(9, 9), {diagonal}))\n\n"
    "    def forward(self, s, T):\n"
    "        s = s.masked_fill(self.seen[:T, :T] == 0, float('-inf'))\n"
    "        return s.softmax(-1)\n"
)
OF_ROW = "(ce * mask).sum() / mask.sum()"

FOUND = {
    "inverted mask": (
        EMBEDDED + "m = ids != 0\na = s.masked_fill(m, -1e4).softmax(-1)\n",
        EMBEDDED + "a = s.masked_fill(ids.ne(0), -1e4).softmax(-1)\n",
        EMBEDDED + "a = s.masked_fill(ids > 0, -999.0).softmax(-1)\n",
        "a = s.masked_fill(torch.ne(ids, PAD), -1e4).softmax(-1)\n",
        "a = torch.where(ids == PAD, s, -1e9).softmax(-1)\n",
        "a = torch.where(ids != PAD, float('-inf'), s).softmax(-1)\n",
        "s[ids != PAD] = -1e9\na = s.softmax(-1)\n",
        "a = (s + (ids != PAD).float() * -1e9).softmax(-1)\n",
        "a = (s + (1.0 - (ids == PAD).float()) * -1e9).softmax(-1)\n",
        "vocab = {'<pad>': 0}\na = s.masked_fill(ids != 0, -1e9).softmax(-1)\n",
        "def real(ids):\n    return ids != PAD\n\na = s.masked_fill(real(ids), -1e9).softmax(-1)\n",
        PASSED.format(name="m", used="m", given="x != 0"),
        PASSED.format(name="keep", used="~keep", given="x == 0"),
        ATTENTION.format(given="key_padding_mask=ids != PAD"),
        ATTENTION.format(given="ids != PAD"),
        LAYER.format(given="src_key_padding_mask=ids != PAD"),
        LAYER.format(given="torch.tril(torch.ones(9, 9)).bool()"),
        "out = encoder(x, src_key_padding_mask=ids != PAD)\n",
        FILLED.format(used="mask.bool()"),
        "a = F.scaled_dot_product_attention(q, k, v, ids == PAD)\n",
    ),
    "row without keys": (
        TRIANGLE.format(mask="torch.ones(9, 9).tril(-1).bool()", used="~m"),
        TRIANGLE.format(mask="torch.tril(torch.ones(9, 9), diagonal=-1)", used="m == 0"),
        TRIANGLE.format(mask="torch.triu(torch.ones(9, 9)).bool()", used="m"),
        TRIANGLE.format(mask="np.triu(np.ones((9, 9)), k=0)", used="m == 1"),
        BUFFER.format(diagonal=-1),
        "a = (s + torch.triu(torch.full((9, 9), float('-inf')))).softmax(-1)\n",
        "a = (s + torch.triu(torch.ones(9, 9) * float('-inf'), diagonal=0)).softmax(-1)\n",
        ATTENTION.format(given="attn_mask=torch.triu(torch.ones(9, 9)).bool()"),
        (
            "m = torch.ones(9, 9, dtype=torch.bool).tril(-1)\n"
            "a = F.scaled_dot_product_attention(q, k, v, attn_mask=m)\n"
        ),
    ),
    "padding alone": (
        MEAN.format(than=">=", value=OF_ROW),
        MEAN.format(than=">=", value="(h * mask.unsqueeze(-1)).sum(1) / mask.sum(1).clamp(min=1)"),
        "pad = y == PAD\nloss = (ce * pad.float()).sum() / pad.float().sum()\n",
    ),
}
CLEAN = {
    "inverted mask": (
        EMBEDDED + "m = ids == 0\na = s.masked_fill(m, -1e4).softmax(-1)\n",
        "m = ids != 0\na = s.masked_fill(m, -1e4).softmax(-1)\n",  # 0 may be anything
        EMBEDDED + "a = s.masked_fill(graph.adjacency(ids) != 0, -1e4).softmax(-1)\n",
        "a = torch.where(ids != PAD, s, -1e9).softmax(-1)\n",
        "s[ids == PAD] = -1e9\na = s.softmax(-1)\n",
        "a = (s + (1.0 - (ids != PAD).float()) * -1e9).softmax(-1)\n",
        PASSED.format(name="m", used="~m", given="x != 0"),
        PASSED.format(name="m", used="m", given="x == 0"),
        ATTENTION.format(given="key_padding_mask=ids == PAD"),
        LAYER.format(given="torch.triu(torch.ones(9, 9), 1).bool()"),
        (
            "def encoder(x, key_padding_mask):\n    return x\n\n"
            "out = encoder(x, key_padding_mask=ids != PAD)\n"
        ),
        FILLED.format(used="mask == 0"),
        (
            "real = torch.arange(9) >= (9 - lens)[:, None]\n"
            "a = s.masked_fill(~real, -1e9).softmax(-1)\n"
        ),
    ),
    "row without keys": (
        TRIANGLE.format(mask="torch.ones(9, 9).tril().bool()", used="~m"),
        TRIANGLE.format(mask="torch.triu(torch.ones(9, 9), diagonal=1).bool()", used="m"),
        TRIANGLE.format(mask="torch.ones(9, 9).tril(-1).bool()", used="~m").replace(
            ".softmax(-1)", ".softmax(-1).nan_to_num(0)"
        ),
        "pairs = s[torch.triu(torch.ones(9, 9)).bool()]\na = s.softmax(-1)\n",
        BUFFER.format(diagonal=0),
        "a = (s + torch.triu(torch.full((9, 9), float('-inf')), diagonal=1)).softmax(-1)\n",
        "order = torch.triu(torch.full((9, 9), float('-inf')))\n",
    ),
    "padding alone": (
        MEAN.format(than="<", value=OF_ROW),
        MEAN.format(than=">=", value="(ce * ~mask).sum() / (~mask).sum()"),
        MEAN.format(than=">=", value="mask.sum() / mask.numel()"),
        # The hidden patches of a masked autoencoder are the ones to be restored.
        "mask = torch.ones(4, 9)\nmask[:, :kept] = 0\nloss = (ce * mask).sum() / mask.sum()\n",
    ),
}


def cases(table: dict[str, tuple[str, ...]]) -> list[tuple[str, str]]:
    return [(kind, text) for kind, texts in table.items() for text in texts]


@pytest.mark.parametrize(("kind", "text"), cases(FOUND))
def test_a_mask_of_the_wrong_kind_is_found(kind: str, text: str) -> None:
    assert kind in [each.kind for each in read(text)]


@pytest.mark.parametrize(("kind", "text"), cases(CLEAN))
def test_a_mask_that_is_used_as_meant_is_none(kind: str, text: str) -> None:
    assert kind not in [each.kind for each in read(text)]
