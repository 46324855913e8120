"""Mistakes made in the actor-critic."""

from holter.record.findings import Level
from zoo.specimens import fault

SPECIMENS = (
    fault(
        "critic-broadcast",
        "actor_critic",
        ("self.value(hidden).squeeze(-1)", "self.value(hidden)"),
        ("ahead = model(grids.observe())[1]\n", "ahead = model(grids.observe())[1].squeeze(-1)\n"),
        why="values have shape (N, 1), returns (N,): losses and advantages compare all with all",
        cause="broadcast-loss",
        level=Level.PROCEDURE,
        by=60,
        source="T18",
    ),
    fault(
        "critic-log-of-zero",
        "actor_critic",
        (
            "        policy = Categorical(logits=logits)\n        action = policy.sample()\n",
            (
                "        there = grids.walker[:, None] + MOVES\n"
                "        walled = (there != there.clamp(0, SIZE - 1)).any(2)\n"
                '        policy = logits.masked_fill(walled, float("-inf")).softmax(1)\n'
                "        action = (policy.cumsum(1) > torch.rand(WALKERS, 1)).int().argmax(1)\n"
            ),
        ),
        (
            "log_probs.append(policy.log_prob(action))\n        entropies.append(policy.entropy())",
            (
                "log_probs.append(policy.gather(1, action[:, None]).squeeze(1).log())\n"
                "        entropies.append(-(policy * policy.log()).sum(1))"
            ),
        ),
        why="illegal moves have probability 0, and the entropy takes its logarithm",
        cause="singular-operations",
        accepts=("nonfinite-loss", "nonfinite-gradient"),
        level=Level.NUMERICS,
        by=5,
        source="N01",
    ),
    fault(
        "critic-forgotten-body",
        "actor_critic",
        (
            "torch.optim.Adam(model.parameters(), lr=3e-3)",
            "torch.optim.Adam([*model.policy.parameters(), *model.value.parameters()], lr=3e-3)",
        ),
        why="the body was forgotten in the optimizer's list",
        cause="parameters-outside-optimizer",
        level=Level.PROCEDURE,
        by=50,
        source="T07",
    ),
    fault(
        "critic-detached-value",
        "actor_critic",
        ("F.mse_loss(values, returns)", "F.mse_loss(values.detach(), returns)"),
        why="values are detached in their own loss, so that the value head never learns",
        cause="unreached-parameters",
        level=Level.ARCHITECTURE,
        by=50,
        source="A10",
    ),
    fault(
        "critic-huge-rewards",
        "actor_critic",
        (
            "return done.float() - 0.02, done.float()",
            "return 1000 * done.float() - 20, done.float()",
        ),
        why="rewards of a thousand swamp policy and value losses",
        cause="unscaled-targets",
        level=Level.DATA,
        by=100,
        source="D20",
    ),
    fault(
        "critic-cleared-before-step",
        "actor_critic",
        ("    optimizer.zero_grad()\n    loss.backward()\n", "    loss.backward()\n"),
        ("0.5)\n    optimizer.step()", "0.5)\n    optimizer.zero_grad()\n    optimizer.step()"),
        why="gradients are cleared between backward and step",
        cause="step-without-backward",
        accepts=("all-zero-gradients", "motionless-weights"),
        level=Level.PROCEDURE,
        by=50,
        source="T02",
    ),
    fault(
        "critic-high-learning-rate",
        "actor_critic",
        ("lr=3e-3", "lr=0.5"),
        why="the learning rate is a hundred times too high: the policy locks at once",
        cause="huge-updates",
        accepts=("saturated-units",),
        level=Level.HYPERPARAMETER,
        by=60,
        source="H01",
    ),
    fault(
        "critic-saturated",
        "actor_critic",
        (
            "model = ActorCritic()\n",
            (
                "model = ActorCritic()\nfor each in model.body.parameters():\n"
                "    nn.init.normal_(each, std=8)\n"
            ),
        ),
        why="weights of the body are drawn far too large, which saturates every tanh",
        cause="saturated-units",
        accepts=("oversized-weights",),
        level=Level.ARCHITECTURE,
        by=60,
        source="A17",
    ),
)
