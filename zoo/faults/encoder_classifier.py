"""Mistakes made in the encoder classifier."""

from holter.record.findings import Level
from zoo.specimens import fault

ADAMW = "torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)"
CLIP = "        nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
UPDATE = f"        loss.backward()\n{CLIP}        optimizer.step()\n"
TRAIN_AUTOCAST = 'with torch.autocast("cpu", dtype=torch.bfloat16):\n            logits'
HALF_AUTOCAST = TRAIN_AUTOCAST.replace("bfloat16", "float16")
SCALER = "\nscaler = torch.amp.GradScaler('cpu')\n"
SCALED_STEP = "        scaler.step(optimizer)\n        scaler.update()\n"
FEWER_EPOCHS = ("range(5)", "range(2)")  # float16 is slow on CPUs
EMPTY_TEXT = (
    "    tokens = torch.randint(10",
    "    lengths[350] = 0  # one text is empty\n    tokens = torch.randint(10",
)

SPECIMENS = (
    fault(
        "encoder-inverted-mask",
        "encoder_classifier",
        ("masked_fill(padding[:, None, None]", "masked_fill(~padding[:, None, None]"),
        why="the mask is inverted: a text without padding has no key left to attend to",
        cause="nonfinite-loss",
        accepts=("nonfinite-gradient",),
        level=Level.NUMERICS,
        by=5,
        source="N05",
    ),
    fault(
        "encoder-empty-text",
        "encoder_classifier",
        EMPTY_TEXT,
        why="the attention rows of one empty text are masked throughout: softmax gives NaN",
        cause="nonfinite-loss",
        accepts=("nonfinite-gradient",),
        level=Level.NUMERICS,
        by=45,
        source="N05",
    ),
    fault(
        "encoder-hidden-nan",
        "encoder_classifier",
        EMPTY_TEXT,
        (
            "            loss = criterion(logits, labels)\n",
            "            loss = criterion(torch.nan_to_num(logits), labels)\n",
        ),
        why="nan_to_num hides the NaN of an empty text from the loss, not from the gradients",
        cause="hidden-nonfinite",
        level=Level.NUMERICS,
        by=60,
        source="N03",
    ),
    fault(
        "encoder-sorted",
        "encoder_classifier",
        ("torch.randint(CLASSES, (size,))", "torch.randint(CLASSES, (size,)).sort().values"),
        ("batch_size=48, shuffle=True", "batch_size=48"),
        why="texts are sorted by class and not shuffled",
        cause="sorted-batches",
        level=Level.DATA,
        by=60,
        source="D02",
    ),
    fault(
        "encoder-other-vocabulary",
        "encoder_classifier",
        (
            "    return TensorDataset(tokens.masked_fill",
            (
                "    tokens = 1 + torch.randperm(VOCABULARY - 1)[tokens - 1]  # its own\n"
                "    return TensorDataset(tokens.masked_fill"
            ),
        ),
        why="training and validation texts were encoded with different vocabularies",
        cause="validation-mismatch",
        level=Level.DATA,
        by=120,
        source="D11",
    ),
    fault(
        "encoder-clip-before-unscale",
        "encoder_classifier",
        (ADAMW, "torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)" + SCALER),
        (TRAIN_AUTOCAST, HALF_AUTOCAST),
        (UPDATE, f"        scaler.scale(loss).backward()\n{CLIP}{SCALED_STEP}"),
        FEWER_EPOCHS,
        why="gradients are clipped to 1 while they still carry the scale of 65536",
        cause="scaled-clipping",
        level=Level.NUMERICS,
        by=60,
        source="N08",
    ),
    fault(
        "encoder-half-overflow",
        "encoder_classifier",
        (ADAMW, ADAMW + SCALER),
        (TRAIN_AUTOCAST, HALF_AUTOCAST),
        (UPDATE, f"        scaler.scale(loss).backward()\n{SCALED_STEP}"),
        ("return self.head(pooled)", "return self.head(pooled) * torch.tensor(1 / 0.07).exp()"),
        FEWER_EPOCHS,
        why="1 / 0.07 is taken for its own logarithm: logits are over the range of float16",
        cause="collapsing-loss-scale",
        accepts=("nonfinite-loss", "skipped-steps"),
        level=Level.NUMERICS,
        by=60,
        source="N09",
    ),
    fault(
        "encoder-eager-scale",
        "encoder_classifier",
        (ADAMW, ADAMW + SCALER.replace("'cpu'", "'cpu', growth_interval=1")),
        (TRAIN_AUTOCAST, HALF_AUTOCAST),
        (UPDATE, f"        scaler.scale(loss).backward()\n{SCALED_STEP}"),
        FEWER_EPOCHS,
        why="the scale doubles after every good step, so that every other step overflows",
        cause="skipped-steps",
        level=Level.NUMERICS,
        by=80,
        source="N09",
    ),
    fault(
        "encoder-rebuilt-model",
        "encoder_classifier",
        (f"optimizer = {ADAMW}\n", f"optimizer = {ADAMW}\nmodel = Classifier()  # a fresh start\n"),
        why="the model is re-created after the optimizer was made",
        cause="parameters-outside-model",
        accepts=("parameters-outside-optimizer",),
        level=Level.PROCEDURE,
        by=50,
        source="T06",
    ),
    fault(
        "encoder-zero-init",
        "encoder_classifier",
        (
            "model = Classifier()\n",
            "model = Classifier()\nfor each in model.parameters():\n    nn.init.zeros_(each)\n",
        ),
        why="all weights begin at zero, and stay equal",
        cause="identical-rows",
        accepts=("dead-gradients",),
        level=Level.ARCHITECTURE,
        by=60,
        source="A18",
    ),
    fault(
        "encoder-high-learning-rate",
        "encoder_classifier",
        ("lr=2e-3", "lr=0.2"),
        why="the learning rate is a hundred times too high",
        cause="huge-updates",
        level=Level.HYPERPARAMETER,
        by=60,
        source="H01",
    ),
    fault(
        "encoder-few-texts",
        "encoder_classifier",
        ("make_split(1920)", "make_split(144)"),
        ("for epoch in range(5)", "for epoch in range(60)"),
        ("< 0.5, cue", "< 0.3, cue"),
        why="a hundred texts are memorised",
        cause="overfitting",
        level=Level.DATA,
        by=180,
        source="H09",
    ),
    fault(
        "encoder-random-labels",
        "encoder_classifier",
        (
            "return TensorDataset(tokens",
            "labels = labels[torch.randperm(size)]\n    return TensorDataset(tokens",
        ),
        why="labels were shuffled apart from their texts, in training and in validation",
        cause="loss-at-constant-predictor",
        accepts=("independent-labels", "unrelated-labels"),
        level=Level.DATA,
        by=200,
        source="D01",
    ),
)
