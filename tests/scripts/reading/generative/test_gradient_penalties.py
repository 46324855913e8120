"""Axes of gradient penalties."""

import pytest

from tests.scripts.reading.found import kinds

PENALTY = """
def penalty(critic, real, fake):
    eps = torch.rand(len(real), 1, 1, 1)
    mixed = (eps * real + (1 - eps) * fake).requires_grad_()
    grad{} torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True){}
    {}
    return ((norm - 1) ** 2).mean()
"""


@pytest.mark.parametrize(
    ("assign", "index", "line"),
    [
        (" =", "[0]", "norm = grad.norm(2, dim=1)"),
        (",=", "", "norm = grad.norm(dim=1)"),
        (" =", "[0]", "norm = torch.linalg.vector_norm(grad, dim=1)"),
    ],
)
def test_penalties_of_each_pixel(assign: str, index: str, line: str) -> None:
    assert kinds(PENALTY.format(assign, index, line)) == {"penalty of pixels"}


@pytest.mark.parametrize(
    "line",
    [
        "norm = grad.flatten(1).norm(2, dim=1)",
        "grad = grad.view(len(real), -1)\n    norm = grad.norm(2, dim=1)",
        "norm = grad.norm(2, dim=(1, 2, 3))",
    ],
)
def test_penalties_of_each_sample(line: str) -> None:
    assert not kinds(PENALTY.format(" =", "[0]", line))
