"""Mistakes in the stream of samples, in several workloads."""

from holter.record.findings import Level
from zoo.specimens import Edit, Specimen, fault

ROWS = "train_set = TensorDataset(rows[:2048], labels[:2048])"
NUMBERS = "train_set = TensorDataset(inputs[:2048], targets[:2048])"
IMAGES = "train_set = TensorDataset(train_images, train_labels)"
SHUFFLED = "train_loader = DataLoader(train_set, batch_size=64, shuffle=True"

_PARTS = {
    "tabular_mlp": (ROWS, "rows[:2048].clone(), labels[:2048]"),
    "regression_mlp": (NUMBERS, "inputs[:2048].clone(), targets[:2048]"),
    "cnn_batchnorm": (IMAGES, "train_images.clone(), train_labels"),
}


def served(workload: str, *body: str, state: str = "") -> Edit:
    """Return the edit that gives the training set a `__getitem__` of its own."""
    old, tensors = _PARTS[workload]
    lines = "".join(f"        {line}\n" for line in body)
    return old, (
        f"class Served(TensorDataset):\n{state}    def __getitem__(self, index):\n"
        f"        sample, label = (each[index] for each in self.tensors)\n{lines}\n\n"
        f"train_set = Served({tensors})"
    )


def _drifting(name: str, workload: str, edit: Edit, why: str) -> Specimen:
    return fault(
        name,
        workload,
        edit,
        why=why,
        cause="drifting-inputs",
        accepts=("mismatched-validation-inputs",),
        level=Level.DATA,
        by=200,
        source="D",
    )


def _few(name: str, workload: str, *edits: Edit, why: str) -> Specimen:
    return fault(
        name,
        workload,
        *edits,
        why=why,
        cause="few-distinct-samples",
        level=Level.DATA,
        by=320,
        source="D",
    )


def _collapsed(name: str, workload: str, *edits: Edit, why: str) -> Specimen:
    return fault(
        name,
        workload,
        *edits,
        why=why,
        cause="collapsed-batch",
        level=Level.DATA,
        by=100,
        source="D",
    )


SPECIMENS = (
    _drifting(
        "tabular-scaled-in-place",
        "tabular_mlp",
        served("tabular_mlp", "sample *= 0.6 + 0.2 * torch.rand(())", "return sample, label"),
        "an augmentation scales the rows of the data set in place",
    ),
    _drifting(
        "regression-noise-accumulates",
        "regression_mlp",
        served(
            "regression_mlp", "sample += 0.8 * torch.randn_like(sample)", "return sample, label"
        ),
        "an augmentation adds noise to the data set itself, again in every epoch",
    ),
    _drifting(
        "cnn-contrast-in-place",
        "cnn_batchnorm",
        served("cnn_batchnorm", "sample.mul_(1.3)", "return sample, label"),
        "a transform raises the contrast of the stored images at every visit",
    ),
    _drifting(
        "tabular-scaler-runs-on",
        "tabular_mlp",
        (
            "    model.train()\n",
            ("    model.train()\n    train_set.tensors[0].div_(train_set.tensors[0].std() + 1)\n"),
        ),
        "the training rows are scaled again before every epoch",
    ),
    _drifting(
        "regression-offset-in-place",
        "regression_mlp",
        served("regression_mlp", "sample += 0.5", "return sample, label"),
        "a correction is added to the stored rows at every visit",
    ),
    _few(
        "tabular-index-modulo",
        "tabular_mlp",
        served("tabular_mlp", "return tuple(each[index % 20] for each in self.tensors)"),
        why="the index is taken modulo a number that is not the length of the data",
    ),
    _few(
        "regression-index-modulo",
        "regression_mlp",
        served("regression_mlp", "return tuple(each[index % 16] for each in self.tensors)"),
        why="the index is taken modulo the batch of an older version",
    ),
    _few(
        "tabular-cache-by-block",
        "tabular_mlp",
        served(
            "tabular_mlp",
            "return self.cache.setdefault(index // 128, (sample, label))",
            state="    cache = {}\n\n",
        ),
        why="a cache stores one sample for each block of 128",
    ),
    _few(
        "cnn-index-modulo",
        "cnn_batchnorm",
        served("cnn_batchnorm", "return tuple(each[index % 64] for each in self.tensors)"),
        why="only the first batch of images is ever served",
    ),
    _few(
        "tabular-repeated-subset",
        "tabular_mlp",
        (
            ROWS,
            (
                f"{ROWS}\ntrain_set = torch.utils.data.Subset(\n"
                "    train_set, [index // 128 for index in range(2048)]\n)"
            ),
        ),
        why="the indices of a subset are divided by the number of blocks",
    ),
    *(
        fault(
            f"{name}-weights-of-classes",
            workload,
            (
                SHUFFLED,
                (
                    f"{chance}\n"
                    "sampler = torch.utils.data.WeightedRandomSampler(chances, len(train_set))\n"
                    "train_loader = DataLoader(train_set, batch_size=64, sampler=sampler"
                ),
            ),
            why="the weighted sampler is given weights of classes instead of samples",
            cause="misused-sampler-weights",
            level=Level.DATA,
            by=50,
            source="D",
        )
        for name, workload, chance in (
            ("tabular", "tabular_mlp", "chances = 1 / labels[:2048].bincount()"),
            ("cnn", "cnn_batchnorm", "chances = 1 / train_labels.bincount()"),
        )
    ),
    *(
        _collapsed(
            f"{name}-collate-repeats",
            workload,
            (
                SHUFFLED,
                (
                    "def collate(batch):\n"
                    "    labels = torch.stack([label for _, label in batch])\n"
                    "    return torch.stack([batch[0][0]] * len(batch)), labels\n\n\n"
                    f"{SHUFFLED}, collate_fn=collate"
                ),
            ),
            why="the collate function repeats the first sample of a batch",
        )
        for name, workload in (
            ("tabular", "tabular_mlp"),
            ("regression", "regression_mlp"),
            ("cnn", "cnn_batchnorm"),
        )
    ),
    _collapsed(
        "tabular-shared-buffer",
        "tabular_mlp",
        served(
            "tabular_mlp",
            "return self.buffer.copy_(sample), label",
            state="    buffer = torch.empty(FEATURES)\n\n",
        ),
        why="all samples of a batch are one buffer, which holds the last of them",
    ),
    fault(
        "tabular-workers-repeat",
        "tabular_mlp",
        (
            ROWS,
            (
                "class Rows(torch.utils.data.IterableDataset):\n    def __iter__(self):\n"
                "        order = torch.randperm(2048, generator=torch.Generator().manual_seed(1))\n"
                "        yield from ((rows[index], labels[index]) for index in order)\n\n\n"
                "train_set = Rows()"
            ),
        ),
        (SHUFFLED, "train_loader = DataLoader(train_set, batch_size=64, num_workers=2"),
        ("range(10)", "range(4)"),
        why="both workers serve the whole stream",
        cause="duplicated-workers",
        level=Level.DATA,
        by=100,
        source="D",
    ),
    fault(
        "regression-reseeded",
        "regression_mlp",
        ("    model.train()\n", "    model.train()\n    torch.manual_seed(7)\n"),
        why="the seed is set again before every epoch: all shuffles are the same",
        cause="repeated-order",
        level=Level.DATA,
        by=100,
        source="D",
    ),
    fault(
        "contrastive-no-negatives",
        "contrastive",
        (
            "    return F.cross_entropy(similarity, twin)",
            "    return 1 - similarity[torch.arange(len(z)), twin].mean() * TEMPERATURE",
        ),
        why="views are pulled together, and nothing keeps different things apart",
        cause="collapsed-embeddings",
        level=Level.ARCHITECTURE,
        by=300,
        source="A",
    ),
    fault(
        "contrastive-squared-distance",
        "contrastive",
        (
            "        loss = contrast(model(view(x)), model(view(x)))\n",
            "        loss = (model(view(x)) - model(view(x))).square().sum(1).mean()\n",
        ),
        why="the loss is the distance of two views alone",
        cause="collapsed-embeddings",
        accepts=("validation-mismatch",),
        level=Level.ARCHITECTURE,
        by=300,
        source="A",
    ),
    fault(
        "vae-strong-divergence",
        "autoencoder_vae",
        ("return reconstruction + divergence", "return reconstruction + 30 * divergence"),
        why="the divergence outweighs the reconstruction: the latent equals the prior",
        cause="collapsed-embeddings",
        accepts=("loss-at-constant-predictor", "outweighed-term", "underfitting"),
        level=Level.HYPERPARAMETER,
        by=300,
        source="H",
    ),
    fault(
        "gan-pulled-to-the-mean",
        "gan",
        (
            "        loss_g = criterion(discriminator(fake), ones)\n",
            (
                "        loss_g = criterion(discriminator(fake), ones)\n"
                "        loss_g = loss_g + 100 * (fake - real).square().mean()\n"
            ),
        ),
        why="the generator has to return the real point of the same row, which noise cannot tell",
        cause="collapsed-outputs",
        level=Level.HYPERPARAMETER,
        by=300,
        source="H",
    ),
)
