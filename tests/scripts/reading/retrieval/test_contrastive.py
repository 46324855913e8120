"""Lengths of embeddings, and the order of views."""

import pytest

from holter.scripts.reading import read


def kinds(text: str) -> set[str]:
    return {pattern.kind for pattern in read(text)}


CONTRAST = """
def nt_xent(z1, z2, temperature):
    z = {}
    sim = z @ z.t() / temperature
    sim.fill_diagonal_(float("-inf"))
    return F.cross_entropy(sim, pairs)
nt_xent(a, b, 0.1)
"""


def test_embeddings_have_unit_length() -> None:
    assert kinds(CONTRAST.format("torch.cat([z1, z2])")) == {"embeddings without unit length"}
    assert kinds(CONTRAST.format("F.normalize(torch.cat([z1, z2]), dim=0)")) == {
        "unit length over batch"
    }
    for right in (
        "F.normalize(torch.cat([z1, z2]), dim=1)",
        "F.normalize(torch.cat([z1, z2]))",
        "unit_rows(torch.cat([z1, z2]))",
    ):
        assert not kinds(CONTRAST.format(right))


VIEWS = """
model = Net()
opt = Adam(model.parameters())
for (a, b), _ in loader:
    z = model({})
    loss = nt_xent({})
    loss.backward()
"""
TURNS = "torch.stack([a, b], dim=1).flatten(0, 1)"


@pytest.mark.parametrize(
    ("joined", "divided", "is_wrong"),
    [
        (TURNS, "*z.chunk(2)", True),
        ("torch.stack((a, b), 1).view(-1, 3, 96, 96)", "*torch.chunk(z, 2)", True),
        ("torch.cat([a, b], dim=0)", "z[0::2], z[1::2]", True),
        ("torch.cat([a, b])", "z[::2], z[1::2]", True),
        (TURNS, "z[0::2], z[1::2]", False),
        ("torch.cat([a, b])", "*z.chunk(2)", False),
        ("torch.stack([a, b]).flatten(0, 1)", "*z.chunk(2)", False),
        ("torch.cat([a, b], dim=1)", "z[0::2], z[1::2]", False),
    ],
)
def test_views_are_divided_as_joined(joined: str, divided: str, is_wrong: bool) -> None:
    assert ("order of views" in kinds(VIEWS.format(joined, divided))) == is_wrong
