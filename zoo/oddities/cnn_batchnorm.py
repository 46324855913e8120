"""Sound runs of the CNN that look odd."""

from zoo.specimens import healthy

SPECIMENS = (
    healthy(
        "cnn-staircase",
        "cnn_batchnorm",
        ("CosineAnnealingLR(optimizer, T_max=EPOCHS)", "MultiStepLR(optimizer, [3, 6, 8])"),
        ("45 * torch.randn", "65 * torch.randn"),
        why="the learning rate falls tenfold three times: the loss drops at once, then is flat",
    ),
    healthy(
        "cnn-warm-restarts",
        "cnn_batchnorm",
        (
            "CosineAnnealingLR(optimizer, T_max=EPOCHS)",
            "CosineAnnealingWarmRestarts(optimizer, T_0=3, T_mult=1)",
        ),
        ("lr=0.05, momentum", "lr=0.2, momentum"),
        ("EPOCHS = 8, 12, 10", "EPOCHS = 8, 12, 12"),
        why="the learning rate jumps up every third epoch, and the loss with it",
    ),
    healthy(
        "cnn-warm-up",
        "cnn_batchnorm",
        (
            "torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS)\n",
            (
                "torch.optim.lr_scheduler.SequentialLR(\n"
                "    optimizer,\n"
                "    [\n"
                "        torch.optim.lr_scheduler.LinearLR(optimizer, 1e-4, total_iters=80),\n"
                "        torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=160),\n"
                "    ],\n"
                "    milestones=[80],\n"
                ")\n"
            ),
        ),
        ("    scheduler.step()\n\n", "\n"),
        ("        optimizer.step()\n", "        optimizer.step()\n        scheduler.step()\n"),
        why="the learning rate begins at next to nothing, and so does learning",
    ),
    healthy(
        "cnn-batches-of-four",
        "cnn_batchnorm",
        ("batch_size=64", "batch_size=4"),
        ("nn.BatchNorm2d(outputs)", "nn.GroupNorm(4, outputs)"),
        ("EPOCHS = 8, 12, 10", "EPOCHS = 8, 12, 2"),
        ("lr=0.05, momentum", "lr=0.01, momentum"),
        why="losses of four images are noisy; group norm does not mind",
    ),
    healthy(
        "cnn-no-momentum",
        "cnn_batchnorm",
        ("lr=0.05, momentum=0.9", "lr=0.05"),
        why="plain SGD is slow, and gets there",
    ),
    healthy(
        "cnn-always-clipped",
        "cnn_batchnorm",
        (
            "        optimizer.step()\n",
            "        nn.utils.clip_grad_norm_(model.parameters(), 0.1)\n        optimizer.step()\n",
        ),
        ("lr=0.05, momentum", "lr=0.2, momentum"),
        why="a low clipping threshold and a high learning rate make normalised steps, by recipe",
    ),
    healthy(
        "cnn-noise-added",
        "cnn_batchnorm",
        (
            "criterion(model(images), labels)",
            "criterion(model(images + 1.0 * torch.randn_like(images)), labels)",
        ),
        why="training images are much noisier than validation images, as augmentation makes them",
    ),
    healthy(
        "cnn-small-validation",
        "cnn_batchnorm",
        ("make_images(512)", "make_images(48)"),
        why="validation on 48 images moves in jumps",
    ),
    healthy(
        "cnn-first-layer-frozen",
        "cnn_batchnorm",
        (
            "criterion = nn.CrossEntropyLoss()\n",
            "model[0].requires_grad_(False)\ncriterion = nn.CrossEntropyLoss()\n",
        ),
        why="random first filters are kept on purpose; they need no gradient",
    ),
    healthy(
        "cnn-sparse-activations",
        "cnn_batchnorm",
        (
            "criterion = nn.CrossEntropyLoss()\n",
            (
                "for module in model.modules():\n"
                "    if isinstance(module, nn.BatchNorm2d):\n"
                "        nn.init.constant_(module.bias, -1.0)\n"
                "criterion = nn.CrossEntropyLoss()\n"
            ),
        ),
        why="five of six activations are zero, and no unit is always",
    ),
)
