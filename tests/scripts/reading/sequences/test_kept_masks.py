"""Masks that a module keeps and nothing reads."""

from tests.scripts.reading.found import kinds

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


def test_masks_that_a_module_keeps_and_nothing_reads() -> None:
    assert "unread mask" in kinds(GPT.format(made=POSITIONS, added="", given="ids"))
    assert "unread mask" not in kinds(GPT.format(made=POSITIONS, added=ADDED, given="ids"))
    own = "self.causal = torch.triu(torch.ones(n, n), 1); " + POSITIONS
    assert "unread mask" in kinds(GPT.format(made=own, added=ADDED, given="ids"))
