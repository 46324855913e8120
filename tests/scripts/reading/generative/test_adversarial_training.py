"""Labels, parameters and noise of critics, and ranges of images."""

import pytest

from holter.scripts.reading import read


def kinds(text: str) -> set[str]:
    return {pattern.kind for pattern in read(text)}


CRITIC = """
bce = nn.BCEWithLogitsLoss()
for real, _ in loader:
    n = len(real)
    ones, zeros = torch.ones(n, 1), torch.zeros(n, 1)
    fake = G(torch.randn(n, 64))
    loss_d = bce(D(real), {}) + bce(D(fake.detach()), {})
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()
    loss_g = {}
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
"""


@pytest.mark.parametrize(
    ("real", "fake", "own", "kind"),
    [
        ("ones", "ones", "bce(D(fake), ones)", "labels of critic"),
        ("torch.full((n, 1), 0.9)", "ones", "bce(D(fake), ones)", "labels of critic"),
        ("ones * (1 - 0.9)", "zeros", "bce(D(fake), ones)", "labels of critic"),
        ("ones - 0.1", "torch.zeros_like(ones)", "bce(D(fake), ones)", ""),
        ("ones * 0.9", "zeros + 0.1", "bce(D(fake), ones)", ""),
        ("ones * 0.9", "zeros", "bce(D(fake), zeros)", "label of generator"),
        ("ones * 0.9", "zeros + 0.1", "bce(D(fake), torch.zeros(n, 1))", "label of generator"),
        ("ones * 0.9", "zeros", "-bce(D(fake), zeros)", ""),
        ("zeros", "ones", "bce(D(fake), zeros)", ""),
    ],
)
def test_labels_of_a_critic(real: str, fake: str, own: str, kind: str) -> None:
    assert kinds(CRITIC.format(real, fake, own)) == ({kind} if kind else set())


def test_labels_that_are_filled() -> None:
    text = """
for data, _ in loader:
    label = torch.full((64,), 1.0)
    err_real = criterion(netD(real).view(-1), label)
    err_real.backward()
    fake = netG(torch.randn(64, 100, 1, 1))
    {}
    err_fake = criterion(netD(fake.detach()).view(-1), label)
    err_fake.backward()
    optD.step()
criterion = nn.BCELoss()
"""
    assert kinds(text.format("label.fill_(0.0)")) == set()
    assert kinds(text.format("pass")) == {"labels of critic"}


OPTIMIZERS = "opt_g = torch.optim.Adam({}, lr=1e-4)\nopt_d = torch.optim.Adam(D.parameters())\n"


@pytest.mark.parametrize(
    "given",
    [
        "list(G.parameters()) + list(D.parameters())",
        "itertools.chain(G.parameters(), D.parameters())",
        "[*G.parameters(), *D.parameters()]",
    ],
)
def test_generators_do_not_move_their_critic(given: str) -> None:
    assert "critic moved by generator" in kinds(OPTIMIZERS.format(given))
    assert not kinds(OPTIMIZERS.format("G.parameters()"))
    assert not kinds(OPTIMIZERS.format(given.replace("D.", "E.")))
    info = "opt_info = torch.optim.Adam(chain(G.parameters(), D.parameters()))\n"
    assert not kinds(OPTIMIZERS.format("G.parameters()") + info)


NOISE = """
z = torch.randn(64, 100)
for real, _ in loader:
    {}
    fake = G(z)
    loss = bce(D(fake), torch.ones(64, 1))
    loss.backward()
    opt_g.step()
with torch.no_grad():
    {}
"""


def test_noise_is_drawn_in_every_step() -> None:
    assert kinds(NOISE.format("pass", "show(G(z))")) == {"same noise in every step"}
    for right in ("z = torch.randn(64, 100)", "z.normal_()", "z = torch.randn_like(z)"):
        assert not kinds(NOISE.format(right, "show(G(z))"))


def test_noise_is_of_one_distribution() -> None:
    uniform = "z = torch.rand(64, 100)"
    assert "another noise" in kinds(NOISE.format(uniform, "show(G(torch.randn(8, 100)))"))
    assert not kinds(NOISE.format(uniform, "show(G(torch.rand(8, 100)))"))


IMAGES = """
class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(64, 784), {})
    def forward(self, z):
        return self.main(z).view(-1, 1, 28, 28)
class Discriminator(nn.Module):
    pass
tf = transforms.Compose([transforms.ToTensor(){}])
gen = Generator()
save_image({}, "samples.png")
"""
HALF = ", transforms.Normalize((0.5,), (0.5,))"


@pytest.mark.parametrize(
    ("end", "scale", "saved", "kind"),
    [
        ("nn.Sigmoid()", HALF, "x", "range of generator"),
        ("nn.Tanh()", "", "x", "range of generator"),
        ("nn.Sigmoid()", ", transforms.Normalize([0.5] * 3, [0.5] * 3)", "x", "range of generator"),
        ("nn.Tanh()", HALF, "gen(z)", "unscaled images"),
        ("nn.Tanh()", HALF, "gen(z).cpu()[:64]", "unscaled images"),
        ("nn.Tanh()", HALF, "gen(z).view(-1, 1, 28, 28)", "unscaled images"),
        ("nn.Tanh()", HALF, "gen(z) * 0.5 + 0.5", ""),
        ("nn.Sigmoid()", "", "gen(z)", ""),
        ("nn.Tanh()", ", transforms.Lambda(lambda x: x * 2 - 1)", "gen(z) / 2 + 0.5", ""),
    ],
)
def test_ranges_of_images(end: str, scale: str, saved: str, kind: str) -> None:
    assert kinds(IMAGES.format(end, scale, saved)) == ({kind} if kind else set())
