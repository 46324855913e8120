"""Sound runs of the residual network that look odd."""

from zoo.specimens import healthy

SPECIMENS = (
    healthy(
        "resnet-high-one-cycle",
        "resnet",
        ("max_lr=1e-2", "max_lr=4e-2"),
        ("EPOCHS, BATCH = 6, 12, 7, 32", "EPOCHS, BATCH = 6, 12, 8, 32"),
        why="at the peak of the cycle validation gets worse for a while; the descent heals it",
    ),
    healthy(
        "resnet-zero-residuals",
        "resnet",
        (
            "        self.shortcut =",
            "        nn.init.zeros_(self.norm2.weight)\n        self.shortcut =",
        ),
        why="the last norm of a block begins at zero: convolutions before it get no gradient yet",
    ),
    healthy(
        "resnet-autocast",
        "resnet",
        (
            "        loss = criterion(model(images), labels)\n",
            (
                '        with torch.autocast("cpu", dtype=torch.bfloat16):\n'
                "            loss = criterion(model(images), labels)\n"
            ),
        ),
        ("make_images(1280)", "make_images(640)"),
        ("EPOCHS, BATCH = 6, 12, 7, 32", "EPOCHS, BATCH = 6, 12, 8, 32"),
        why="forward passes in bfloat16 are coarse, weights and updates are not",
    ),
    healthy(
        "resnet-mixup",
        "resnet",
        (
            "        loss = criterion(model(images), labels)\n",
            (
                "        share = torch.distributions.Beta(0.4, 0.4).sample((len(images), 1))\n"
                "        other = torch.randperm(len(images))\n"
                "        soft = F.one_hot(labels, CLASSES).float()\n"
                "        soft = share * soft + (1 - share) * soft[other]\n"
                "        share = share.view(-1, 1, 1, 1)\n"
                "        images = share * images + (1 - share) * images[other]\n"
                "        loss = criterion(model(images), soft)\n"
            ),
        ),
        why="images and labels are mixed: the training loss stays far above that of validation",
    ),
)
