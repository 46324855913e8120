"""Scores, layers and positions of transformers."""

import pytest

from tests.scripts.reading.found import kinds

SCORES = """
class Attention(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.scale = {scale}
    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        {scores}
        return scores.softmax(-1) @ v
layer = Attention(8)
"""


@pytest.mark.parametrize(
    ("scores", "scale"),
    [("scores = (q @ k.transpose(-2, -1)) * math.sqrt(q.size(-1))", "1"),
     ("scores = torch.matmul(q, k.transpose(-2, -1)) * self.scale", "d ** 0.5"),
     ("scores = q @ k.mT; scores = scores / self.scale", "d ** -0.5"),
     ("scores = torch.einsum('bqd,bkd->bqk', q, k); scores *= self.scale", "math.sqrt(d)"),
     ("scores = torch.bmm(q, k.transpose(1, 2)) / (1 / math.sqrt(8))", "1")],
)  # fmt: skip
def test_scores_that_are_scaled_up(scores: str, scale: str) -> None:
    assert "scaled-up attention" in kinds(SCORES.format(scores=scores, scale=scale))


@pytest.mark.parametrize(
    ("scores", "scale"),
    [("scores = (q @ k.transpose(-2, -1)) / math.sqrt(q.size(-1))", "1"),
     ("scores = q @ k.mT * self.scale", "d ** -0.5"),
     ("scores = q @ k.mT * self.scale", "1 / math.sqrt(d)"),
     ("q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1); scores = q @ k.mT * self.scale",
      "math.sqrt(d)"),
     ("scores = q @ k.mT * 0.125", "1")],
)  # fmt: skip
def test_scores_that_are_scaled_down(scores: str, scale: str) -> None:
    assert "scaled-up attention" not in kinds(SCORES.format(scores=scores, scale=scale))


@pytest.mark.parametrize(
    "code",
    ["m = nn.ModuleList([nn.Linear(8, 8)] * 6)", "m = nn.Sequential(*[nn.Linear(8, 8)] * 3)",
     "block = [nn.Conv2d(8, 8, 3), nn.ReLU()]\nlayers = block * 2\nm = nn.Sequential(*layers)",
     "layers = []\nlayers += [nn.Linear(8, 8), nn.ReLU()] * n\nm = nn.Sequential(*layers)"],
)  # fmt: skip
def test_layers_that_are_repeated(code: str) -> None:
    assert "repeated layer" in kinds(code)


@pytest.mark.parametrize(
    "code",
    ["m = nn.ModuleList([nn.Linear(8, 8) for _ in range(6)])",
     "m = nn.Sequential(*[nn.ReLU()] * 3)", "sizes = [8] * 3\nm = nn.Sequential(*make(sizes))",
     "m = nn.ModuleList([nn.Linear(8, 8)] * 1)"],
)  # fmt: skip
def test_layers_of_their_own(code: str) -> None:
    assert "repeated layer" not in kinds(code)


GPT = """
class GPT(nn.Module):
    def __init__(self, n, d):
        super().__init__()
        {made}
        self.register_buffer("mask", torch.tril(torch.ones(n, n)))
    def forward(self, ids):
        return self.head(self.tok(ids){added})
    def generate(self, ids, n):
        for _ in range(n):
            logits = self({given})[:, -1]
            ids = torch.cat([ids, logits.argmax(-1, keepdim=True)], dim=1)
        return ids
model = GPT(8, 8)
"""
POSITIONS = "self.tok, self.pos = nn.Embedding(9, d), nn.Embedding(n, d)"
ADDED = " + self.pos(torch.arange(9)) + self.mask"


@pytest.mark.parametrize("made", [POSITIONS, "self.pos_emb = nn.Embedding(n, d)",
                                  "self.pos = nn.Parameter(torch.zeros(n, d))"])  # fmt: skip
def test_positions_that_nothing_reads(made: str) -> None:
    assert "unread positions" in kinds(GPT.format(made=made, added="", given="ids"))


@pytest.mark.parametrize("made", [POSITIONS, "self.pos = nn.Parameter(torch.zeros(n, d))",
                                  "self.tok = nn.Embedding(9, d)"])  # fmt: skip
def test_positions_that_are_read(made: str) -> None:
    assert "unread positions" not in kinds(GPT.format(made=made, added=ADDED, given="ids"))


def test_contexts_that_grow_beyond_the_positions() -> None:
    assert "uncropped context" in kinds(GPT.format(made=POSITIONS, added=ADDED, given="ids"))


@pytest.mark.parametrize("given", ["ids[:, -8:]", "ids[:, -self.n:]", "ids[:, -min(8, 9):]"])
def test_contexts_that_are_cropped(given: str) -> None:
    assert "uncropped context" not in kinds(GPT.format(made=POSITIONS, added=ADDED, given=given))
