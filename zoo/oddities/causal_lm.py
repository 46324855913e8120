"""Sound runs of the causal language model that look odd."""

from zoo.specimens import healthy

SCHEDULER = "torch.optim.lr_scheduler.LambdaLR(optimizer, learning_rate)"

SPECIMENS = (
    healthy(
        "lm-near-random-text",
        "causal_lm",
        ("(2.5 * torch.randn", "(0.7 * torch.randn"),
        why="the text is nearly random: there is little to learn, and the loss falls by little",
    ),
    healthy(
        "lm-label-smoothing",
        "causal_lm",
        (
            "loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())\n        loss",
            (
                "loss = F.cross_entropy(logits.flatten(0, 1), y.flatten(), label_smoothing=0.2)\n"
                "        loss"
            ),
        ),
        why="smoothed labels keep the training loss above the validation loss",
    ),
    healthy(
        "lm-decay-to-zero",
        "causal_lm",
        ("return 0.1 + 0.45 * (1", "return 0.5 * (1"),
        why="the learning rate ends at exactly 0, where weights no longer move",
    ),
    healthy(
        "lm-one-cycle",
        "causal_lm",
        (
            SCHEDULER,
            (
                "torch.optim.lr_scheduler.OneCycleLR(\n"
                "    optimizer, max_lr=2 * PEAK_LR, total_steps=EPOCHS * len(train_loader)\n)"
            ),
        ),
        why="the learning rate rises for a third of the run, and the momentum moves against it",
    ),
    healthy(
        "lm-zero-init-branches",
        "causal_lm",
        (
            "model = LanguageModel()\n",
            (
                "model = LanguageModel()\nfor block in model.blocks:\n"
                "    nn.init.zeros_(block.out.weight)\n    nn.init.zeros_(block.mlp[2].weight)\n"
            ),
        ),
        why="residual branches begin at zero, so most gradients are zero in the first step",
    ),
    healthy(
        "lm-accumulation",
        "causal_lm",
        ("batch_size=16", "batch_size=8"),
        ("for x, y in train_loader:\n", "for batch, (x, y) in enumerate(train_loader):\n"),
        (
            (
                "        loss.backward()\n"
                "        nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
                "        optimizer.step()\n"
                "        scheduler.step()\n"
                "        optimizer.zero_grad(set_to_none=True)\n"
            ),
            (
                "        (loss / 2).backward()\n"
                "        if batch % 2:\n"
                "            nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
                "            optimizer.step()\n"
                "            scheduler.step()\n"
                "            optimizer.zero_grad(set_to_none=True)\n"
            ),
        ),
        ("(EPOCHS * len(train_loader) - WARMUP)", "(EPOCHS * len(train_loader) / 2 - WARMUP)"),
        why="gradients of two batches are accumulated, each loss divided by two",
    ),
    healthy(
        "lm-frequent-validation",
        "causal_lm",
        (
            "        train_loss += loss.item() / len(train_loader)\n",
            (
                "        train_loss += loss.item() / len(train_loader)\n"
                "        if scheduler.last_epoch % 25 == 0:\n"
                "            model.eval()\n"
                "            with torch.no_grad():\n"
                "                x, y = next(iter(valid_loader))\n"
                "                quick = F.cross_entropy(model(x).flatten(0, 1), y.flatten())\n"
                "            print(f'step {scheduler.last_epoch}: valid {quick.item():.4f}')\n"
                "            model.train()\n"
            ),
        ),
        why="validation on one batch every 25 steps, and on all of them after each epoch",
    ),
    healthy(
        "lm-distillation",
        "causal_lm",
        (
            "loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())\n        loss",
            (
                "loss = F.kl_div(\n"
                "            logits.log_softmax(2).flatten(0, 1), chain[x].flatten(0, 1),\n"
                "            reduction='batchmean',\n        )\n        loss"
            ),
        ),
        why="the chain itself is the teacher: the divergence begins low and falls to nearly 0",
    ),
    healthy(
        "lm-always-clipped",
        "causal_lm",
        ("model.parameters(), 1.0)", "model.parameters(), 0.2)"),
        why="a limit of 0.2 clips most steps, by recipe",
    ),
    healthy(
        "lm-untied",
        "causal_lm",
        ("        self.head.weight = self.embed.weight\n", ""),
        why="the head is not tied to the embedding, which keeps its small standard deviation",
    ),
)
