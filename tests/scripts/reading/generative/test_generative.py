"""Autoencoders, diffusion, flows and adversaries in sources, and twins without a pattern."""

from textwrap import dedent, indent

import pytest

from holter.scripts.reading import read

TABLES = (
    "betas = torch.linspace(1e-4, 0.02, 100)\nalphas = 1 - betas\nbars = torch.cumprod(alphas, 0)\n"
)


def function(body: str, arguments: str = "x, t, noise") -> str:
    """A function that is used."""
    return f"def f({arguments}):\n{indent(dedent(body), '    ')}\nf(a, b, c)\n"


def module(body: str, name: str = "Layer") -> str:
    """A module with these methods."""
    return f"class {name}(nn.Module):\n{indent(dedent(body), '    ')}\n"


def elbo(divergence: str) -> str:
    """A loss with this divergence."""
    return f"kl = {divergence}\nloss = rec + kl\nloss.backward()\n"


def sampled(body: str, loop: str = "reversed(range(100))") -> str:
    """Steps from noise to data."""
    start = f"x = torch.randn(4, 2)\nfor i in {loop}:\n    eps = net(x, i)\n"
    return TABLES + function(f"{start}    {body}\nreturn x", "net, n, m")


def ema(update: str, loop: str = "e, p in zip(ema.parameters(), net.parameters())") -> str:
    """An average of weights."""
    return f"decay = 0.999\nfor x in loader:\n    for {loop}:\n        {update}\n"


LOGITS = (
    "class Net(nn.Module):\n    def decode(self, z):\n        return self.layers(z)\n"
    "model = Net()\n"
    "loss = F.binary_cross_entropy_with_logits(model.decode(z), x)\nloss.backward()\n"
    "shown = torch.sigmoid(model.decode(y))\n"
)
FLOW = (
    "class Flow(nn.Module):\n    def forward(self, x):\n        total = 0\n"
    "        for layer in self.layers:\n            x, log_det = layer(x)\n"
    "            total = total + log_det\n        return x, total\n"
    "    def sample(self, z):\n        for layer in {}:\n            z = {}\n        return z\n"
)
COUPLING = (
    "class Coupling(nn.Module):\n    def __init__(self, dim, mask):\n"
    "        super().__init__()\n        self.net = nn.Linear(dim, 2 * dim)\n"
    "        self.mask = mask\n"
    "    def forward(self, x):\n        s, t = self.net({}).chunk(2, dim=1)\n"
    "        return x * torch.exp(s) + t, s.sum(1)\n"
)
HALVES = (
    "def forward(self, x):\n    x1, x2 = x.chunk(2, dim=1)\n"
    "    s, t = self.net({}).chunk(2, dim=1)\n"
    "    y = x2 * torch.exp(s) + t\n    return torch.cat([x1, y], 1), s.sum(1)\n"
)
STEPS = (
    "opt_g = Adam(G.parameters())\nopt_d = Adam(D.parameters())\nfor real in loader:\n    {}\n"
    "    d_loss = {}\n    opt_d.zero_grad()\n    d_loss.backward()\n    opt_d.step()\n"
    "    g_loss = {}\n    opt_g.zero_grad()\n    g_loss.backward()\n    opt_g.step()\n"
)
FAKE = "fake = G(torch.randn(8, 4))"
CRITIC = "D(fake.detach()).mean() - D(real).mean()"
BCE = "F.binary_cross_entropy_with_logits(D({}), torch.{}_like(s))"
PENALTY = (
    "def penalty(critic, real, fake):\n    share = torch.rand(len(real), 1, 1, 1)\n"
    "    x = (share * real + (1 - share) * fake).requires_grad_(True)\n"
    "    grad = torch.autograd.grad(critic(x).sum(), x{})[0]\n    {}\n"
    "    return ((norm - 1) ** 2).mean()\npenalty(a, b, c)\n"
)
GRAPH = ", create_graph=True"
NORM = "norm = grad.flatten(1).norm(2, dim=1)"
OPTIMIZERS = (
    "gen, critic = Gen().to(device), Critic().to(device)\n"
    "class Gen(nn.Module):\n    pass\nclass Critic(nn.Module):\n    pass\n"
    "opt_g = torch.optim.Adam({}.parameters(), lr=1e-4)\n"
    "opt_c = torch.optim.Adam({}.parameters(), lr=1e-4)\nopt_g.step()\nopt_c.step()\n"
)

FOUND = {
    "variance as deviation": (
        function("std = logvar.exp()\nreturn mu + std * torch.randn_like(std)", "mu, logvar, x"),
        function("eps = torch.randn_like(mu)\nreturn mu + torch.exp(log_var) * eps",
                 "mu, log_var, x"),
        module("def forward(self, x):\n    mu, lv = self.body(x)\n"
               "    sigma = torch.exp(lv)\n    return Normal(mu, sigma).rsample()"),
        function("sigma = torch.exp(logvar)\nreturn mu + torch.randn_like(mu).mul(sigma)",
                 "mu, logvar, x"),
    ),
    "wrong divergence": (
        elbo("-0.5 * torch.sum(1 + logvar + mu.pow(2) - logvar.exp())"),
        elbo("0.5 * (mu ** 2 + torch.exp(lv) + lv - 1).sum(1).mean()"),
        elbo("-0.5 * torch.mean(1 + log_var - mu - log_var.exp())"),
        elbo("-0.5 * (1 + logvar - mu ** 2 - torch.exp(0.5 * logvar)).sum(1).mean()"),
    ),
    "logits as pixels": (
        LOGITS + "image = model.decode(z).clamp(0, 1)\n",
        LOGITS + "image = torch.clamp(model.decode(z), min=0, max=1)\n",
        LOGITS + "save_image(model.decode(z), 'x.png')\n",
    ),
    "missing root": (
        TABLES + function("a = bars[t].view(-1, 1)\nreturn a.sqrt() * x + (1 - a) * noise"),
        TABLES + function("return bars[t] * x + torch.sqrt(1 - bars[t]) * noise"),
        TABLES + function("a = bars[t]\nreturn a * x + (1 - a) * noise"),
        TABLES + "root = torch.sqrt(bars)\nrest = 1 - bars\n"
        + function("return extract(root, t, x) * x + extract(rest, t, x) * noise"),
        TABLES + function("return (x - (1 - bars[t]) * noise) / bars[t] ** 0.5"),
        ("class D:\n    def __init__(self):\n        betas = torch.linspace(0, 1, 9)\n"
        "        self.bars = (1 - betas).cumprod(0)\n    def add(self, x, t, eps):\n"
        "        a = self.bars[t][:, None]\n        return a.sqrt() * x + (1 - a) * eps\n"),
    ),
    "single step": (
        TABLES + function("a = alphas[t].view(-1, 1)\n"
                          "return a.sqrt() * x + (1 - a).sqrt() * noise"),
        TABLES + function("return torch.sqrt(alphas[t]) * x + torch.sqrt(1 - alphas[t]) * noise"),
        sampled("x = (x - (1 - alphas[i]) / (1 - alphas[i]).sqrt() * eps) / alphas[i].sqrt()"),
    ),
    "product in step": (
        sampled("x = (x - betas[i] / (1 - bars[i]).sqrt() * eps) / bars[i].sqrt()"),
        sampled("x = 1 / bars[i].sqrt() * (x - (1 - alphas[i]) / torch.sqrt(1 - bars[i]) * eps)"),
        sampled("x = (x - betas[i] * eps / (1 - bars[i]).sqrt()) / torch.sqrt(bars[i])"),
    ),
    "ascending steps": (
        sampled("x = (x - betas[i] / (1 - bars[i]).sqrt() * eps) / alphas[i].sqrt()", "range(100)"),
        sampled("x = x - betas[i] * eps", "tqdm(range(100))"),
        sampled("x0 = (x - (1 - bars[i]).sqrt() * eps) / bars[i].sqrt()\n"
        "    x = x0", "range(0, T)"),
    ),
    "rounded frequencies": (
        function("return torch.exp(-4.0 * torch.arange(half) // half)", "half, a, b"),
        function("k = torch.arange(0, d, 2) // d\nreturn 10000.0 ** k", "d, a, b"),
        "table = [1 / 10000 ** (i // 64) for i in range(64)]\n",
    ),
    "other target": (
        ("def loss(x0, t):\n    noise = torch.randn_like(x0)\n"
        "    return F.mse_loss(model(mix(x0, noise, t), t), noise)\nloss(a, b)\n"
        "def draw(x):\n    for t in range(9):\n        x0_pred = model(x, t)\n"
        "        x = step(x, x0_pred)\n    return x\ndraw(a)\n"),
    ),
    "unused time": (
        ("class Net(nn.Module):\n    def forward(self, x, t):\n        return self.body(x)\n"
        "net = Net()\n"
        "t = torch.randint(0, 100, (8,))\nnoise = torch.randn_like(x)\n"),
    ),
    "exchanged average": (
        ema("e.mul_(1 - decay).add_(p, alpha=decay)"),
        ema("e.data = (1 - decay) * e.data + decay * p.data"),
        ema("e.data.copy_((1 - decay) * e.data + decay * p.data)"),
        ema("e.lerp_(p, decay)"),
        ema("ema[k] = 0.001 * ema[k] + 0.999 * v", "k, v in net.state_dict().items()"),
        ema("t.data.mul_(tau).add_((1 - tau) * p.data)",
            "t, p in zip(target.parameters(), net.parameters())") + "tau = 0.005\n",
    ),
    "inverse in order": (
        FLOW.format("self.layers", "layer.inverse(z)"),
        FLOW.format("self.layers", "layer(z, reverse=True)"),
        FLOW.format("self.layers", "layer.inverse(z)[0]").replace("z = ", "z, _ = ").replace(
            "(z)[0]", "(z)"),
    ),
    "sees itself": (
        COUPLING.format("x"),
        module(HALVES.format("x2")),
        module(HALVES.format("x")),
    ),
    "same mask": (
        COUPLING.format("x * self.mask") + "layers = [Coupling(4, mask) for _ in range(8)]\n",
        COUPLING.format("x * self.mask")
        + "layers = []\nfor i in range(8):\n    layers.append(Coupling(4, mask=even))\n",
        COUPLING.format("self.mask * x")
        + "layers = nn.ModuleList(Coupling(4, base.clone()) for i in range(6))\n",
    ),
    "single constant": (
        "log_p = -0.5 * z.pow(2).sum(1) - 0.5 * math.log(2 * math.pi)\n",
        "log_p = -0.5 * (z ** 2).sum(dim=-1) - 0.5 * np.log(2 * np.pi) + log_det\n",
        "nll = 0.5 * torch.sum(z ** 2, dim=1) + 0.5 * math.log(2 * math.pi) - ld\n",
    ),
    "agreeing critic": (
        STEPS.format(FAKE, "D(real).mean() - D(fake.detach()).mean()", "-D(fake).mean()"),
        STEPS.format(FAKE, CRITIC, "D(fake).mean()"),
        STEPS.format(FAKE, BCE.format("real", "ones") + "+" + BCE.format("fake.detach()", "zeros"),
                     BCE.format("fake", "zeros")),
        STEPS.format(FAKE, "F.softplus(-D(real)).mean() + F.softplus(D(fake.detach())).mean()",
                     "F.softplus(D(fake)).mean()"),
    ),
    "cut generator": (
        STEPS.format(FAKE, CRITIC, "-D(fake.detach()).mean()"),
        STEPS.format("with torch.no_grad():\n        " + FAKE,
                     "D(fake).mean() - D(real).mean()", "-D(fake).mean()"),
        STEPS.format(FAKE + ".detach()", CRITIC.replace(".detach()", ""),
                     BCE.format("fake", "ones")),
    ),
    "copied optimizer": (
        OPTIMIZERS.format("gen", "gen"),
        OPTIMIZERS.format("critic", "critic"),
        OPTIMIZERS.format("gen", "gen").replace("opt_c", "optimizer_critic"),
    ),
    "penalty without graph": (
        PENALTY.format("", NORM),
        PENALTY.format(", retain_graph=True", NORM),
        PENALTY.format(", create_graph=False", NORM),
    ),
    "penalty of pixels": (
        PENALTY.format(GRAPH, "norm = grad.norm(2, dim=1)"),
        PENALTY.format(GRAPH, "norm = torch.norm(grad, 2, dim=1)"),
        PENALTY.format(GRAPH, "norm = torch.linalg.vector_norm(grad, dim=1)"),
    ),
    "penalty of batch": (
        PENALTY.format(GRAPH, "norm = grad.norm()"),
        PENALTY.format(GRAPH, "norm = grad.norm(2)"),
        PENALTY.format(GRAPH, "norm = torch.norm(grad)"),
    ),
    "batch statistics in critic": (
        "class Critic(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.norm = nn.BatchNorm2d(8)\ncritic = Critic()\n" + PENALTY.format(GRAPH, NORM),
    ),
}  # fmt: skip
SILENT = (
    function("std = (0.5 * logvar).exp()\n"
    "return mu + std * torch.randn_like(std)", "mu, logvar, x"),
    function("std = logvar.exp().sqrt()\nreturn mu + std * torch.randn_like(std)", "mu, logvar, x"),
    function("std = log_std.exp()\nreturn mu + std * torch.randn_like(std)", "mu, log_std, x"),
    function("var = torch.exp(logvar)\nreturn (x - mu) ** 2 / var + logvar", "mu, logvar, x"),
    function("logvar = 0.5 * raw\nreturn torch.randn_like(mu) * logvar.exp()", "mu, raw, x"),
    elbo("-0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())"),
    elbo("0.5 * (mu ** 2 + torch.exp(lv) - lv - 1).sum(1).mean()"),
    elbo("0.5 * (mu ** 2 + std ** 2 - 2 * torch.log(std) - 1).sum(1).mean()"),
    elbo("0.5 * (lp - lq - 1 + (lq.exp() + (mq - mp) ** 2) / lp.exp()).sum()"),
    LOGITS + "image = torch.sigmoid(model.decode(z)).clamp(0, 1)\n",
    ("class Net(nn.Module):\n    def decode(self, z):\n        return self.layers(z)\n"
    "model = Net()\n"
    "loss = F.mse_loss(model.decode(z), x)\nloss.backward()\n"
    "image = model.decode(z).clamp(0, 1)\n"),
    TABLES + function("a = bars[t].view(-1, 1)\nreturn a.sqrt() * x + (1 - a).sqrt() * noise"),
    TABLES + "root = bars.sqrt()\nrest = (1 - bars).sqrt()\n"
    + function("return root[t] * x + rest[t] * noise"),
    function("return (1 - t) * x + t * noise"),
    TABLES + function("return bars[t] ** 0.5 * x + (1 - bars[t]) ** 0.5 * noise"),
    TABLES + function("for i in range(100):\n"
    "    x = alphas[i].sqrt() * x + betas[i].sqrt() * noise\n"
                      "return x"),
    TABLES + function("mean = betas[t] * last[t].sqrt() / (1 - bars[t]) * x\n"
                      "return mean + (1 - last[t]) * alphas[t].sqrt() / (1 - bars[t]) * noise"),
    sampled("x = (x - betas[i] / (1 - bars[i]).sqrt() * eps) / alphas[i].sqrt()"),
    sampled("x0 = (x - (1 - bars[i]).sqrt() * eps) / bars[i].sqrt()\n    x = x0"),
    ("def draw(net):\n    x = torch.randn(4, 2)\n    for i in range(100):\n"
    "        x = x + net(x, i / 100) / 100\n    return x\ndraw(net)\n"),
    function("return torch.exp(-4.0 * torch.arange(half) / half)", "half, a, b"),
    "rows = torch.arange(2 * n) // n\n",
    ("def loss(x0, t):\n    noise = torch.randn_like(x0)\n"
    "    return F.mse_loss(model(mix(x0, noise, t), t), noise)\nloss(a, b)\n"
    "def draw(x):\n    for t in range(9):\n        eps = model(x, t)\n"
    "        x = step(x, eps)\n    return x\ndraw(a)\n"),
    ema("e.mul_(decay).add_(p, alpha=1 - decay)"),
    ema("e.lerp_(p, 1 - decay)"),
    ema("e.data = decay * e.data + (1 - decay) * p.data"),
    ema("t.data.mul_(1 - tau).add_(tau * p.data)",
        "t, p in zip(target.parameters(), net.parameters())") + "tau = 0.005\n",
    "for x in loader:\n    running = 0.1 * running + 0.9 * x\n",
    FLOW.format("reversed(self.layers)", "layer.inverse(z)"),
    FLOW.format("self.layers[::-1]", "layer.inverse(z)"),
    FLOW.format("self.tail", "layer(z)"),
    COUPLING.format("x * self.mask"),
    module(HALVES.format("x1")),
    module("def forward(self, x):\n    return x * torch.exp(self.log_scale), self.log_scale.sum()"),
    COUPLING.format("x * self.mask")
    + "layers = [Coupling(4, mask if i % 2 else 1 - mask) for i in range(8)]\n",
    COUPLING.format("x * self.mask")
    + "layers = []\nfor i in range(8):\n    layers += [Coupling(4, mask), Permute(4)]\n",
    COUPLING.format("x * self.mask")
    + "layers = []\nfor i in range(8):\n    layers.append(Coupling(4, mask))\n"
    "    mask = 1 - mask\n",
    "log_p = -0.5 * z.pow(2).sum(1) - 0.5 * d * math.log(2 * math.pi)\n",
    "log_p = -0.5 * (z.pow(2) + math.log(2 * math.pi)).sum(1)\n",
    "log_p = -0.5 * z.pow(2).sum(1) - math.log(2 * math.pi)\n",  # of two dimensions
    STEPS.format(FAKE, CRITIC, "-D(fake).mean()"),
    STEPS.format(FAKE, "D(real).mean() - D(fake.detach()).mean()", "D(fake).mean()"),
    STEPS.format(FAKE, BCE.format("real", "ones") + " + " + BCE.format("fake.detach()", "zeros"),
                 BCE.format("fake", "ones")),
    STEPS.format("with torch.no_grad():\n        " + FAKE, "D(fake).mean() - D(real).mean()",
                 "-D(G(torch.randn(8, 4))).mean()"),
    STEPS.format(FAKE, CRITIC, "compare(restored, fake.detach())").replace(
        "    g_loss", "    restored, code = D(fake)\n    g_loss"),
    OPTIMIZERS.format("gen", "critic"),
    "opt_a = torch.optim.Adam(net.parameters())\nopt_b = torch.optim.SGD(net.parameters())\n",
    PENALTY.format(GRAPH, NORM),
    PENALTY.format(GRAPH, "grad = grad.view(len(grad), -1)\n    norm = grad.norm(2, dim=1)"),
    PENALTY.format(GRAPH, "norm = grad.norm(2, dim=1)").replace("1, 1, 1)", "1)"),
    ("def attack(net, x):\n    grad = torch.autograd.grad(net(x).sum(), x)[0]\n"
    "    return x + 0.1 * grad / grad.norm()\nattack(a, b)\n"),
)  # fmt: skip


@pytest.mark.parametrize(("kind", "text"), [(k, t) for k, all_ in FOUND.items() for t in all_])
def test_found(kind: str, text: str) -> None:
    assert [pattern.kind for pattern in read(text)] == [kind]


@pytest.mark.parametrize("text", SILENT)
def test_silent(text: str) -> None:
    assert read(text) == []
