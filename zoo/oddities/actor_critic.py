"""Sound runs of the actor-critic that look odd."""

from zoo.specimens import healthy

SPECIMENS = (
    healthy(
        "critic-masked-moves",
        "actor_critic",
        (
            "        policy = Categorical(logits=logits)\n",
            (
                "        there = grids.walker[:, None] + MOVES\n"
                "        walled = (there != there.clamp(0, SIZE - 1)).any(2)\n"
                '        policy = Categorical(logits=logits.masked_fill(walled, float("-inf")))\n'
            ),
        ),
        why="illegal moves have logits of minus infinity, which the distribution can handle",
    ),
    healthy(
        "critic-normalised-advantage",
        "actor_critic",
        (
            "    advantage = returns - values.detach()\n",
            (
                "    advantage = returns - values.detach()\n"
                "    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)\n"
            ),
        ),
        why="normalised advantages make a policy loss that hovers about zero and never falls",
    ),
    healthy(
        "critic-two-optimizers",
        "actor_critic",
        (
            "optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)\n",
            (
                "actor = [*model.body.parameters(), *model.policy.parameters()]\n"
                "optimizer = torch.optim.Adam(actor, lr=3e-3)\n"
                "critic_optimizer = torch.optim.Adam(model.value.parameters(), lr=1e-2)\n"
            ),
        ),
        ("    optimizer.zero_grad()\n", "    model.zero_grad()\n"),
        ("    optimizer.step()\n", "    optimizer.step()\n    critic_optimizer.step()\n"),
        why="one loss, two optimizers",
    ),
)
