"""Failures: trainings that end in a NaN, an Inf or a spike, and what a replay has to say of each.

Truths were written down from what each edit does, before it was replayed; where one was changed
afterwards, a comment says why. `TRUTHS` names faults of the corpus, too; the failures below are not
in it: `bench/replays.py` alone measures them.
"""

from dataclasses import dataclass

from holter.record.births import SINGULAR
from zoo.specimens import Edit, Specimen

NONE = "nothing"  # every batch fails on any weights: the code has to change
# Guards came later than most truths: where the code has to change, or a smaller step or another
# batch only postpones the failure, the guard is right as well.
LOG, ROOT, EXP, DIV, SOFTMAX = (
    f"guarded {operation}" for operation in ("log", "sqrt", "exp", "div", "softmax")
)
MEAN = "guarded nll_loss"
BATCH = ("step skipped", "previous batch", "another batch")
SMALLER = ("learning rate x 0.333", "learning rate x 0.1", "clip to 1")
EDITS = "edits of weights left out"  # of those that the script makes between steps
EARLIER = "learning rate before it rose"  # where a schedule has raised it
WIDER = "float32"

DATA, STATE = "data", "state"


@dataclass(frozen=True, slots=True)
class Truth:
    """What a replay has to say: kind and line of the birth, what cures it, data or state.

    A spike has no birth: its kind is empty. Where it is neither data nor state, `of` is empty: the
    code is wrong for every batch and all weights, or it takes a batch and weights to meet.
    """

    kind: str
    line: str
    cures: tuple[str, ...]
    of: str = ""

    @property
    def is_singular(self) -> bool:
        """Whether the operation has no value for such operands, however large they are."""
        return self.kind in SINGULAR


TRUTHS = {
    "critic-log-of-zero": Truth("log of zero", "log", (NONE, LOG)),
    "lm-manual-cross-entropy": Truth("log of zero", "log", (NONE, LOG)),
    "contrastive-overflow": Truth("exp overflow", "exp", (NONE, EXP)),
    "contrastive-root-of-zero": Truth("root at zero", "sqrt", (NONE, ROOT)),
    "encoder-inverted-mask": Truth("masked row", "", (NONE, SOFTMAX, *BATCH)),
    "encoder-empty-text": Truth("masked row", "", BATCH, DATA),
    "finetuning-log-of-zero": Truth("log of zero", "log", (LOG, *BATCH, *SMALLER)),
    "gan-log-of-zero": Truth("log of zero", "log", (LOG, *BATCH, *SMALLER)),
    # Several batches have no label, which a floor for the count cures as well as leaving them out.
    "tagger-unlabelled-batches": Truth("empty mean", "", (*BATCH, MEAN), DATA),
    "tagger-empty-mean": Truth("zero by zero", "sum", (*BATCH, DIV), DATA),
    "lstm-missing-readings": Truth("bad input", "", BATCH, DATA),
    "regression-square-root-at-zero": Truth("root at zero", "sqrt", (NONE, ROOT, *BATCH)),
    "resnet-log-of-zero": Truth("log of zero", "log", (NONE, LOG)),
    "tabular-missing-values": Truth("bad input", "", BATCH, DATA),
    "tabular-constant-column": Truth("bad input", "", (NONE,)),
    "tabular-unlabelled-batches": Truth("empty mean", "", (*BATCH, MEAN), DATA),
    "vae-exponential-overflow": Truth("exp overflow", "exp", (NONE, EXP, *SMALLER, *BATCH)),
    "regression-lr-too-high": Truth("overflow", "", SMALLER, STATE),
}
FAILURES: list[Specimen] = []


def failure(
    name: str,
    workload: str,
    *edits: Edit,
    why: str,
    cures: tuple[str, ...],
    kind: str = "",
    line: str = "",
    of: str = "",
) -> None:
    """A training that fails, and the truth about it."""
    FAILURES.append(Specimen(name, workload, edits, why))
    TRUTHS[name] = Truth(kind, line, cures, of)


# One pass over a table in its order, in batches of 16: row 1125 comes with step 70.
_IN_ORDER: Edit = ("batch_size=64, shuffle=True", "batch_size=16")
_ONE_EPOCH: Edit = ("FEATURES, EPOCHS = 12, 15", "FEATURES, EPOCHS = 12, 1")
_ONE_EPOCH_OF_ROWS: Edit = ("for epoch in range(10):", "for epoch in range(1):")
_ROWS, _PRICES = "train_set = TensorDataset(rows[:2048]", "train_set = TensorDataset(inputs[:2048]"
_HALF = '        with torch.autocast("cpu", dtype=torch.float16):\n    '

# Half precision: what float32 bears.

failure(
    "tabular-half-square",
    "tabular_mlp",
    _IN_ORDER,
    _ONE_EPOCH_OF_ROWS,
    (_ROWS, f"rows[1125] *= 3000\n{_ROWS}"),
    ("        self.head = nn.Linear(64, CLASSES)", "        self.head = nn.Linear(65, CLASSES)"),
    (
        "return self.head(self.body(x))",
        (
            "h = self.body(x)\n"
            "        energy = (h * h).sum(1, keepdim=True).log1p()\n"
            "        return self.head(torch.cat((h, energy), dim=1))"
        ),
    ),
    ("        loss = criterion(model(x), y)", f"{_HALF}        loss = criterion(model(x), y)"),
    why="hidden units are squared in float16; one row is large",
    kind="half range",
    line="h * h",
    cures=(WIDER,),
    of=DATA,
)
# First held to be the state. But logits pass 11 in one sample first: it takes that batch, too.
failure(
    "tabular-half-exponential",
    "tabular_mlp",
    ("lr=1e-3", "lr=3e-3"),
    ("nn.ReLU(), nn.Dropout(0.1)", "nn.ReLU()"),
    (
        "        loss = criterion(model(x), y)",
        (
            f"{_HALF}        e = model(x).exp()\n"
            "            p = (e / e.sum(1, keepdim=True)).float()\n"
            "            loss = -p[torch.arange(len(y)), y].log().mean()"
        ),
    ),
    why="a softmax by hand in float16, which ends at exp(11); logits grow beyond",
    kind="half range",
    line="exp",
    cures=(WIDER,),
)
failure(
    "contrastive-half-similarity",
    "contrastive",
    (
        "return F.normalize(self.projection(self.body(x)), dim=1)",
        "return self.projection(self.body(x))",
    ),
    (
        "FEATURES, BATCH, TEMPERATURE, EPOCHS = 48, 64, 0.2, 12",
        "FEATURES, BATCH, TEMPERATURE, EPOCHS = 48, 16, 0.2, 1",
    ),
    ("shuffle=True, drop_last", "drop_last"),
    ("train_loader = DataLoader(", "things[1125] *= 3000\ntrain_loader = DataLoader("),
    (
        "        loss = contrast(model(view(x)), model(view(x)))\n",
        f"{_HALF}        loss = contrast(model(view(x)), model(view(x)))\n",
    ),
    why="similarities of vectors that nobody normalises, in float16; one sample is large",
    kind="half range",
    line="z @ z.T",
    cures=(WIDER, *BATCH),
    of=DATA,
)
failure(
    "finetuning-bfloat16-probabilities",
    "finetuning",
    (
        "        logits = model(images).squeeze(1)\n        loss = criterion(logits, labels)\n",
        (
            '        with torch.autocast("cpu", dtype=torch.bfloat16):\n'
            "            p = model(images).squeeze(1).sigmoid()\n"
            "            loss = -(labels * p.log() + (1 - labels) * (1 - p).log()).mean()\n"
        ),
    ),
    why="a sigmoid in bfloat16 is 1 from 6 on, and the log of 1 - p is taken",
    kind="log of zero",
    line="log",
    cures=(WIDER,),
)
failure(
    "tabular-half-epsilon",
    "tabular_mlp",
    _IN_ORDER,
    _ONE_EPOCH_OF_ROWS,
    (_ROWS, f"rows[1125] *= 30\nlabels[1125] = (labels[1125] + 1) % CLASSES\n{_ROWS}"),
    (
        "        loss = criterion(model(x), y)",
        (
            f"{_HALF}        p = model(x).softmax(1)[torch.arange(len(y)), y]\n"
            "            loss = -torch.log(p + 1e-8).mean()"
        ),
    ),
    why="the 1e-8 that keeps a logarithm from 0 is 0 in float16; one row is large and mislabelled",
    kind="half range",
    line="log",
    cures=(WIDER,),
    of=DATA,
)
failure(
    "regression-half-gradients",
    "regression_mlp",
    _IN_ORDER,
    _ONE_EPOCH,
    (_PRICES, f"targets[1120:1136] = -32_000\n{_PRICES}"),
    ("nn.MSELoss()", 'nn.MSELoss(reduction="sum")'),
    ("        loss = criterion(model(x), y)", f"{_HALF}        loss = criterion(model(x), y)"),
    why="gradients in float16 without a scaler; one batch has wrong targets",
    kind="half range",
    line="model(x)",
    cures=(WIDER, *BATCH),
    of=DATA,
)

# Spikes: nothing is born, the loss goes up and stays.

failure(
    "regression-outlier-targets",
    "regression_mlp",
    ("batch_size=64, shuffle=True", "batch_size=8"),
    _ONE_EPOCH,
    (_PRICES, f"targets[1200:1208] *= 1000\n{_PRICES}"),
    why="one batch has its prices in another currency; Adam goes on in its direction",
    cures=BATCH,
    of=DATA,
)
failure(
    "lstm-outlier-readings",
    "lstm",
    ("batch_size=32, shuffle=True", "batch_size=8"),
    ("WINDOW, EPOCHS = 24, 8", "WINDOW, EPOCHS = 24, 1"),
    ("        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n", ""),
    ("train_set = Ten", "targets[960:968] *= -1000\ntrain_set = Ten"),
    why="a sensor of another unit in one batch, and nothing clips",
    cures=BATCH,
    of=DATA,
)
failure(
    "regression-raised-rate",
    "regression_mlp",
    ("batch_size=64", "batch_size=16"),
    ("FEATURES, EPOCHS = 12, 15", "FEATURES, EPOCHS = 12, 2"),
    (
        "StepLR(optimizer, step_size=5, gamma=0.3)",
        "LambdaLR(optimizer, lambda step: 300.0 if step >= 120 else 1.0)",
    ),
    ("lr=3e-3", "lr=1e-3"),
    ("    scheduler.step()\n\n", "\n"),
    ("        optimizer.step()\n", "        optimizer.step()\n        scheduler.step()\n"),
    why="a schedule raises the learning rate 300 times at step 120",
    cures=(*SMALLER, EARLIER),
    of=STATE,
)
failure(
    "gan-raised-rate",
    "gan",
    ("LATENT, EPOCHS = 2, 10", "LATENT, EPOCHS = 2, 4"),
    (
        "\nfor epoch in",
        (
            "scheduler = torch.optim.lr_scheduler.LambdaLR(\n"
            "    optimizer_d, lambda step: 100.0 if step >= 70 else 1.0\n)\n\nfor epoch in"
        ),
    ),
    ("        optimizer_g.step()\n", "        optimizer_g.step()\n        scheduler.step()\n"),
    why="a schedule raises the discriminator's learning rate 100 times at step 70",
    cures=(*SMALLER, EARLIER),
    of=STATE,
)
failure(
    "cnn-raised-rate",
    "cnn_batchnorm",
    ("    scheduler.step()\n", ""),
    (
        "CosineAnnealingLR(optimizer, T_max=EPOCHS)",
        "LambdaLR(optimizer, lambda step: 60.0 if step >= 70 else 1.0)",
    ),
    ("        optimizer.step()\n", "        optimizer.step()\n        scheduler.step()\n"),
    why="a schedule raises the learning rate 60 times at step 70, with momentum",
    cures=(*SMALLER, EARLIER),
    of=STATE,
)

# One sample that an operation cannot be given.

failure(
    "tabular-zero-row",
    "tabular_mlp",
    _IN_ORDER,
    _ONE_EPOCH_OF_ROWS,
    (_ROWS, f"rows[1125] = 0\n{_ROWS}"),
    (
        "return self.head(self.body(x))",
        "return self.head(self.body(x / x.norm(dim=1, keepdim=True)))",
    ),
    why="rows are divided by their norm, and one is 0",
    kind="zero norm",
    line="norm",
    cures=BATCH,
    of=DATA,
)
failure(
    "contrastive-equal-samples",
    "contrastive",
    (
        "FEATURES, BATCH, TEMPERATURE, EPOCHS = 48, 64, 0.2, 12",
        "FEATURES, BATCH, TEMPERATURE, EPOCHS = 48, 16, 0.2, 1",
    ),
    ("shuffle=True, drop_last", "drop_last"),
    ("train_loader = DataLoader(", "things[1125] = things[1124]\ntrain_loader = DataLoader("),
    (
        "        loss = contrast(model(view(x)), model(view(x)))\n",
        (
            "        z = model(x)\n"
            "        apart = ((z[1:] - z[:-1]) ** 2).sum(1).sqrt()\n"
            "        loss = contrast(model(view(x)), model(view(x))) - 0.1 * apart.mean()\n"
        ),
    ),
    why="the distance of two equal samples is a root of 0, whose slope is infinite",
    kind="root at zero",
    line="sqrt",
    cures=BATCH,
    of=DATA,
)
failure(
    "encoder-empty-text-in-torch",
    "encoder_classifier",
    ("batch_size=48, shuffle=True", "batch_size=16"),
    ("for epoch in range(5):", "for epoch in range(1):"),
    (
        "train_loader = DataLoader(",
        "train_set.tensors[0][1125] = PAD\ntrain_loader = DataLoader(",
    ),
    (
        "        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)\n",
        "        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)\n",
    ),
    (
        (
            "        q, k, v = (\n"
            "            each.unflatten(2, (HEADS, -1)).transpose(1, 2) for each in"
            " self.qkv(x).chunk(3, 2)\n        )\n"
            "        scores = q @ k.transpose(2, 3) / (WIDTH // HEADS) ** 0.5\n"
            '        scores = scores.masked_fill(padding[:, None, None], float("-inf"))\n'
            "        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))\n"
        ),
        "        return self.out(self.attention(x, x, x, key_padding_mask=padding)[0])\n",
    ),
    why="attention of torch is given a text of padding only",
    kind="masked row",
    line="self.attention(",
    cures=BATCH,
    of=DATA,
)
failure(
    "lstm-stuck-sensor",
    "lstm",
    ("batch_size=32, shuffle=True", "batch_size=16"),
    ("WINDOW, EPOCHS = 24, 8", "WINDOW, EPOCHS = 24, 1"),
    ("train_set = Ten", "inputs[1000] = 0.5\ntrain_set = Ten"),
    (
        "        states, _ = self.rnn(x)\n",
        (
            "        x = (x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True)\n"
            "        states, _ = self.rnn(x)\n"
        ),
    ),
    why="each series is divided by its spread, and one does not move",
    kind="zero by zero",
    line="std",
    cures=BATCH,
    of=DATA,
)
failure(
    "lstm-batch-of-one",
    "lstm",
    ("batch_size=32", "batch_size=16"),
    ("WINDOW, EPOCHS = 24, 8", "WINDOW, EPOCHS = 24, 2"),
    (
        "TensorDataset(inputs[:1280], targets[:1280])",
        "TensorDataset(inputs[:1281], targets[:1281])",
    ),
    (
        "        loss = criterion(prediction, y)\n",
        "        loss = criterion(prediction, y) / y.std(0).clamp(min=0.5).mean()\n",
    ),
    why="the loss is divided by the spread of the batch, and the last batch has one sample",
    kind="empty mean",
    line="std",
    cures=BATCH,
    of=DATA,
)
failure(
    "regression-log-of-negative",
    "regression_mlp",
    _IN_ORDER,
    _ONE_EPOCH,
    ("inputs = (features", "prices[1125] = -1000\ninputs = (features"),
    (
        "targets = (prices - prices[:2048].mean()) / prices[:2048].std()",
        "targets = prices / prices[:2048].std()",
    ),
    (
        "        loss = criterion(model(x), y)",
        "        loss = criterion(model(x), torch.log(y))",
    ),
    why="logarithms of prices, one of which was paid back",
    kind="outside domain",
    line="log",
    cures=BATCH,
    of=DATA,
)
failure(
    "regression-angle-outside",
    "regression_mlp",
    _IN_ORDER,
    _ONE_EPOCH,
    (_PRICES, f"targets = torch.tanh(targets)\ntargets[1125] = 1.0001\n{_PRICES}"),
    ("        loss = criterion(model(x), y)", "        loss = criterion(model(x), y.acos())"),
    why="an angle from a cosine that was rounded to above 1",
    kind="outside domain",
    line="acos",
    cures=BATCH,
    of=DATA,
)
failure(
    "vae-gamma-of-negative",
    "autoencoder_vae",
    ("batch_size=64, shuffle=True", "batch_size=16"),
    ("SIZE, LATENT, EPOCHS = 12, 6, 12", "SIZE, LATENT, EPOCHS = 12, 6, 1"),
    ("valid_images = make", "train_images[1125, 7] = -0.01\nvalid_images = make"),
    ("        hidden = self.encoder(x)\n", "        hidden = self.encoder(x**0.45)\n"),
    why="a power of 0.45 of pixels, one of which is a little below 0",
    kind="outside domain",
    line="x**0.45",
    cures=BATCH,
    of=DATA,
)
failure(
    "vae-black-image",
    "autoencoder_vae",
    ("batch_size=64, shuffle=True", "batch_size=16"),
    ("SIZE, LATENT, EPOCHS = 12, 6, 12", "SIZE, LATENT, EPOCHS = 12, 6, 1"),
    ("valid_images = make", "train_images[1125] = 0\nvalid_images = make"),
    (
        "        optimizer.zero_grad()\n",
        "        x /= x.amax(1, keepdim=True)\n        optimizer.zero_grad()\n",
    ),
    why="images are divided by their brightest pixel, in place, before the model sees them",
    kind="zero by zero",
    line="x /= x.amax",
    cures=BATCH,
    of=DATA,
)
# Added when `vae-black-image` was missed: what is edited in place is captured after the edit.
failure(
    "vae-black-image-in-model",
    "autoencoder_vae",
    ("batch_size=64, shuffle=True", "batch_size=16"),
    ("SIZE, LATENT, EPOCHS = 12, 6, 12", "SIZE, LATENT, EPOCHS = 12, 6, 1"),
    ("valid_images = make", "train_images[1125] = 0\nvalid_images = make"),
    (
        "        hidden = self.encoder(x)\n",
        (
            "        x = x.clone()\n"
            "        x /= x.amax(1, keepdim=True)\n"
            "        hidden = self.encoder(x)\n"
        ),
    ),
    why="images are divided by their brightest pixel, in place, in the model",
    kind="zero by zero",
    line="x /= x.amax",
    cures=BATCH,
    of=DATA,
)
failure(
    "vae-black-image-in-loop",
    "autoencoder_vae",
    ("batch_size=64, shuffle=True", "batch_size=16"),
    ("SIZE, LATENT, EPOCHS = 12, 6, 12", "SIZE, LATENT, EPOCHS = 12, 6, 1"),
    ("valid_images = make", "train_images[1125] = 0\nvalid_images = make"),
    (
        "        optimizer.zero_grad()\n",
        "        x = x / x.amax(1, keepdim=True)\n        optimizer.zero_grad()\n",
    ),
    why="images are divided by their brightest pixel before the model sees them",
    kind="zero by zero",
    line="x / x.amax",
    cures=BATCH,
    of=DATA,
)
failure(
    "regression-missing-label",
    "regression_mlp",
    ("batch_size=64", "batch_size=16"),
    ("FEATURES, EPOCHS = 12, 15", "FEATURES, EPOCHS = 12, 2"),
    (_PRICES, f'targets[1125] = float("nan")\n{_PRICES}'),
    why="one price is missing",
    kind="bad input",
    line="criterion(",
    cures=BATCH,
    of=DATA,
)
failure(
    "regression-second-micro-batch",
    "regression_mlp",
    _IN_ORDER,
    ("FEATURES, EPOCHS = 12, 15", "FEATURES, EPOCHS = 12, 3"),
    ("inputs = (features", "prices[1973] = 0\ninputs = (features"),
    (
        "targets = (prices - prices[:2048].mean()) / prices[:2048].std()",
        "targets = prices / prices[:2048].std()",
    ),
    ("    nn.Linear(64, 1),", "    nn.Dropout(0.1),\n    nn.Linear(64, 1),"),
    (
        "    for x, y in train_loader:\n        optimizer.zero_grad()\n",
        "    for place, (x, y) in enumerate(train_loader):\n",
    ),
    (
        (
            "        loss = criterion(model(x), y)\n        loss.backward()\n"
            "        optimizer.step()\n"
        ),
        (
            "        loss = criterion(model(x), torch.log(y)) / 2\n        loss.backward()\n"
            "        if place % 2:\n"
            "            optimizer.step()\n"
            "            optimizer.zero_grad()\n"
        ),
    ),
    why="two batches make a step; a price of 0 is in the second of them",
    kind="log of zero",
    line="log",
    cures=BATCH,
    of=DATA,
)

# What is random, and what grows.

failure(
    "tabular-nothing-kept",
    "tabular_mlp",
    ("nn.ReLU(), nn.Dropout(0.1)", "nn.ReLU()"),
    ("for epoch in range(10):", "for epoch in range(4):"),
    (
        "return self.head(self.body(x))",
        (
            "h = self.body(x)\n"
            "        kept = (torch.rand_like(h) < 0.12).float()\n"
            "        return self.head(h * kept / kept.mean(1, keepdim=True))"
        ),
    ),
    why="a dropout by hand divides by the share that it kept: now and then that is 0",
    kind="zero by zero",
    line="kept.mean",
    cures=(DIV, *BATCH),
)
# First held to be the state, as above: the largest logit of one batch passes 88 before all others.
failure(
    "tabular-growing-weights",
    "tabular_mlp",
    ("lr=1e-3", "lr=5e-3"),
    (
        "        loss = criterion(model(x), y)",
        (
            "        logits = model(x)\n"
            "        norm = sum((each**2).sum() for each in model.parameters())\n"
            "        surprise = logits.exp().sum(1).log() - logits[torch.arange(len(y)), y]\n"
            "        loss = surprise.mean() - 0.01 * norm"
        ),
    ),
    why="the weight penalty has the wrong sign, and a softmax by hand overflows beyond 88",
    kind="exp overflow",
    line="exp",
    cures=(NONE, EXP, *SMALLER),
)
failure(
    "lstm-exploding-recurrence",
    "lstm",
    ("nn.LSTM(1, 32, batch_first=True)", 'nn.RNN(1, 32, batch_first=True, nonlinearity="relu")'),
    ("optim.Adam(model.parameters(), lr=5e-3)", "optim.SGD(model.parameters(), lr=1.0)"),
    (
        "\nfor epoch in",
        (
            "scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 0.01, total_iters=100)\n"
            "\nfor epoch in"
        ),
    ),
    ("        optimizer.step()\n", "        optimizer.step()\n        scheduler.step()\n"),
    ("        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n", ""),
    why="a recurrence without bounds, a rate that warms up to 1, and nothing clips",
    kind="overflow",
    cures=(*SMALLER, EARLIER),
    of=STATE,
)

# What lies outside the step: weights and gradients that the script writes to, settings that a
# schedule moves, phases that take turns.

_STEP = "        optimizer.step()\n"
_COUNTED: Edit = (
    "    for x, y in train_loader:\n",
    "    for place, (x, y) in enumerate(train_loader):\n",
)
_NO_PRICE: Edit = (_PRICES, f'targets[1125] = float("nan")\n{_PRICES}')

failure(
    "tabular-renormalised-head",
    "tabular_mlp",
    _IN_ORDER,
    _ONE_EPOCH_OF_ROWS,
    (_ROWS, f"rows[1125] = 0\n{_ROWS}"),
    (
        "return self.head(self.body(x))",
        "return self.head(self.body(x / x.norm(dim=1, keepdim=True)))",
    ),
    (
        _STEP,
        (
            f"{_STEP}        with torch.no_grad():\n"
            "            norms = model.head.weight.norm(dim=1, keepdim=True)\n"
            "            model.head.weight.div_(norms)\n"
        ),
    ),
    why="the rows of the head get norm 1 after each step; one row of the data is 0",
    kind="zero norm",
    line="norm",
    cures=BATCH,
    of=DATA,
)
failure(
    "tabular-rescaled-units",
    "tabular_mlp",
    _IN_ORDER,
    _ONE_EPOCH_OF_ROWS,
    _COUNTED,
    (
        _STEP,
        (
            f"{_STEP}        if place == 70:\n"
            "            with torch.no_grad():\n"
            "                spread = torch.relu(model.body[0](x[:3])).std(dim=0)\n"
            "                model.body[0].weight.div_(spread[:, None])\n"
        ),
    ),
    why="the units of a layer are divided by their spread on three rows, which is 0 for some",
    kind="division by zero",
    line=".div_(spread",
    cures=(EDITS, DIV),
)
failure(
    "gan-clamped-critic",
    "gan",
    ("LATENT, EPOCHS = 2, 10", "LATENT, EPOCHS = 2, 1"),
    ("batch_size=64, shuffle=True", "batch_size=16"),
    ("loader = DataLoader(", 'points[1125] = float("nan")\nloader = DataLoader('),
    ("    for (real,) in loader:\n", "    for place, (real,) in enumerate(loader):\n"),
    (
        "        optimizer_d.step()\n",
        (
            "        optimizer_d.step()\n"
            "        for each in discriminator.parameters():\n"
            "            each.data.clamp_(-0.1, 0.1)\n"
            "        if place % 5:\n"
            "            continue\n"
        ),
    ),
    why="the critic steps five times for each step of the generator and is clamped; a point is NaN",
    kind="bad input",
    line="discriminator(real)",
    cures=BATCH,
    of=DATA,
)
failure(
    "regression-averaged-weights",
    "regression_mlp",
    _IN_ORDER,
    _ONE_EPOCH,
    _NO_PRICE,
    _COUNTED,
    ("\nfor epoch in", "average = copy.deepcopy(model)\n\nfor epoch in"),
    ("import argparse\n", "import argparse\nimport copy\n"),
    (
        _STEP,
        (
            f"{_STEP}        for mean, each in zip(average.parameters(), model.parameters()):\n"
            "            mean.data.lerp_(each.data, 0.1)\n"
            "        if place % 12 == 11:\n"
            "            model.load_state_dict(average.state_dict())\n"
        ),
    ),
    why="an average of the weights is swapped in every 12 steps; one price is missing",
    kind="bad input",
    line="criterion(",
    cures=BATCH,
    of=DATA,
)
failure(
    "regression-hand-written-scaler",
    "regression_mlp",
    _IN_ORDER,
    _ONE_EPOCH,
    _NO_PRICE,
    _COUNTED,
    ("\nfor epoch in", "scale = 1024.0\n\nfor epoch in"),
    (
        f"        loss.backward()\n{_STEP}",
        (
            "        (loss * scale).backward()\n"
            "        for each in model.parameters():\n"
            f"            each.grad.div_(scale)\n{_STEP}"
            "        if place % 20 == 19:\n"
            "            scale *= 2\n"
        ),
    ),
    why="a loss scale by hand, doubled every 20 steps; one price is missing",
    kind="bad input",
    line="criterion(",
    cures=BATCH,
    of=DATA,
)
failure(
    "regression-cycled-momentum",
    "regression_mlp",
    _IN_ORDER,
    _ONE_EPOCH,
    _NO_PRICE,
    ("StepLR(optimizer, step_size=5, gamma=0.3)", "OneCycleLR(optimizer, 3e-3, total_steps=200)"),
    ("    scheduler.step()\n\n", "\n"),
    (_STEP, f"{_STEP}        scheduler.step()\n"),
    why="a schedule moves Adam's betas at each step; one price is missing",
    kind="bad input",
    line="criterion(",
    cures=BATCH,
    of=DATA,
)
failure(
    "regression-scaled-by-hand",
    "regression_mlp",
    _IN_ORDER,
    _ONE_EPOCH,
    _COUNTED,
    (
        _STEP,
        (
            f"{_STEP}        if place >= 70:\n"
            "            with torch.no_grad():\n"
            "                model[2].weight.mul_(1000)\n"
        ),
    ),
    why="from step 70 on the script multiplies a weight by 1000 after each step",
    kind="overflow",
    cures=(EDITS,),
)


# Updates that make what is not finite, and updates that grow with the number of batches.

_SQUARES = """\
class Squares(torch.optim.Optimizer):
    def __init__(self, parameters, lr):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for each in group["params"]:
                state = self.state[each]
                if not state:
                    state["mean"], state["square"] = torch.zeros_like(each), torch.zeros_like(each)
                state["mean"].lerp_(each.grad, 0.1)
                state["square"].lerp_(each.grad.square(), 0.02)
                spread = (state["square"] - state["mean"].square()).sqrt()
                each.sub_(group["lr"] * state["mean"] / (spread + 1e-3))


"""

failure(
    "regression-adam-without-epsilon",
    "regression_mlp",
    (_PRICES, f"inputs[:, 11] = 0\n{_PRICES}"),
    ("lr=3e-3)", "lr=3e-3, eps=0)"),
    why="a column is always 0: its weights have no gradient, and Adam divides 0 by 0",
    kind="zero by zero",
    line="optimizer.step()",
    cures=("larger epsilon",),
)
failure(
    "regression-hand-written-optimizer",
    "regression_mlp",
    (_PRICES, f"inputs[:, 11] = 0\n{_PRICES}"),
    ("criterion = nn.MSELoss()\n", f"{_SQUARES}criterion = nn.MSELoss()\n"),
    ("torch.optim.Adam(", "Squares("),
    why="the optimizer of the script takes the root of E[g^2] - E[g]^2 with two decay rates",
    kind="outside domain",
    line=".sqrt()",
    cures=(ROOT,),
)
failure(
    "regression-changed-accumulation",
    "regression_mlp",
    _IN_ORDER,
    ("FEATURES, EPOCHS = 12, 15", "FEATURES, EPOCHS = 12, 7"),
    (
        "torch.optim.Adam(model.parameters(), lr=3e-3)",
        "torch.optim.SGD(model.parameters(), lr=0.1)",
    ),
    (
        "    for x, y in train_loader:\n        optimizer.zero_grad()\n",
        (
            "    together = 2 if epoch < 2 else 64\n"
            "    for place, (x, y) in enumerate(train_loader, 1):\n"
        ),
    ),
    (
        f"        loss.backward()\n{_STEP}",
        (
            "        (loss / 2).backward()\n"
            "        if place % together == 0:\n"
            "            optimizer.step()\n"
            "            optimizer.zero_grad()\n"
        ),
    ),
    why="from the third pass on 64 batches make a step, and the loss is divided by 2 as before",
    kind="overflow",
    # Divided gradients came later; both give the step the size that it had.
    cures=(
        "gradients divided by the backward passes of a step",
        "as many batches per step as before",
    ),
)
failure(
    "regression-log-of-a-share",
    "regression_mlp",
    ("lr=3e-3)", "lr=1e-2)"),
    (
        "        loss = criterion(model(x), y)",
        (
            "        share = torch.sigmoid(8 * model(x))\n"
            "        above = (y > 0).float()\n"
            "        loss = -(above * share.log() + (1 - above) * (1 - share).log()).mean()"
        ),
    ),
    why="a cross-entropy by hand: once the model is sure, 0 is multiplied by the log of 0",
    kind="log of zero",
    line="log",
    cures=(LOG,),
)
# From here on: misses of the ninth blind round.
failure(
    "regression-equal-row-in-worker",
    "regression_mlp",
    _ONE_EPOCH,
    ("batch_size=64, shuffle=True", "batch_size=16, num_workers=1"),
    (
        "train_set = TensorDataset(inputs[:2048], targets[:2048])\n",
        (
            "inputs[1125] = 1.0\n"
            "class Rows(torch.utils.data.Dataset):\n"
            "    def __len__(self):\n"
            "        return 2048\n"
            "    def __getitem__(self, i):\n"
            "        row = inputs[i]\n"
            "        return (row - row.mean()) / row.std(), targets[i]\n"
            "train_set = Rows()\n"
        ),
    ),
    why="each row is standardised by itself in a worker of the loader, and one has equal numbers",
    kind="zero by zero",
    line="row.std()",
    cures=(DIV, *BATCH),
    of=DATA,
)
failure(
    "regression-cancelled-variance",
    "regression_mlp",
    _IN_ORDER,
    _ONE_EPOCH,
    ("train_set = TensorDataset(inputs", "inputs[:, 0] += 2300\ntrain_set = TensorDataset(inputs"),
    (
        "model = nn.Sequential(\n",
        (
            "class Scale(nn.Module):\n"
            "    def __init__(self):\n"
            "        super().__init__()\n"
            '        self.register_buffer("first", inputs[:64].mean(0))\n'
            '        self.register_buffer("second", inputs[:64].square().mean(0))\n'
            "    def forward(self, x):\n"
            "        if self.training:\n"
            "            self.first.lerp_(x.mean(0), 0.05)\n"
            "            self.second.lerp_(x.square().mean(0), 0.05)\n"
            "        return (x - self.first) / torch.sqrt(self.second - self.first**2)\n"
            "model = nn.Sequential(\n"
            "    Scale(),\n"
        ),
    ),
    why="a variance as mean of squares minus square of mean cancels out in float32",
    kind="division by zero",  # of 0 first, and of negative numbers later
    line="torch.sqrt",
    cures=(ROOT, DIV),
)
