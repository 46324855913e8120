"""Sound runs of the regression that look odd."""

from zoo.specimens import healthy

SPECIMENS = (
    healthy(
        "regression-heavy-tails",
        "regression_mlp",
        (
            "torch.randn(len(features))",
            "torch.distributions.StudentT(1.5).sample((len(features),))",
        ),
        ("prices[:2048].std()", "75_000"),
        ("prices[:2048].mean()", "prices[:2048].median()"),
        ("nn.MSELoss()", "nn.HuberLoss()"),
        why="a few prices are far off; a Huber loss bears it, with spikes",
    ),
    healthy(
        "regression-outliers",
        "regression_mlp",
        (
            "prices = prices.unsqueeze(1)\n",
            ("prices = prices.unsqueeze(1)\nprices[torch.rand(len(prices)) < 0.005] += 400_000\n"),
        ),
        why="one price of two hundred is far off: each such batch is a spike of the squared error",
    ),
    healthy(
        "regression-offset",
        "regression_mlp",
        ("(prices - prices[:2048].mean()) / prices[:2048].std()", "prices / 50_000"),
        why="targets of 2 to 9 make the first loss large, and are soon reached",
    ),
    healthy(
        "regression-weak-signal",
        "regression_mlp",
        ("quality + torch.randn(", "quality + 6 * torch.randn("),
        ("FEATURES, EPOCHS = 12, 15", "FEATURES, EPOCHS = 12, 8"),
        ("lr=3e-3", "lr=1e-3"),
        why="most of the price is chance: nobody could bring the loss much lower than this",
    ),
    healthy(
        "regression-two-rates",
        "regression_mlp",
        (
            "Adam(model.parameters(), lr=3e-3)",
            (
                'Adam([{"params": model[:2].parameters(), "lr": 3e-4},'
                ' {"params": model[2:].parameters()}], lr=3e-3)'
            ),
        ),
        why="the first layer learns ten times slower than the others, by choice",
    ),
    healthy(
        "regression-lbfgs",
        "regression_mlp",
        (
            "torch.optim.Adam(model.parameters(), lr=3e-3)",
            "torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=2)",
        ),
        ("batch_size=64, shuffle=True", "batch_size=2048"),
        ("FEATURES, EPOCHS = 12, 15", "FEATURES, EPOCHS = 12, 50"),
        ("step_size=5", "step_size=40"),
        (
            (
                "        optimizer.zero_grad()\n"
                "        loss = criterion(model(x), y)\n"
                "        loss.backward()\n"
                "        optimizer.step()\n"
            ),
            (
                "\n"
                "        def closure(x=x, y=y):\n"
                "            optimizer.zero_grad()\n"
                "            loss = criterion(model(x), y)\n"
                "            loss.backward()\n"
                "            return loss\n"
                "\n"
                "        loss = optimizer.step(closure)\n"
            ),
        ),
        why="each step calls backward several times, from within the optimizer",
    ),
    healthy(
        "regression-reduced-on-plateau",
        "regression_mlp",
        (
            "StepLR(optimizer, step_size=5, gamma=0.3)",
            "ReduceLROnPlateau(optimizer, patience=1, factor=0.3)",
        ),
        ("    scheduler.step()\n\n", "\n"),
        ("    print(", "    scheduler.step(valid)\n    print("),
        ("FEATURES, EPOCHS = 12, 15", "FEATURES, EPOCHS = 12, 20"),
        why="the learning rate falls when validation says so, late and in uneven steps",
    ),
    healthy(
        "regression-cosine-to-zero",
        "regression_mlp",
        ("StepLR(optimizer, step_size=5, gamma=0.3)", "CosineAnnealingLR(optimizer, T_max=EPOCHS)"),
        why="updates end at next to nothing, when there is nothing left to do",
    ),
    healthy(
        "regression-clipped-adam",
        "regression_mlp",
        (
            "        optimizer.step()\n",
            (
                "        nn.utils.clip_grad_norm_(model.parameters(), 0.05)\n"
                "        optimizer.step()\n"
            ),
        ),
        why="nearly every gradient is clipped; Adam does not care for their size",
    ),
    healthy(
        "regression-without-validation",
        "regression_mlp",
        (
            (
                "    model.eval()\n"
                "    with torch.no_grad():\n"
                "        valid = sum("
                "criterion(model(x), y).item() * len(y) for x, y in valid_loader)\n"
            ),
            "",
        ),
        (" valid {valid / len(valid_set):.4f}", ""),
        why="nothing is validated",
    ),
)
