"""Pooling over time in sources: weights, padding and last positions."""

import pytest

from tests.scripts.reading.found import kinds

SCORED = """
class Pool(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.score = {}
    def forward(self, h):
        {}
        return (w * h).sum(1)
"""


@pytest.mark.parametrize(
    ("layer", "body"),
    [
        ("nn.Linear(d, 1)", "w = self.score(h).softmax(-1)"),
        ("nn.Linear(d, 1, bias=False)", "s = self.score(h)\n        w = F.softmax(s, dim=-1)"),
        ("nn.Sequential(nn.Linear(d, d), nn.Tanh(), nn.Linear(d, 1))",
         "w = torch.softmax(self.score(torch.tanh(h)), dim=-1)"),
        ("nn.Sequential(nn.Linear(d, 1), nn.Softmax(dim=-1))", "w = self.score(h)"),
    ],
)  # fmt: skip
def test_softmax_of_one_score(layer: str, body: str) -> None:
    assert "single score" in kinds(SCORED.format(layer, body))


@pytest.mark.parametrize(
    ("layer", "body"),
    [
        ("nn.Linear(d, 1)", "w = self.score(h).softmax(1)"),
        ("nn.Linear(d, 1)", "w = self.score(h).squeeze(-1).softmax(-1).unsqueeze(-1)"),
        ("nn.Linear(d, 4)", "w = self.score(h).softmax(-1)"),
        ("nn.Linear(d, 1)", "w = self.score(h).softmax(-2)"),
    ],
)
def test_softmax_of_several_scores(layer: str, body: str) -> None:
    assert "single score" not in kinds(SCORED.format(layer, body))


POOLED = """
def pool(scores, h, ids):
    {}
    return {}
"""


@pytest.mark.parametrize(
    ("weights", "result"),
    [
        ("w = scores.softmax(0)", "torch.bmm(w.unsqueeze(1), h).squeeze(1)"),
        ("w = F.softmax(scores, dim=0)", "(w.unsqueeze(1) @ h).squeeze(1)"),
        ("w = torch.softmax(scores, 0)", "torch.einsum('bt,btd->bd', w, h)"),
        ("w = scores.softmax(dim=1)", "torch.einsum('bqk,bkd->bqd', w, h)"),
        ("w = scores.softmax(0)", "w[:, None] @ h"),
    ],
)
def test_weights_that_are_normalised_across(weights: str, result: str) -> None:
    found = kinds(POOLED.format(weights, result))
    assert found & {"softmax over another axis", "softmax over queries"}


@pytest.mark.parametrize(
    ("weights", "result"),
    [
        ("w = scores.softmax(1)", "torch.bmm(w.unsqueeze(1), h).squeeze(1)"),
        ("w = scores.softmax(-1)", "torch.einsum('bqk,bkd->bqd', w, h)"),
        ("w = scores.softmax(0)", "torch.einsum('tb,tbd->bd', w, h)"),
        ("w = scores.softmax(1)", "torch.einsum('bkq,bkd->bqd', w, h)"),
    ],
)
def test_weights_that_are_normalised_along(weights: str, result: str) -> None:
    assert not kinds(POOLED.format(weights, result))


@pytest.mark.parametrize(
    ("weights", "result"),
    [
        ("w = scores.softmax(1)\n    w = w.masked_fill(ids == PAD, 0.0)",
         "torch.bmm(w.unsqueeze(1), h)"),
        ("pad = ids == PAD\n    w = scores.softmax(-1).masked_fill(pad, 0)", "w @ h"),
        ("mask = (ids != PAD).float()\n    w = F.softmax(scores, -1) * mask",
         "(w.unsqueeze(-1) * h).sum(1)"),
        ("w = scores.softmax(-1)\n    w = w * torch.tril(ones)\n    w *= causal_mask", "w @ h"),
        ("w = scores.softmax(-1)\n    w = w.masked_fill(mask, float('-inf'))", "w @ h"),
    ],
)  # fmt: skip
def test_masks_after_the_softmax(weights: str, result: str) -> None:
    assert kinds(POOLED.format(weights, result)) == {"mask after softmax"}


@pytest.mark.parametrize(
    ("weights", "result"),
    [
        ("s = scores.masked_fill(ids == PAD, -1e9)\n    w = s.softmax(1)", "w @ h"),
        ("mask = ids != PAD\n    w = scores.softmax(1) * mask\n    w = w / w.sum(1, keepdim=True)",
         "torch.bmm(w.unsqueeze(1), h)"),
        (("pad = ids == PAD\n    scores = scores.masked_fill(pad, -1e9)\n"
         "    w = scores.softmax(1).masked_fill(pad, 0)"), "w @ h"),
        ("w = scores.softmax(1)\n    w = self.dropout(w) * gate", "w @ h"),
    ],
)  # fmt: skip
def test_masks_before_the_softmax(weights: str, result: str) -> None:
    assert not kinds(POOLED.format(weights, result))


ENCODED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.rnn = nn.GRU(8, 8, batch_first=True)
        self.norm = nn.LayerNorm(8)
    def forward(self, x, pad, packed):
        {}
"""


@pytest.mark.parametrize(
    "body",
    [
        "return self.encoder(x, src_key_padding_mask=pad).mean(1)",
        (
            "mask = x != PAD\n        for block in self.blocks:\n            x = block(x, mask)\n"
            "        return self.norm(x).mean(1)"
        ),
        "h = self.norm(self.encoder(x, src_key_padding_mask=pad))\n        return h.mean(dim=1)",
        (
            "h, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True)\n"
            "        return torch.mean(h, dim=1)"
        ),
    ],
)
def test_means_over_padding(body: str) -> None:
    assert "padded mean" in kinds(ENCODED.format(body))


@pytest.mark.parametrize(
    "body",
    [
        (
            "h = self.encoder(x, src_key_padding_mask=pad)\n"
            "        return h.masked_fill(pad[..., None], 0).sum(1) / (~pad).sum(1, keepdim=True)"
        ),
        "return self.encoder(x).mean(1)",
        "h = self.encoder(x, src_key_padding_mask=pad) * keep\n        return h.mean(1)",
        (
            "h, n = pad_packed_sequence(self.rnn(packed)[0], batch_first=True)\n"
            "        return h.sum(1) / n[:, None]"
        ),
    ],
)
def test_means_over_real_positions(body: str) -> None:
    assert "padded mean" not in kinds(ENCODED.format(body))


LAST = """
def collate(rows):
    return pad_sequence(rows, batch_first=True)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(100, 8, padding_idx=0)
        self.rnn = nn.GRU(8, 8, batch_first=True)
    def forward(self, x{}):
        {}
"""


@pytest.mark.parametrize(
    ("more", "body"),
    [
        ("", "out, _ = self.rnn(self.emb(x))\n        return out[:, -1]"),
        (", lengths", "e = self.emb(x)\n        y, h = self.rnn(e)\n        return y[:, -1, :]"),
        (", lengths", ("p = pack_padded_sequence(self.emb(x), lengths, True)\n"
         "        y, _ = pad_packed_sequence(self.rnn(p)[0], True)\n        return y[:, -1]")),
        ("", "out = self.rnn(self.emb(x))[0]\n        return out[:, -1]"),
    ],
)  # fmt: skip
def test_last_positions_that_are_padding(more: str, body: str) -> None:
    assert kinds(LAST.format(more, body)) == {"last padding"}


@pytest.mark.parametrize(
    ("more", "body"),
    [
        (", lengths", ("out, _ = self.rnn(self.emb(x))\n"
         "        return out[torch.arange(len(x)), lengths - 1]")),
        (", lengths", ("p = pack_padded_sequence(self.emb(x), lengths, True)\n"
         "        _, h = self.rnn(p)\n        return h[-1]")),
        ("", "out, _ = self.rnn(self.emb(x.flip(1)))\n        return out[:, -1]"),
    ],
)  # fmt: skip
def test_last_positions_that_are_real(more: str, body: str) -> None:
    assert not kinds(LAST.format(more, body))


def test_last_positions_of_windows_that_are_all_of_one_length() -> None:
    text = LAST.format("", "out, _ = self.rnn(self.emb(x))\n        return out[:, -1]")
    assert not kinds(text.replace("pad_sequence(rows, batch_first=True)", "torch.stack(rows)"))
