"""Exploration, resets, time limits, replay buffers and goals."""

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
