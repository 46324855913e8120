"""Sound runs of the encoder classifier that look odd."""

from zoo.specimens import healthy

ADAMW = "torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)"
CLIP = "        nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
TRAIN_AUTOCAST = 'with torch.autocast("cpu", dtype=torch.bfloat16):\n            logits'

SPECIMENS = (
    healthy(
        "encoder-grad-scaler",
        "encoder_classifier",
        (ADAMW, ADAMW + "\nscaler = torch.amp.GradScaler('cpu', init_scale=2.0**24)\n"),
        (TRAIN_AUTOCAST, TRAIN_AUTOCAST.replace("bfloat16", "float16")),
        (
            f"        loss.backward()\n{CLIP}        optimizer.step()\n",
            (
                "        scaler.scale(loss).backward()\n"
                f"        scaler.unscale_(optimizer)\n{CLIP}"
                "        scaler.step(optimizer)\n        scaler.update()\n"
            ),
        ),
        ("range(5)", "range(2)"),
        why="the first steps overflow in float16 and are skipped, until the scale has come down",
    ),
    healthy(
        "encoder-full-precision",
        "encoder_classifier",
        (TRAIN_AUTOCAST, TRAIN_AUTOCAST.replace("bfloat16", "float32, enabled=False")),
        why="training runs in float32, validation in bfloat16",
    ),
    healthy(
        "encoder-frozen-embedding",
        "encoder_classifier",
        (
            "model = Classifier()\n",
            "model = Classifier()\nmodel.embed.requires_grad_(False)  # trained elsewhere\n",
        ),
        why="the embedding is frozen on purpose, and still handed to the optimizer",
    ),
    healthy(
        "encoder-noisy-labels",
        "encoder_classifier",
        (
            "    return TensorDataset(tokens.masked_fill",
            (
                "    wrong = torch.rand(size) < 0.15\n"
                "    labels = torch.where(wrong, torch.randint(CLASSES, (size,)), labels)\n"
                "    return TensorDataset(tokens.masked_fill"
            ),
        ),
        ("make_split(1920)", "make_split(3840)"),
        ("range(5)", "range(2)"),
        why="a seventh of the labels is wrong, so that the loss stays far above zero",
    ),
)
