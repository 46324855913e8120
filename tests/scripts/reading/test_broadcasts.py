"""Shapes that broadcast, norms, losses taken twice and rounded positions in sources."""

import pytest

from tests.scripts.reading.found import kinds

VALUES = """
def update(q, target, s, a, r, s2, done):
    value = {}
    with torch.no_grad():
        wanted = {}
    return {}
"""
MAXIMUM = "r + 0.99 * (1 - done) * target(s2).max(1)[0]"


@pytest.mark.parametrize(
    ("value", "wanted", "loss"),
    [
        ("q(s).gather(1, a.unsqueeze(1))", MAXIMUM, "F.smooth_l1_loss(value, wanted)"),
        ("q(s).gather(1, a[:, None])", "r + target(s2).max(dim=1).values",
         "F.mse_loss(value, wanted.detach())"),
        ("torch.gather(q(s), 1, a.view(-1, 1))", "r + 0.9 * target(s2).amax(1)",
         "criterion(wanted, value)"),
    ],
)  # fmt: skip
def test_gathered_columns_beside_rows(value: str, wanted: str, loss: str) -> None:
    assert kinds(VALUES.format(value, wanted, loss)) == {"column beside row"}


@pytest.mark.parametrize(
    ("value", "wanted", "loss"),
    [
        ("q(s).gather(1, a.unsqueeze(1)).squeeze(1)", MAXIMUM, "F.mse_loss(value, wanted)"),
        ("q(s).gather(1, a.unsqueeze(1))", MAXIMUM, "F.mse_loss(value, wanted.unsqueeze(1))"),
        ("q(s).gather(1, a.unsqueeze(1))", "r + target(s2).max(1, keepdim=True)[0]",
         "F.mse_loss(value, wanted)"),
        ("q(s).gather(1, a.unsqueeze(1))", MAXIMUM, "F.mse_loss(value.squeeze(1), wanted)"),
    ],
)  # fmt: skip
def test_gathered_columns_that_are_squeezed(value: str, wanted: str, loss: str) -> None:
    assert not kinds(VALUES.format(value, wanted, loss))


COLUMN = """
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
loss_fn = nn.SmoothL1Loss()
model.train()
{}
loss.backward()
valid = (model(xv).squeeze(-1) - yv).abs().mean()
"""


@pytest.mark.parametrize(
    "text",
    [
        "loss = loss_fn(model(x), y)",
        "pred = model(x)\nloss = loss_fn(pred, y)",
        "out = model(x)\nloss = F.mse_loss(out, y[rows])",
    ],
)
def test_outputs_that_are_squeezed_elsewhere(text: str) -> None:
    assert kinds(COLUMN.format(text)) == {"column beside row"}


@pytest.mark.parametrize(
    "text",
    [
        "loss = loss_fn(model(x).squeeze(1), y)",
        "pred = model(x)\nloss = loss_fn(pred[:, 0], y)",
        "loss = loss_fn(model(x), y.unsqueeze(1))",
        "loss = loss_fn(model(x), y[:, None])",
    ],
)
def test_outputs_that_are_squeezed(text: str) -> None:
    assert not kinds(COLUMN.format(text))


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


@pytest.mark.parametrize(
    "text",
    [
        "loss = (F.cross_entropy(z, y) + F.cross_entropy(z, y.t())) / 2",
        "y = torch.arange(n)\na = F.cross_entropy(z, y)\nb = F.cross_entropy(z, y)\nloss = a + b",
        "loss = 0.5 * (criterion(z, y) + criterion(z, y.T))",
    ],
)
def test_directions_that_are_taken_twice(text: str) -> None:
    assert kinds(text) == {"same direction"}


@pytest.mark.parametrize(
    "text",
    [
        "y = torch.arange(n)\nloss = (F.cross_entropy(z, y) + F.cross_entropy(z.t(), y)) / 2",
        "loss = F.cross_entropy(z, y) + F.cross_entropy(z, other)",
        "loss = F.cross_entropy(z, y) + F.cross_entropy(z, y, label_smoothing=0.1)",
    ],
)
def test_directions_that_differ(text: str) -> None:
    assert not kinds(text)


@pytest.mark.parametrize(
    "text",
    [
        "f = torch.exp(-math.log(10000.0) * torch.arange(half, device=d) // half)",
        "f = 10000 ** (torch.arange(0, dim, 2).float() // dim)",
        "i = torch.arange(half)\nf = 1.0 / 10000 ** (i // half)",
    ],
)
def test_positions_that_are_rounded(text: str) -> None:
    assert kinds(text) == {"rounded frequencies"}


@pytest.mark.parametrize(
    "text",
    [
        "f = torch.exp(-math.log(10000.0) * torch.arange(half) / half)",
        "row = torch.arange(height * width) // width",
        "f = 10000 ** (2 * (torch.arange(dim) // 2) / dim)",
    ],
)
def test_positions_that_are_divided(text: str) -> None:
    assert not kinds(text)


@pytest.mark.parametrize(
    "text",
    [
        "pe[:, 0::2] = torch.sin(a)\npe[:, 0::2] = torch.cos(a)",
        "pe[0, :, 1::2] = np.sin(a)\npe[0, :, 1::2] = np.cos(a)",
        "self.pe[:, ::2] = a.sin()\nself.pe[:, ::2] = a.cos()",
    ],
)
def test_waves_that_overwrite_each_other(text: str) -> None:
    assert kinds(text) == {"overwritten half"}


@pytest.mark.parametrize(
    "text",
    [
        "pe[:, 0::2] = torch.sin(a)\npe[:, 1::2] = torch.cos(a)",
        "pe[:, 0::2] = torch.sin(a)\npe[:, 0::2] = torch.sin(b)",
        "x = torch.sin(a)\nx = torch.cos(a)",
    ],
)
def test_waves_beside_each_other(text: str) -> None:
    assert not kinds(text)


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


COLLATE = """
def collate(batch):
    seqs = [encode(text) for text, _ in batch]
    {}
    labels = torch.tensor([label for _, label in batch])
    return pad(seqs), labels
"""


@pytest.mark.parametrize(
    "line",
    [
        "seqs.sort(key=len, reverse=True)",
        "seqs.sort(key=lambda s: -len(s))",
        "seqs.sort(reverse=True, key=len)",
    ],
)
def test_sequences_that_are_sorted_in_place(line: str) -> None:
    assert kinds(COLLATE.format(line)) == {"sorted alone"}


@pytest.mark.parametrize(
    "line",
    ["batch.sort(key=lambda row: len(row[0]))", "lengths = sorted(map(len, seqs))", "seqs.reverse"],
)
def test_batches_that_are_sorted_whole(line: str) -> None:
    assert "sorted alone" not in kinds(COLLATE.format(line))
