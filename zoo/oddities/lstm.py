"""Sound runs of the LSTM forecaster that look odd."""

from zoo.specimens import healthy

ADAM = "torch.optim.Adam(model.parameters(), lr=5e-3)"
EPOCH = "for epoch in range(EPOCHS):\n    model.train()\n"
BATCH = "    for x, y in train_loader:\n        optimizer.zero_grad()\n"

SPECIMENS = (
    healthy(
        "lstm-always-clipped",
        "lstm",
        ("model.parameters(), 1.0)", "model.parameters(), 0.1)"),
        why="nearly every step is clipped, by recipe; Adam does not mind",
    ),
    healthy(
        "lstm-truncated-backpropagation",
        "lstm",
        (
            "states, _ = self.rnn(x)",
            (
                "_, carried = self.rnn(x[:, : WINDOW // 2])\n"
                "        carried = tuple(each.detach() for each in carried)\n"
                "        states, _ = self.rnn(x[:, WINDOW // 2 :], carried)"
            ),
        ),
        why="the hidden state is carried on without its graph",
    ),
    healthy(
        "lstm-warm-restarts",
        "lstm",
        (
            f"optimizer = {ADAM}\n",
            (
                f"optimizer = {ADAM}\n"
                "schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts("
                "optimizer, T_0=80)\n"
            ),
        ),
        ("        optimizer.step()\n", "        optimizer.step()\n        schedule.step()\n"),
        why="the learning rate falls to nothing and starts anew every 80 steps, by design",
    ),
    healthy(
        "lstm-one-bad-batch",
        "lstm",
        (
            BATCH,
            (
                "    for batch, (x, y) in enumerate(train_loader):\n"
                "        if (epoch, batch) == (4, 20):\n"
                "            y = y + 5  # one recording went wrong\n"
                "        optimizer.zero_grad()\n"
            ),
        ),
        why="one bad batch makes one large loss; clipping takes the edge off, the next is fine",
    ),
    healthy(
        "lstm-resumed",
        "lstm",
        (
            EPOCH,
            (
                "for epoch in range(EPOCHS):\n"
                "    if epoch == 4:  # stopped here, and resumed with all of its state\n"
                "        weights, state = model.state_dict(), optimizer.state_dict()\n"
                "        model = Forecaster()\n"
                "        model.load_state_dict(weights)\n"
                f"        optimizer = {ADAM}\n"
                "        optimizer.load_state_dict(state)\n"
                "    model.train()\n"
            ),
        ),
        why="model and optimizer are new objects from the fifth epoch on, their state restored",
    ),
    healthy(
        "lstm-curriculum",
        "lstm",
        (
            BATCH,
            (
                "    for x, y in train_loader:\n"
                "        x = x + 0.15 * (epoch // 3) * torch.randn_like(x)  # ever harder\n"
                "        optimizer.zero_grad()\n"
            ),
        ),
        why="inputs get noisier every third epoch, so the training loss rises there by design",
    ),
    healthy(
        "lstm-nesterov",
        "lstm",
        (ADAM, "torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9, nesterov=True)"),
        why="SGD at a high rate is noisy and fine",
    ),
    healthy(
        "lstm-heavy-tails",
        "lstm",
        (
            "series = (series - series.mean()) / series.std()\n",
            (
                "series = (series - series.mean()) / series.std()\n"
                "series[::150] *= 4  # a few storms\n"
            ),
        ),
        why="a few violent series give losses and gradient norms far above the median",
    ),
)
