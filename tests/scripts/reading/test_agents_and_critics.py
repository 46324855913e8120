"""Exploration, episodes, goals and critics in sources."""

import pytest

from holter.scripts.reading import read


def kinds(text: str) -> set[str]:
    return {pattern.kind for pattern in read(text)}


ACTS = [
    """
def act(s):
    if random.random() {} eps:
        return env.action_space.sample()
    return q(s).argmax().item()
""",
    """
class A:
    def act(self, s):
        if np.random.rand() {} self.epsilon:
            a = random.randrange(4)
        else:
            a = self.q(s).max(1)[1]
        return a
""",
    """
for t in range(9):
    a = random.choice(acts) if random.random() {} epsilon_at(t) else int(np.argmax(table[s]))
""",
    """
def act(s, step):
    if np.random.uniform(0, 1) {} eps_t:
        return torch.randint(4, (1,))
    with torch.no_grad():
        return q(s).argmax(1)
""",
]


@pytest.mark.parametrize("act", ACTS)
def test_random_actions_are_taken_below_epsilon(act: str) -> None:
    assert "random above epsilon" in kinds(act.format(">") + "act(s)")
    assert "random above epsilon" not in kinds(act.format("<") + "act(s)")


def test_greedy_actions_above_epsilon_are_right() -> None:
    text = "def act(s):\n    if random.random() > eps:\n        return q(s).argmax()\n"
    assert not kinds(text + "    return random.randrange(4)\nact(s)")


LOOP = """
env = gym.make("LunarLander-v3")
obs, _ = env.reset()
for step in range(1000):
    next_obs, reward, terminated, truncated, _ = env.step(act(obs))
    obs = next_obs
    if {}:
        {}
"""


def test_a_reset_gives_the_first_observation() -> None:
    assert "dropped observation" in kinds(LOOP.format("terminated or truncated", "env.reset()"))
    assert not kinds(LOOP.format("terminated or truncated", "obs, _ = env.reset()"))
    assert not kinds(LOOP.format("terminated or truncated", "env.reset(); obs = env.state"))
    assert not kinds(LOOP.format("terminated or truncated", "env.reset(); break"))
    assert not kinds(LOOP.format("terminated or truncated", "env.reset(); obs = screen(env)"))


def test_time_limits_end_an_episode() -> None:
    assert "unread time limit" in kinds(LOOP.format("terminated", "obs, _ = env.reset()"))
    own = LOOP.replace("gym.make", "Grid").format("terminated", "obs, _ = env.reset()")
    assert not kinds(own)


REPLAY = """
class Replay:
    def __init__(self, capacity):
        self.data = deque(maxlen=capacity)
    def push(self, *row):
        self.data.append(row)
    def sample(self, n):
        {}
"""


@pytest.mark.parametrize("part", ["list(self.data)[-n:]", "self.data[:n]", "self.data[-n:]"])
def test_batches_of_a_replay_buffer_are_drawn(part: str) -> None:
    assert "latest transitions" in kinds(REPLAY.format(f"return zip(*{part})"))
    assert not kinds(REPLAY.format(f"random.shuffle(self.data); return zip(*{part})"))
    assert not kinds(REPLAY.format("return random.sample(self.data, n)"))


GOAL = """
def update(batch):
    s, a, r, s2, done = batch
    value = q(s).gather(1, a[:, None]).squeeze(1)
    {}
    loss = F.smooth_l1_loss({})
    loss.backward()
    opt.step()
update(rows)
"""


@pytest.mark.parametrize(
    ("goal", "loss"),
    [
        ("y = r + gamma * (1 - done) * q(s2).max(1).values", "value, y"),
        ("best = q(s2).max(dim=1)[0]\n    y = r + gamma * best * (1 - done)", "value, y"),
        ("n = torch.max(q(s2), 1)[0]", "value, r + gamma * n * (1 - done)"),
    ],
)
def test_goals_have_no_graph(goal: str, loss: str) -> None:
    assert "gradient through the goal" in kinds(GOAL.format(goal, loss))
    assert not kinds(GOAL.format(goal.replace("q(s2)", "q(s2).detach()"), loss))
    assert not kinds(GOAL.format(goal.replace("q(s2)", "target(s2)"), loss))
    cut = "with torch.no_grad():\n        " + goal.replace("\n", "\n    ")
    assert not kinds(GOAL.format(cut, loss))


FIXED = """
target = copy.deepcopy(q)
for step in range(100):
    s, a, r, s2, done = replay.sample(32)
    with torch.no_grad():
        y = r + gamma * (1 - done) * target(s2).max(1).values
    loss = F.mse_loss(q(s).gather(1, a).squeeze(1), y)
    loss.backward()
    {}
"""


def test_target_networks_are_updated() -> None:
    assert "fixed target" in kinds(FIXED.format("opt.step()"))
    for right in (
        "target.load_state_dict(q.state_dict())",
        "soft_update(q, target, 0.01)",
        "for p, t in zip(q.parameters(), target.parameters()): t.data.lerp_(p, 0.1)",
    ):
        assert not kinds(FIXED.format(right))


def test_time_limits_are_no_ends_of_value() -> None:
    text = FIXED + "\n    memory.push((s, a, r, s2, {}))"
    right = "target.load_state_dict(q.state_dict())"
    assert "time limit as end" in kinds(text.format(right, "terminated or truncated"))
    assert not kinds(text.format(right, "terminated"))
    assert not kinds(text.format(right, "float(terminated)"))


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
