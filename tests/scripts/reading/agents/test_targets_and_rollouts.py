"""Targets, rollouts, surrogates and exploration of reinforcement learning in sources."""

import pytest

from holter.scripts.reading import read

LEARN = """
def learn(self, batch):
    obs, action, reward, next_obs, done = batch
    q = self.q(obs).gather(1, action.unsqueeze(1)).squeeze(1)
    with torch.no_grad():
        {}
    loss = F.mse_loss({}, y)
    loss.backward()
learn(agent, rows)
"""
MAX = "next_q = self.target(next_obs).max(1)[0]\n        y = reward + self.gamma * {} * next_q"
DOUBLE = """best = self.q({}).argmax(1, keepdim=True)
        next_q = self.target(next_obs).gather(1, best).squeeze(1)
        y = reward + 0.9 * next_q * gamma * (1 - done)"""
COLUMN = "self.q(obs).gather(1, action.unsqueeze(1))"
RIGHT = MAX.format("(1 - done)")
ACT = """
for step in range(1000):
    action = agent.act(obs)
    next_obs, reward, done, _ = env.step(action)
    {}
    if done:
        obs = env.reset()
"""
GAE = """
def collect(env, net):
    for t in range(128):
        dones[t] = done
        obs, reward, done, _ = env.step(act(obs))
        if done:
            obs = env.reset()
            {}
    gae = 0.0
    for t in reversed(range(128)):
        delta = rewards[t] + gamma * values[t + 1] * (1 - dones[t]) - values[t]
        gae = {}
        adv[t] = gae
collect(env, net)
"""
OPEN, CLOSED = "delta + gamma * lam * gae", "delta + gamma * lam * (1 - dones[t]) * gae"
NETS = """
class QNet(nn.Module):
    pass
class Agent:
    def __init__(self):
        self.q = QNet().to(device)
        {}
        self.optimizer = torch.optim.Adam(self.q.parameters())
    def sync(self):
        self.target.load_state_dict(self.q.state_dict())
agent = Agent()
agent.step()
{}
"""
RING = """
class Replay:
    def add(self, row):
        self.rows[self.pos] = row
        self.pos = (self.pos + 1) % self.size
        self.count = min(self.count + 1, self.size)
    def sample(self, n):
        return self.rows[np.random.{}]
"""
PPO = """
ratio = (new - old).exp()
{}
loss = policy_loss {} 0.01 * dist.entropy().mean()
loss.backward()
"""
PLUS = "policy_loss = -torch.{}(ratio * adv, ratio.clamp(1 - eps, 1 + eps) * adv).mean()"
MINUS = "first = -adv * ratio\nsecond = -adv * ratio.clamp(0.8, 1.2)\n"
MINUS += "policy_loss = torch.{}(first, second).mean()"
NORMAL = "adv = (adv - adv.mean()) / (adv.std() + 1e-8)\n"
EPSILON = "def epsilon(step):\n    frac = {}\n    return eps_start + frac * (eps_end - eps_start)\n"
EPSILON += "epsilon(9)\n"

FOUND = {
    "bootstrap at ends": (
        LEARN.format(MAX.format("done"), "q"),
        LEARN.format(MAX.format("done.float()"), "q"),
        LEARN.format("v = net(next_obs).max(1)[0]\n        "
                     "y = torch.where(done, reward + gamma * v, reward)", "q"),
        "def target(b):\n    return b['reward'] + gamma * b['next_q'] * b['done']\ntarget(b)\n",
        "if done:\n    y = reward + gamma * next_q\nelse:\n    y = reward\n",
    ),
    "action of this state": (
        LEARN.format(DOUBLE.format("obs"), "q"),
        LEARN.format(DOUBLE.format("obs").replace("best =", "a ="), "q").replace("best)", "a)"),
        LEARN.format(DOUBLE.format("obs").replace(".argmax(1, keepdim=True)",
                                                  ".max(1, keepdim=True)[1]"), "q"),
    ),
    "value of this state": (
        LEARN.format(RIGHT.replace("next_obs", "obs"), "q"),
        ("def target(reward, obs, next_obs, done):\n"
        "    return reward + gamma * critic(obs).squeeze(1) * (1 - done)\ntarget(*rows)\n"),
        "def f(r, s, s2, d):\n    v = critic(s)\n    return r + gamma * (1 - d) * v\nf(*rows)\n",
    ),
    "value of the next state": (
        LEARN.format(RIGHT, "q").replace("self.q(obs)", "self.q(next_obs)"),
        LEARN.format(RIGHT, "q").replace("self.q(obs)", "q_net(next_obs)"),
        LEARN.format(RIGHT, "q").replace("self.q(obs)", "self.q(next_obs.float())"),
    ),
    "column beside row": (
        LEARN.format(RIGHT, COLUMN),
        LEARN.format(RIGHT, COLUMN.replace("unsqueeze(1)", "view(-1, 1)")),
        LEARN.format(RIGHT, COLUMN).replace("F.mse_loss", "nn.functional.smooth_l1_loss"),
        LEARN.format(RIGHT.replace("max(1)[0]", "max(dim=1).values"), COLUMN),
    ),
    "overwritten observation": (
        ACT.format("obs = next_obs\n    replay.add(obs, action, reward, next_obs, done)"),
        ACT.format("obs = next_obs\n    memory.push((obs, action, reward, next_obs, done))"),
        ACT.format("obs = next_obs.copy()\n    buffer.append(Row(obs, action, next_obs))"),
        ("for _ in range(9):\n    obs, reward, done, _ = env.step(action)\n"
        "    memory.push(obs, action, reward, obs, done)\n"),
    ),
    "advantage across episodes": (
        GAE.format("pass", OPEN),
        GAE.format("pass", "delta + args.gamma * args.gae_lambda * gae"),
        GAE.format("pass", "gamma * lam * gae + delta"),
    ),
    "normalised returns": (
        NORMAL + "returns = adv + values\n",
        NORMAL + "targets = values[:-1] + adv\n",
        "adv = (adv - torch.mean(adv)) / torch.std(adv)\nret = adv + val_buf\n",
    ),
    "same network": (
        NETS.format("self.target = self.q", "agent.sync()"),
        NETS.format("self.target = self.q", "agent.sync()").replace("target", "q_target"),
        NETS.format("self.target = self.q", "agent.sync()").replace("target", "target_net"),
    ),
    "target never copied": (
        NETS.format("self.target = QNet()", ""),
        NETS.format("self.target = QNet()", "").replace("sync", "update_target"),
        NETS.format("self.target = QNet().to(device)", "").replace("sync", "hard_update"),
    ),
    "sampled before the pointer": (
        RING.format("randint(0, self.pos, n)"),
        RING.format("randint(self.pos, size=n)"),
        RING.format("choice(self.pos, n)"),
    ),
    "optimistic bound": (
        PPO.format(PLUS.format("max"), "-"),
        PPO.format(PLUS.format("maximum"), "-"),
        PPO.format(MINUS.format("min"), "-"),
    ),
    "reversed entropy": (
        PPO.format(PLUS.format("min"), "+"),
        PPO.format(PLUS.format("minimum"), "+"),
        PPO.format(MINUS.format("max"), "+"),
    ),
    "constant ratio": (
        "ratio = torch.exp(dist.log_prob(a) - dist.log_prob(a))\n",
        "logp = dist.log_prob(a)\nold = dist.log_prob(a)\nratio = (logp - old).exp()\n",
        "ratio = torch.exp(log_probs - log_probs)\n",
    ),
    "reversed exploration": (
        EPSILON.format("max(0.0, 1.0 - step / 1000)"),
        EPSILON.format("math.exp(-step / 1000)"),
        EPSILON.format("min(1.0, step / 1000)").replace(
            "eps_start + frac * (eps_end - eps_start)", "eps_end + frac * (eps_start - eps_end)"),
    ),
}  # fmt: skip
SILENT = (
    LEARN.format(RIGHT, "q"),
    LEARN.format(MAX.format("(~done)"), "q"),
    LEARN.format(MAX.format("not_done"), "q").replace("next_obs, done =", "next_obs, not_done ="),
    LEARN.format(MAX.format("done"), "q") + "replay.push(obs, action, reward, nxt, 1 - done)\n",
    LEARN.format(MAX.format("done"), "q") + "done = 0.0 if terminated else 1.0\n",
    LEARN.format(DOUBLE.format("next_obs"), "q"),
    LEARN.format(RIGHT, COLUMN).replace("mse_loss", "nll_loss"),
    LEARN.format(RIGHT + "\n        y = y.unsqueeze(1)", COLUMN),
    LEARN.format(RIGHT.replace("max(1)[0]", "max(1, keepdim=True)[0]"), COLUMN),
    ACT.format("replay.add(obs, action, reward, next_obs, done)\n    obs = next_obs"),
    ACT.format("obs = next_obs\n    print(obs, next_obs)"),
    ACT.format("obs = next_obs\n    total += reward"),
    GAE.format("pass", CLOSED),
    GAE.format("break", OPEN),
    GAE.format("pass", OPEN).replace("gae\n", "gae\n        gae = gae * masks[t]\n", 1),
    "returns = adv + values\n" + NORMAL,
    "std_adv = (adv - adv.mean()) / adv.std()\nreturns = adv + values\n",
    NETS.format("self.target = copy.deepcopy(self.q)", "agent.sync()"),
    NETS.format("self.target = QNet()", "agent.sync()"),
    NETS.format("self.target = QNet()", "for _ in range(9):\n"
                "    agent.target.load_state_dict(agent.q.state_dict())"),
    RING.format("randint(0, self.count, n)"),
    RING.format("randint(0, len(self), n)"),
    PPO.format(PLUS.format("min"), "-"),
    PPO.format(MINUS.format("max"), "-"),
    "logp = dist.log_prob(a)\nratio = torch.exp(logp - logp.detach())\n",
    "ratio = torch.exp(dist.log_prob(a) - old_dist.log_prob(a))\n",
    EPSILON.format("min(1.0, step / 1000)"),
    EPSILON.format("share"),
)  # fmt: skip


@pytest.mark.parametrize(("kind", "text"), [(k, t) for k, all_ in FOUND.items() for t in all_])
def test_found(kind: str, text: str) -> None:
    assert {pattern.kind for pattern in read(text)} == {kind}


@pytest.mark.parametrize("text", SILENT)
def test_silent(text: str) -> None:
    assert read(text) == []
