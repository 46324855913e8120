"""Healthy streams of samples that look odd, in several workloads."""

from zoo.faults.streaming import NUMBERS, ROWS, SHUFFLED, served
from zoo.specimens import healthy

SPECIMENS = (
    healthy(
        "tabular-weighted-sampler",
        "tabular_mlp",
        (
            "labels = torch.randint(CLASSES, (2560,))",
            "labels = torch.multinomial(torch.tensor([8.0, 4, 2, 1, 1]), 2560, replacement=True)",
        ),
        (
            SHUFFLED,
            (
                "chances = (1 / labels[:2048].bincount())[labels[:2048]]\n"
                "sampler = torch.utils.data.WeightedRandomSampler(chances, 2048)\n"
                "train_loader = DataLoader(train_set, batch_size=64, sampler=sampler"
            ),
        ),
        why="rare classes are drawn more often, by weights of samples; rows of a pass repeat",
    ),
    healthy(
        "tabular-strong-augmentation",
        "tabular_mlp",
        served(
            "tabular_mlp",
            "sample = sample * (0.6 + 0.8 * torch.rand(())) + 0.4 * torch.randn(FEATURES)",
            "return sample, label",
        ),
        why="every visit of a row shows another copy of it",
    ),
    healthy(
        "cnn-noise-augmentation",
        "cnn_batchnorm",
        served(
            "cnn_batchnorm",
            "return sample * 1.1 + 0.3 * torch.randn_like(sample), label",
        ),
        why="training images have more contrast and noise than those of validation",
    ),
    healthy(
        "tabular-curriculum",
        "tabular_mlp",
        (
            SHUFFLED,
            (
                "class EasyFirst(torch.utils.data.Sampler):\n"
                "    order, passes = rows[:2048].norm(dim=1).argsort(), 0\n\n"
                "    def __iter__(self):\n"
                "        self.passes += 1\n"
                "        part = self.order[: min(512 + 256 * self.passes, 2048)]\n"
                "        return iter(part[torch.randperm(len(part))].tolist())\n\n"
                "    def __len__(self):\n"
                "        return min(768 + 256 * self.passes, 2048)\n\n\n"
                "train_loader = DataLoader(train_set, batch_size=64, sampler=EasyFirst()"
            ),
        ),
        why="easy rows come first and harder ones join with the epochs, on purpose",
    ),
    healthy(
        "tabular-tiny-set-repeated",
        "tabular_mlp",
        ("+ 1.5 * torch.randn(len(labels)", "+ 0.5 * torch.randn(len(labels)"),
        (
            ROWS,
            (
                "few = TensorDataset(rows[:128], labels[:128])\n"
                "train_set = torch.utils.data.ConcatDataset([few] * 16)"
            ),
        ),
        ("range(10)", "range(4)"),
        why="an epoch shows a small, easy set sixteen times, on purpose",
    ),
    healthy(
        "tabular-tiny-validation",
        "tabular_mlp",
        ("TensorDataset(rows[2048:], labels[2048:])", "TensorDataset(rows[2524:], labels[2524:])"),
        why="validation has 36 rows: its loss and accuracy are coarse",
    ),
    healthy(
        "regression-time-ordered",
        "regression_mlp",
        (
            "features = torch.rand(2560, FEATURES)\n",
            (
                "features = torch.rand(2560, FEATURES)\n"
                "features[:, 5] = torch.linspace(0, 1, 2560) + 0.1 * torch.rand(2560)\n"
            ),
        ),
        why="rows come in the order of time, which one column tells; training shuffles",
    ),
    healthy(
        "tabular-drawn-with-replacement",
        "tabular_mlp",
        (
            SHUFFLED,
            (
                "sampler = torch.utils.data.RandomSampler(\n"
                "    train_set, replacement=True, num_samples=2048\n)\n"
                "train_loader = DataLoader(train_set, batch_size=64, sampler=sampler"
            ),
        ),
        why="rows are drawn with replacement: a pass holds 63 % of them",
    ),
    healthy(
        "tabular-short-passes",
        "tabular_mlp",
        (
            SHUFFLED,
            (
                "sampler = torch.utils.data.SubsetRandomSampler(range(0, 2048, 2))\n"
                "train_loader = DataLoader(train_set, batch_size=64, sampler=sampler"
            ),
        ),
        why="a sampler trains on half of the data set",
    ),
    healthy(
        "tabular-workers-share",
        "tabular_mlp",
        (
            ROWS,
            (
                "class Rows(torch.utils.data.IterableDataset):\n    def __iter__(self):\n"
                "        info = torch.utils.data.get_worker_info()\n"
                "        order = torch.randperm(2048)[: 2048 // info.num_workers].mul(1)\n"
                "        order = order - order % info.num_workers + info.id\n"
                "        yield from ((rows[index], labels[index]) for index in order)\n\n\n"
                "train_set = Rows()"
            ),
        ),
        (SHUFFLED, "train_loader = DataLoader(train_set, batch_size=64, num_workers=2"),
        ("range(10)", "range(6)"),
        why="two workers draw from their own halves of a stream",
    ),
    healthy(
        "regression-stronger-augmentation",
        "regression_mlp",
        (
            NUMBERS,
            (
                "class Noisy(TensorDataset):\n    noise = 0.0\n\n"
                "    def __getitem__(self, index):\n"
                "        row, target = super().__getitem__(index)\n"
                "        return row + self.noise * torch.randn(FEATURES), target\n\n\n"
                "train_set = Noisy(inputs[:2048], targets[:2048])"
            ),
        ),
        ("    model.train()\n", "    model.train()\n    Noisy.noise = 0.02 * epoch\n"),
        why="noise becomes stronger with the epochs, on purpose",
    ),
    healthy(
        "tabular-loader-for-each-epoch",
        "tabular_mlp",
        (
            "    model.train()\n",
            (
                "    model.train()\n"
                "    train_loader = DataLoader(train_set, batch_size=64, shuffle=True)\n"
            ),
        ),
        why="the loader is created again for every epoch",
    ),
    healthy(
        "tabular-dict-batches",
        "tabular_mlp",
        (
            SHUFFLED,
            (
                "def collate(batch):\n"
                "    made = {'x': torch.stack([row for row, _ in batch])}\n"
                "    return made['x'], torch.stack([label for _, label in batch])\n\n\n"
                f"{SHUFFLED}, collate_fn=collate"
            ),
        ),
        why="a collate function of the script makes the batches",
    ),
)
