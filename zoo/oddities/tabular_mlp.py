"""Sound runs of the tabular MLP that look odd."""

from zoo.specimens import healthy

SPECIMENS = (
    healthy(
        "tabular-label-smoothing",
        "tabular_mlp",
        ("nn.CrossEntropyLoss()", "nn.CrossEntropyLoss(label_smoothing=0.2)"),
        why="smoothed labels keep the loss far above zero",
    ),
    healthy(
        "tabular-imbalanced",
        "tabular_mlp",
        (
            "torch.randint(CLASSES, (2560,))",
            "torch.multinomial(torch.tensor([8, 0.5, 0.5, 0.5, 0.5]), 2560, replacement=True)",
        ),
        why="four rows of five are of one class, and the others are learned all the same",
    ),
    healthy(
        "tabular-weighted-classes",
        "tabular_mlp",
        (
            "torch.randint(CLASSES, (2560,))",
            "torch.multinomial(torch.tensor([0.6, 0.1, 0.1, 0.1, 0.1]), 2560, replacement=True)",
        ),
        (
            "nn.CrossEntropyLoss()",
            "nn.CrossEntropyLoss(weight=len(labels) / (CLASSES * labels.bincount()))",
        ),
        why="the loss is weighted against the imbalance: batches weigh differently",
    ),
    healthy(
        "tabular-half-dropped",
        "tabular_mlp",
        (
            "nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.1)",
            "nn.Dropout(0.5), nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.5)",
        ),
        why="dropout makes the training loss higher than the validation loss",
    ),
    healthy(
        "tabular-accumulation",
        "tabular_mlp",
        ("batch_size=64", "batch_size=16"),
        (
            "for x, y in train_loader:\n        optimizer.zero_grad()\n",
            "for index, (x, y) in enumerate(train_loader):\n",
        ),
        ("loss = criterion(model(x), y)", "loss = criterion(model(x), y) / 4"),
        (
            "        optimizer.step()\n",
            (
                "        if index % 4 == 3:\n"
                "            optimizer.step()\n"
                "            optimizer.zero_grad()\n"
            ),
        ),
        why="four backwards belong to a step, and each loss is divided by four",
    ),
    healthy(
        "tabular-summed-loss",
        "tabular_mlp",
        ("nn.CrossEntropyLoss()", 'nn.CrossEntropyLoss(reduction="sum")'),
        (
            "Adam(model.parameters(), lr=1e-3)",
            "SGD(model.parameters(), lr=0.05 / 64, momentum=0.9)",
        ),
        ("criterion(logits, y).item() * len(y)", "criterion(logits, y).item()"),
        why="the loss is a sum over the batch, and the learning rate is chosen for it",
    ),
    healthy(
        "tabular-autocast",
        "tabular_mlp",
        (
            "        loss = criterion(model(x), y)\n",
            (
                '        with torch.autocast("cpu", dtype=torch.bfloat16):\n'
                "            loss = criterion(model(x), y)\n"
            ),
        ),
        why="forward passes in bfloat16 are coarse, weights and updates are not",
    ),
    healthy(
        "tabular-loss-times-1000",
        "tabular_mlp",
        ("loss = criterion(model(x), y)", "loss = 1000 * criterion(model(x), y)"),
        why="a factor of 1000 makes losses and gradients huge, and Adam divides it out again",
    ),
    healthy(
        "tabular-average-of-weights",
        "tabular_mlp",
        (
            "model = Classifier()\n",
            (
                "model = Classifier()\n"
                "average = torch.optim.swa_utils.AveragedModel(\n"
                "    model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.97)\n"
                ")\n"
            ),
        ),
        (
            "        optimizer.step()\n",
            "        optimizer.step()\n        average.update_parameters(model)\n",
        ),
        ("    model.eval()\n", "    average.eval()\n"),
        ("            logits = model(x)\n", "            logits = average(x)\n"),
        why="a second model that no optimizer holds follows the first, and is validated",
    ),
    healthy(
        "tabular-early-stopping",
        "tabular_mlp",
        (
            "for epoch in range(10):\n",
            'best, patience = float("inf"), 0\nfor epoch in range(40):\n',
        ),
        ("1.5 * torch.randn(len", "3.0 * torch.randn(len"),
        (
            "    print(f",
            (
                "    patience = 0 if total < best else patience + 1\n"
                "    best = min(best, total)\n"
                "    if patience == 3:\n"
                "        break\n"
                "    print(f"
            ),
        ),
        why="training ends in the middle of its schedule, since validation got no better",
    ),
    healthy(
        "tabular-single-epoch",
        "tabular_mlp",
        ("(2560,)", "(17000,)"),
        ("rows[:2048], labels[:2048]", "rows[:16488], labels[:16488]"),
        ("rows[2048:], labels[2048:]", "rows[16488:], labels[16488:]"),
        ("range(10)", "range(1)"),
        why="one epoch over much data: one validation, at the end",
    ),
    healthy(
        "tabular-memorised",
        "tabular_mlp",
        ("rows[:2048], labels[:2048]", "rows[:64], labels[:64]"),
        ("range(10)", "range(250)"),
        (
            (
                "    model.eval()\n"
                "    total = correct = 0\n"
                "    with torch.no_grad():\n"
                "        for x, y in valid_loader:\n"
                "            logits = model(x)\n"
                "            total += criterion(logits, y).item() * len(y)\n"
                "            correct += (logits.argmax(1) == y).sum().item()\n"
                '    print(f"epoch {epoch}: loss {total / len(valid_set):.4f}'
                ' acc {correct / len(valid_set):.3f}")\n'
            ),
            '    print(f"epoch {epoch}: loss {loss.item():.4f}")\n',
        ),
        why="a few rows are memorised on purpose, to see whether the model can",
    ),
    healthy(
        "tabular-mixup",
        "tabular_mlp",
        (
            "        loss = criterion(model(x), y)\n",
            (
                "        share = torch.distributions.Beta(0.4, 0.4).sample((len(x), 1))\n"
                "        other = torch.randperm(len(x))\n"
                "        soft = nn.functional.one_hot(y, CLASSES).float()\n"
                "        x = share * x + (1 - share) * x[other]\n"
                "        loss = criterion(model(x), share * soft + (1 - share) * soft[other])\n"
            ),
        ),
        why="rows and labels are mixed: the training loss stays far above that of validation",
    ),
    healthy(
        "tabular-zero-head",
        "tabular_mlp",
        (
            "model = Classifier()\n",
            (
                "model = Classifier()\n"
                "nn.init.zeros_(model.head.weight)\n"
                "nn.init.zeros_(model.head.bias)\n"
            ),
        ),
        why="the head begins at zero, so that no gradient passes it at the first step",
    ),
    healthy(
        "tabular-decay-on-all",
        "tabular_mlp",
        (
            "Adam(model.parameters(), lr=1e-3)",
            "AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)",
        ),
        why="weight decay takes biases as well, as in most scripts",
    ),
    healthy(
        "tabular-overlapping-classes",
        "tabular_mlp",
        ("1.5 * torch.randn(len", "4.5 * torch.randn(len"),
        ("range(10)", "range(5)"),
        why="the classes overlap: nobody could bring the loss much lower than this",
    ),
    healthy(
        "tabular-nothing-left-to-learn",
        "tabular_mlp",
        ("1.5 * torch.randn(len", "0.5 * torch.randn(len"),
        ("nn.ReLU(), nn.Dropout(0.1)", "nn.ReLU()"),
        ("range(10)", "range(16)"),
        ("lr=1e-3", "lr=3e-3"),
        why="the classes lie far apart: the loss is next to zero early, and stays there",
    ),
    healthy(
        "tabular-slow",
        "tabular_mlp",
        ("1.5 * torch.randn(len", "2.5 * torch.randn(len"),
        ("lr=1e-3", "lr=1e-4"),
        why="a small learning rate: the loss stays near the best constant prediction, and falls",
    ),
)
