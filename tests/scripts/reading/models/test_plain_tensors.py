"""Tensors of modules that stay behind on a device."""

import pytest

from tests.scripts.reading.found import kinds

KEPT = """
class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        {}
    def forward(self, x):
        return x + self.pe[: x.size(1)]
device = "cuda" if torch.cuda.is_available() else "cpu"
net = Net(8).to(device)
"""


@pytest.mark.parametrize(
    "line",
    [
        "self.pe = torch.zeros(n, 4)",
        "table = torch.arange(n).float()\n        self.pe = table",
        "self.pe = torch.tril(torch.ones(n, n)).view(1, n, n)",
    ],
)
def test_tensors_that_stay_behind(line: str) -> None:
    assert kinds(KEPT.format(line)) == {"plain tensor"}


@pytest.mark.parametrize(
    "text",
    [
        KEPT.format('self.register_buffer("pe", torch.zeros(n, 4))'),
        KEPT.format("self.pe = nn.Parameter(torch.zeros(n, 4))"),
        KEPT.format("self.pe = torch.zeros(n, 4)").replace("x.size(1)]", "x.size(1)].to(x.device)"),
        KEPT.format("self.pe = torch.zeros(n, 4)").replace(".to(device)", ""),
    ],
)
def test_tensors_that_move_along(text: str) -> None:
    assert not kinds(text)
