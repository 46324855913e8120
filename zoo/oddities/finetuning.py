"""Sound fine-tuning runs that look odd."""

from zoo.specimens import healthy

SPECIMENS = (
    healthy(
        "finetuning-two-rates",
        "finetuning",
        ("    parameter.requires_grad = False\n", "    parameter.requires_grad = True\n"),
        (
            "Adam(model.head.parameters(), lr=3e-3)",
            (
                'Adam([{"params": model.backbone.parameters(), "lr": 1e-4},'
                ' {"params": model.head.parameters()}], lr=3e-3)'
            ),
        ),
        ("EPOCHS = 12, 32, 8", "EPOCHS = 12, 32, 5"),
        why="the backbone learns thirty times slower than the head, its norms in eval mode",
    ),
    healthy(
        "finetuning-optimizer-of-all",
        "finetuning",
        ("Adam(model.head.parameters(),", "Adam(model.parameters(),"),
        why="the optimizer is given frozen parameters too, and passes over them",
    ),
    healthy(
        "finetuning-unfrozen-later",
        "finetuning",
        (
            "for epoch in range(EPOCHS):\n",
            (
                "for epoch in range(EPOCHS):\n"
                "    if epoch == 4:\n"
                "        model.backbone[3].requires_grad_(True)\n"
                "        new = list(model.backbone[3].parameters())\n"
                '        optimizer.add_param_group({"params": new, "lr": 1e-4})\n'
            ),
        ),
        why="half of the backbone joins after four epochs",
    ),
    healthy(
        "finetuning-pretrained-here",
        "finetuning",
        (
            (
                "    with torch.no_grad():\n"
                "        for pixels in train_pixels.split(256):\n"
                "            network(normalise(pixels))\n"
            ),
            (
                "    optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)\n"
                "    for _ in range(2):\n"
                "        for pixels in train_pixels.split(32):\n"
                "            grey = pixels.float().mean((1, 2, 3)).sub(70).clamp(0, 99).long()\n"
                "            optimizer.zero_grad()\n"
                "            logits = network(normalise(pixels))\n"
                "            nn.functional.cross_entropy(logits, grey).backward()\n"
                "            optimizer.step()\n"
            ),
        ),
        ("EPOCHS = 12, 32, 8", "EPOCHS = 12, 32, 6"),
        why="the backbone is trained on another task first, in the same script",
    ),
)
