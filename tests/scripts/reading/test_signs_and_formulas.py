"""Signs, credit and formulas of objectives in sources, and near misses without a pattern."""

from textwrap import dedent, indent

import pytest

from holter.scripts.reading import read


def trained(loss: str, *before: str) -> str:
    """A script that minimises a loss."""
    lines = "".join(dedent(each).strip("\n") + "\n" for each in before)
    return f"{lines}{dedent(loss)}\noptimizer.zero_grad()\nloss.backward()\noptimizer.step()\n"


def defined(head: str, body: str) -> str:
    return f"def {head}:\n{indent(dedent(body).strip(), '    ')}\n"


ROLLOUT = """
for t in range(9):
    dist = Categorical(logits=policy(s))
    a = dist.sample()
    s, reward, done = env.step(a)
    log_probs.append(dist.log_prob(a))
    rewards.append(reward)
"""
PPO = """
advantages = returns - values
ratio = torch.exp({})
surrogate = torch.min(ratio * advantages, ratio.clamp(1 - eps, 1 + eps) * advantages)
"""
NEW = "new = policy(s).log_prob(a)"
STORED = "old = policy(s).log_prob(a).detach()\nfor epoch in range(4):\n    "
KL = "1 + logvar - mu.pow(2) - logvar.exp()"
TRIPLETS = "d_pos = (a - p).norm(dim=1)\nd_neg = (a - n).norm(dim=1)\n"
SCORES = "pos = (u * i).sum(-1)\nneg = (u * j).sum(-1)\n"
COUPLING = """
class Coupling(nn.Module):
    def forward(self, x):
        a, b = x.chunk(2, dim=1)
        s, t = self.net(a).chunk(2, dim=1)
        s = torch.tanh(s)
        return torch.cat([a, {}], dim=1), {}
flow = Coupling()
z, log_det = flow(x)
"""
COX = """
def cox(risk, time, event):
    {}
    risk, event = risk[order], event[order]
    return -((risk - {}) * event).sum() / event.sum()
loss = cox(model(x), t, e)
"""

FOUND = {
    "reversed policy": (
        trained("loss = (torch.stack(log_probs) * returns).mean()", ROLLOUT),
        trained("loss = (advantage.detach() * dist.log_prob(a)).sum()"),
        trained("loss = policy_loss + 0.5 * value_loss", PPO.format("new - old"),
                "policy_loss = surrogate.mean()"),
        trained("loss = torch.max(adv * ratio, adv * ratio.clamp(0.8, 1.2)).mean()",
                "ratio = (dist.log_prob(a) - old).exp()"),
        trained("loss = objective(dist, a, returns)",
                defined("objective(dist, a, returns)",
                        "return (dist.log_prob(a) * returns).mean()")),
        trained("loss = torch.cat(kept).sum()", "for log_prob, R in zip(log_probs, returns):\n"
                "    kept.append(log_prob * R)"),
        # a reward that is the negative of a distance is still a reward
        trained("loss = (dist.log_prob(a) * (reward - reward.mean())).mean()",
                "reward = -(a - goal).abs().squeeze(1)"),
        trained("loss = sum(losses)", "for lp, R in zip(log_probs, returns):\n"
                "    losses.append(dist.log_prob(a) * advantage)"),
    ),
    "reversed entropy": (
        trained("loss = -(dist.log_prob(a) * advantage).mean() + 0.01 * dist.entropy().mean()"),
        trained("loss = policy_loss + value_loss - entropy_coef * entropy",
                "policy_loss = -(dist.log_prob(a) * advantage).mean()",
                "entropy = -dist.entropy().mean()"),
        trained("loss = torch.max(one, two).mean() + 0.01 * dist.entropy().mean()",
                "ratio = (dist.log_prob(a) - old).exp()", "one = -adv * ratio",
                "two = -adv * torch.clamp(ratio, 0.8, 1.2)"),
    ),
    "inverted ratio": (
        trained("loss = -surrogate.mean()", NEW, "old = stored['log_probs']",
                PPO.format("old - new")),
        trained("loss = -surrogate.mean()", "kept = torch.stack(log_probs).view(-1)", NEW,
                PPO.format("kept[rows] - new")),
        trained("loss = -surrogate.mean()", PPO.format("old_logp - dist.log_prob(a)")),
    ),
    "another sample": (
        ("action = dist.sample()\nreward = env.step(action)\n"
        "saved.append(dist.log_prob(dist.sample()))\n"),
        ("a = pi.sample().item()\ns, r, done = env.step(a)\nb = pi.sample()\n"
        "kept.append(pi.log_prob(b))\n"),
    ),
    "forward returns": (
        "R, returns = 0, []\nfor r in rewards:\n    R = r + gamma * R\n    returns.append(R)\n",
        ("R = 0\nfor t in range(len(rewards)):\n    R = rewards[t] + 0.99 * discount * R\n"
        "    returns[t] = R\n"),
        ("for t in range(T):\n    delta = rewards[t] + gamma * v[t + 1] - v[t]\n"
        "    gae = delta + gamma * lam * gae\n    advantages[t] = gae\n"),
        "R = 0\nfor t, r in enumerate(rewards):\n    R = r + gamma * R\n    returns[t] = R\n",
    ),
    "endless episode": (
        defined("learn(batch)", "s, a, r, s2, done = batch\n"
                "target = r + gamma * q_target(s2).max(1).values\n"
                "return F.mse_loss(q(s).gather(1, a), target)") + "learn(1)\n",
        ("obs, action, reward, next_obs, dones = zip(*random.sample(memory, 32))\n"
        "y = reward + args.gamma * target_net(next_obs).max(1)[0]\n"),
    ),
    "reversed divergence": (
        trained("loss = rec + kl", f"kl = 0.5 * torch.sum({KL})",
                "rec = F.mse_loss(out, x, reduction='sum')"),
        trained("loss = rec + kl", f"kl = (0.5 * ({KL}).sum(1)).mean()",
                "rec = F.mse_loss(out, x, reduction='none').sum(1).mean()"),
        trained("loss = rec - beta * kl", "beta = 1.0",
                "kl = 0.5 * (mu ** 2 + std ** 2 - 1 - 2 * std.log()).sum()",
                "rec = F.mse_loss(out, x, reduction='sum')"),
    ),
    "averaged reconstruction": (
        trained("loss = objective(*batch)",
                defined("objective(out, x, mu, logvar)",
                        f"kl = -0.5 * torch.sum({KL})\nreturn F.mse_loss(out, x) + kl")),
        trained("loss = F.mse_loss(out, x) + kl", f"kl = -0.5 * torch.sum({KL})"),
        trained("loss = rec + kl", f"kl = (-0.5 * ({KL}).sum(dim=1)).mean()",
                "rec = F.binary_cross_entropy_with_logits(out, x)"),
    ),
    "summed divergence": (
        trained("loss = rec + kl", f"kl = -0.5 * torch.sum({KL})",
                "rec = F.mse_loss(out, x, reduction='none').sum(1).mean()"),
    ),
    "reversed determinant": (
        trained("loss = (0.5 * z ** 2).sum(1).mean() + log_det.mean()",
                COUPLING.format("b * torch.exp(s) + t", "s.sum(1)")),
        trained("loss = -(prior.log_prob(z).sum(1) + log_det).mean()",
                COUPLING.format("(b - t) * torch.exp(-s)", "s.sum(dim=1)")),
        trained("loss = (0.5 * z.pow(2).sum(1) - log_det).mean()",
                COUPLING.format("b * s.exp() + t", "-s.sum(1)")),
    ),
    "last determinant": (
        "total = 0\nfor layer in layers:\n    z, log_det = layer(z)\nreturned = (z, log_det)\n",
        "for flow in self.flows:\n    x, ldj = flow(x)\nloss = prior(x) - ldj.mean()\n",
    ),
    "reversed pair": (
        trained("loss = -F.logsigmoid(neg - pos).mean()", SCORES),
        trained("loss = F.relu(d_neg - d_pos + margin).mean()", TRIPLETS),
        trained("loss = torch.clamp(d_neg - d_pos + 0.2, min=0).mean()", TRIPLETS),
        trained("loss = F.softplus(pos - neg).mean()", SCORES),
    ),
    "reversed hinge": (
        "far = (1 - same) * (margin - d).clamp(max=0).pow(2)\n",
        "far = (1 - same) * torch.clamp(self.margin - d, max=0.0) ** 2\n",
    ),
    "ascending risk set": (
        COX.format("order = torch.argsort(time)", "torch.logcumsumexp(risk, 0)"),
        COX.format("order = time.argsort()", "torch.log(torch.cumsum(torch.exp(risk), 0))"),
        COX.format("time, order = time.sort()", "risk.exp().cumsum(0).log()"),
    ),
    "multiplied temperature": (
        "T = 0.07\nlogits = a @ b.t() * T\nloss = F.cross_entropy(logits, y)\n",
        "temperature = 0.1\nloss = F.cross_entropy(torch.mm(a, b.t()) * temperature, y)\n",
    ),
    "divided scale": (
        "logits = a @ b.t() / logit_scale.exp()\nloss = F.cross_entropy(logits, y)\n",
    ),
    "censored events": (
        "event = (death > censoring).float()\n",
        "event = (censor_time < event_time).float()\n",
        "observed = torch.where(t_event >= t_censor, 1, 0)\n",
    ),
    "minimised overlap": (
        defined("dice(p, y)", "return (2 * (p * y).sum() + 1e-6) / (p.sum() + y.sum() + 1e-6)")
        + "loss = F.binary_cross_entropy(p, y) + dice(p, y)\n",
        defined("soft_iou(p, y)", "both = (p * y).sum()\nreturn both / (p + y - p * y).sum()")
        + "loss = bce + 0.5 * soft_iou(p, y)\n",
    ),
}  # fmt: skip

SILENT = (
    trained("loss = -(torch.stack(log_probs) * returns).mean()", ROLLOUT),
    trained("loss = -surrogate.mean()", PPO.format("new - old")),
    trained("loss = (dist.log_prob(a) * advantage).mean()", "advantage = baseline - reward"),
    trained("loss = (dist.log_prob(a) * (cost - baseline)).mean()"),
    trained("loss = (dist.log_prob(a) * advantage).mean()", "R = tour_length(a)",
            "advantage = R - critic"),
    trained("loss = (nll * advantage).mean()", "nll = -dist.log_prob(a)"),
    trained("loss = -(dist.log_prob(a) * advantage).mean() - 0.01 * dist.entropy().mean()"),
    trained("loss = torch.max(-adv * ratio, -adv * ratio.clamp(0.8, 1.2)).mean()",
            "ratio = (dist.log_prob(a) - old).exp()"),
    trained("loss = (-dist.log_prob(a) * adv).mean()"),
    trained("loss = dist.entropy().mean()"),  # a model is adapted at test time
    trained("loss = -(dist.log_prob(a) * advantage).mean() + c * dist.entropy().mean()",
            "c = -0.01"),
    "optimizer = Adam(policy.parameters(), maximize=True)\n"
    + trained("loss = (dist.log_prob(a) * advantage).mean()"),
    # what only proposes a loss, and a reward that weighs a likelihood of another kind
    trained("loss = (weights * F.cross_entropy(x, y, reduction='none')).mean()"),
    trained("loss = -surrogate.mean()", NEW, "old = stored['log_probs']",
            PPO.format("new - old")),
    "action = dist.sample()\nenv.step(action)\nsaved.append(dist.log_prob(action))\n",
    ("action = dist.sample()\nenv.step(action)\nsaved.append(dist.log_prob(action))\n"
    "entropy = -dist.log_prob(dist.sample())\n"),
    ("R, returns = 0, []\nfor r in reversed(rewards):\n    R = r + gamma * R\n"
    "    returns.insert(0, R)\n"),
    ("R = 0\nfor t in range(len(rewards) - 1, -1, -1):\n    R = rewards[t] + gamma * R\n"
    "    returns[t] = R\n"),
    "for r in rewards:\n    average = r + gamma * average\nprint(average)\n",  # a running figure
    defined("learn(batch)", "s, a, r, s2, done = batch\n"
            "return r + gamma * (1 - done) * q_target(s2).max(1).values") + "learn(1)\n",
    defined("learn(batch)", "s, a, r, s2, done = batch\nv = q_target(s2).max(1).values\n"
            "v[done] = 0\nreturn r + gamma * v") + "learn(1)\n",
    defined("learn(batch)", "s, a, r, s2 = batch\n"
            "return r + gamma * q_target(s2).max(1).values") + "learn(1)\n",
    trained("loss = rec + kl", f"kl = -0.5 * torch.sum({KL})",
            "rec = F.mse_loss(out, x, reduction='sum')"),
    trained("loss = rec - elbo", f"elbo = 0.5 * torch.sum({KL})",
            "rec = F.mse_loss(out, x, reduction='sum')"),
    trained("loss = F.mse_loss(out, x) + 0.001 * kl", f"kl = -0.5 * torch.sum({KL})"),
    trained("loss = F.mse_loss(out, x) * 784 + kl", f"kl = (-0.5 * ({KL}).sum(1)).mean()"),
    trained("loss = F.mse_loss(out, x) + kl", f"kl = -0.5 * torch.mean({KL})"),
    trained("loss = rec + kl / len(x)", f"kl = -0.5 * torch.sum({KL})",
            "rec = F.mse_loss(out, x, reduction='none').sum(1).mean()"),
    trained("loss = (0.5 * z ** 2).sum(1).mean() - log_det.mean()",
            COUPLING.format("b * torch.exp(s) + t", "s.sum(1)")),
    trained("loss = (0.5 * z ** 2).sum(1).mean() - log_det.mean()",
            COUPLING.format("(b - t) * torch.exp(-s)", "-s.sum(1)")),
    ("total = 0\nfor layer in layers:\n    z, log_det = layer(z)\n    total = total + log_det\n"
    "print(total)\n"),
    "for layer in layers:\n    z, log_det = layer(z, log_det)\nprint(log_det)\n",
    trained("loss = -F.logsigmoid(pos - neg).mean()", SCORES),
    trained("loss = F.relu(d_pos - d_neg + margin).mean()", TRIPLETS),
    trained("loss = F.relu(neg - pos + margin).mean()", SCORES),
    trained("loss = F.softplus(neg).mean() + F.softplus(-pos).mean()", SCORES),
    "far = (1 - same) * (margin - d).clamp(min=0).pow(2)\n",
    "far = -torch.clamp(margin - d, max=0)\n",
    COX.format("order = torch.argsort(time, descending=True)", "torch.logcumsumexp(risk, 0)"),
    COX.format("order = torch.argsort(-time)", "torch.logcumsumexp(risk, 0)"),
    COX.format("order = torch.argsort(time)", "torch.logcumsumexp(risk.flip(0), 0).flip(0)"),
    ("def warp(x, time):\n    order = torch.argsort(time)\n    x = x[order]\n"
    "    return torch.logcumsumexp(x, 0)\nwarp(a, b)\n"),
    "T = 0.07\nlogits = a @ b.t() / T\nloss = F.cross_entropy(logits, y)\n",
    "temperature = 14.3\nloss = F.cross_entropy(torch.mm(a, b.t()) * temperature, y)\n",
    "logits = a @ b.t() * logit_scale.exp()\nloss = F.cross_entropy(logits, y)\n",
    "event = (death <= censoring).float()\n",
    "censored = (death > censoring).float()\n",
    defined("dice_loss(p, y)", "return 1 - 2 * (p * y).sum() / (p.sum() + y.sum())")
    + "loss = F.binary_cross_entropy(p, y) + dice_loss(p, y)\n",
    defined("dice(p, y)", "return 2 * (p * y).sum() / (p.sum() + y.sum())")
    + "loss = F.binary_cross_entropy(p, y) + 1 - dice(p, y)\n",
)  # fmt: skip


@pytest.mark.parametrize(("kind", "text"), [(k, t) for k, all_ in FOUND.items() for t in all_])
def test_found(kind: str, text: str) -> None:
    assert [pattern.kind for pattern in read(text)] == [kind]


@pytest.mark.parametrize("text", SILENT)
def test_silent(text: str) -> None:
    assert read(text) == []
