"""Mistakes that cost time or memory, made in the tabular MLP, which learns all the same."""

from holter.record.findings import Level
from zoo.specimens import Edit, fault

SET = "train_set = TensorDataset(rows[:2048], labels[:2048])\n"
LOADER = "train_loader = DataLoader(train_set, batch_size=64, shuffle=True)\n"
EPOCH = "for epoch in range(10):\n    model.train()\n"
STEP = "        optimizer.step()\n"


def data_set(*lines: str, held: str = "") -> Edit:
    """Replace the training data by a data set of its own, with these lines in `__getitem__`."""
    body = "".join(f"        {line}\n" for line in lines)
    return (
        SET,
        (
            "import time\n\nimport numpy\n\n\n"
            "class Samples(torch.utils.data.Dataset):\n"
            f"    def __init__(self):\n        self.held = {held or '[]'}\n\n"
            "    def __len__(self):\n        return 2048\n\n"
            f"    def __getitem__(self, index):\n{body}"
            "        return rows[index], labels[index]\n\n\n"
            "train_set = Samples()\n"
        ),
    )


SPECIMENS = (
    fault(
        "tabular-slow-loader",
        "tabular_mlp",
        data_set("time.sleep(2e-4)"),
        why="every sample takes 0.2 ms to read, in the process that trains",
        cause="input-bound",
        level=Level.SYSTEM,
        by=200,
        source="MISSION B13",
    ),
    fault(
        "tabular-loop-over-samples",
        "tabular_mlp",
        (
            "        return self.head(self.body(x))\n",
            "        return torch.stack([self.head(self.body(row)) for row in x])\n",
        ),
        why="the model computes one sample after the other: hundreds of tiny operations a step",
        cause="unbatched-operations",
        level=Level.SYSTEM,
        by=320,
        source="MISSION B13",
    ),
    fault(
        "tabular-sum-with-graphs",
        "tabular_mlp",
        (EPOCH, f"running = 0\n{EPOCH}"),
        (STEP, f"{STEP}        running += loss\n"),
        why="the sum of losses keeps the graph of every step",
        cause="kept-graphs",
        level=Level.PROCEDURE,
        by=60,
        source="Y01",
    ),
    fault(
        "tabular-list-with-graphs",
        "tabular_mlp",
        (EPOCH, f"history = {{'loss': []}}\n{EPOCH}"),
        (STEP, f"{STEP}        history['loss'].append(loss)\n"),
        why="a list of losses keeps the graph of every step",
        cause="kept-graphs",
        level=Level.PROCEDURE,
        by=60,
        source="Y01",
    ),
    fault(
        "tabular-list-on-the-host",
        "tabular_mlp",
        (EPOCH, f"distances = []\n{EPOCH}"),
        (STEP, f"{STEP}        distances.append(torch.cdist(x, rows))\n"),
        why="the distances of each batch to all rows are kept for a plot",
        cause="growing-memory",
        level=Level.PROCEDURE,
        by=300,
        source="MISSION B14",
    ),
    fault(
        "tabular-workers-leak",
        "tabular_mlp",
        data_set("self.held.append(numpy.ones(1500))"),
        (LOADER, LOADER.replace("shuffle=True", "num_workers=2, persistent_workers=True")),
        why="each worker keeps something of every sample that it has read",
        cause="growing-memory",
        level=Level.PROCEDURE,
        by=300,
        source="MISSION B14",
    ),
    fault(
        "tabular-checkpoint-of-everything",
        "tabular_mlp",
        ("from torch import nn\n", "import tempfile\n\nfrom torch import nn\n"),
        (EPOCH, f"buffer, step = torch.randn(8_000_000), 0\n{EPOCH}"),
        (
            STEP,
            (
                f"{STEP}        step += 1\n"
                "        if step % 5 == 0:\n"
                "            with tempfile.TemporaryFile() as file:\n"
                "                torch.save((model.state_dict(), buffer), file)\n"
            ),
        ),
        why="a buffer of 32 MB is saved every five steps",
        cause="slow-steps",
        level=Level.SYSTEM,
        by=300,
        source="MISSION B13",
    ),
    fault(
        "tabular-all-pairs",
        "tabular_mlp",
        (
            "    model.eval()\n",
            (
                "    if epoch == 5:\n"
                "        many = rows.repeat(1000, 1)\n"
                "        print((many[:, None] - many[None]).pow(2).mean())\n"
                "    model.eval()\n"
            ),
        ),
        why="all pairs of many rows are compared in one tensor",
        cause="out-of-memory",
        level=Level.SYSTEM,
        by=320,
        source="MISSION B14",
    ),
)
