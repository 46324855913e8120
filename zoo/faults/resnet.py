"""Mistakes made in the residual network."""

from holter.record.findings import Level
from zoo.specimens import fault

SPECIMENS = (
    fault(
        "resnet-one-cycle-per-epoch",
        "resnet",
        (
            "        scheduler.step()\n        total += loss.item()\n",
            "        total += loss.item()\n",
        ),
        ("    model.eval()\n", "    scheduler.step()\n    model.eval()\n"),
        why="a one-cycle over all batches is stepped once an epoch: it never leaves its warm-up",
        cause="stalled-schedule",
        level=Level.PROCEDURE,
        by=280,
        source="T13",
    ),
    fault(
        "resnet-blocks-in-a-list",
        "resnet",
        ("self.blocks = nn.ModuleList(\n", "self.blocks = list(\n"),
        why="the blocks are kept in a Python list, so that no optimizer gets their parameters",
        cause="parameters-outside-optimizer",
        level=Level.ARCHITECTURE,
        by=50,
        source="A09",
    ),
    fault(
        "resnet-detached-features",
        "resnet",
        ("return self.head(x.mean((2, 3)))", "return self.head(x.mean((2, 3)).data)"),
        why="`.data` cuts the graph below the head: only the head is trained",
        cause="unreached-parameters",
        level=Level.ARCHITECTURE,
        by=50,
        source="A10",
    ),
    fault(
        "resnet-lr-too-high",
        "resnet",
        ("max_lr=1e-2", "max_lr=10.0"),
        why="the peak of the one-cycle is a thousand times too high",
        cause="huge-updates",
        level=Level.HYPERPARAMETER,
        by=100,
        source="H01",
    ),
    fault(
        "resnet-no-norm-large-init",
        "resnet",
        (
            (
                "        out = F.relu(self.norm1(self.conv1(x)))\n"
                "        out = self.norm2(self.conv2(out))\n"
            ),
            "        out = self.conv2(F.relu(self.conv1(x)))\n",
        ),
        ("        self.norm1 = nn.BatchNorm2d(outputs)\n", ""),
        ("        self.norm2 = nn.BatchNorm2d(outputs)\n", ""),
        (
            "model = ResNet()\n",
            (
                "model = ResNet()\n"
                "for parameter in model.parameters():\n"
                "    if parameter.dim() == 4:\n"
                "        nn.init.normal_(parameter, std=0.5)\n"
            ),
        ),
        why="without norms, convolutions drawn too large blow activations up from block to block",
        cause="growing-activations",
        accepts=("large-initial-loss",),
        level=Level.ARCHITECTURE,
        by=50,
        source="A19",
    ),
    fault(
        "resnet-constant-init",
        "resnet",
        (
            "model = ResNet()\n",
            (
                "model = ResNet()\n"
                "for parameter in model.parameters():\n"
                "    nn.init.constant_(parameter, 0.01)\n"
            ),
        ),
        why="all filters begin as one, and stay one",
        cause="identical-rows",
        level=Level.ARCHITECTURE,
        by=100,
        source="A18",
    ),
    fault(
        "resnet-log-of-zero",
        "resnet",
        (
            "loss = criterion(model(images), labels)",
            (
                "chosen = model(images).softmax(1) * F.one_hot(labels, CLASSES)\n"
                "        loss = -chosen.log().sum(1).mean()"
            ),
        ),
        why="a cross-entropy by hand takes the logarithm after the mask: the log of 0",
        cause="singular-operations",
        accepts=("nonfinite-loss", "nonfinite-gradient"),
        level=Level.NUMERICS,
        by=5,
        source="N01",
    ),
    fault(
        "resnet-scheduler-first",
        "resnet",
        (
            "        optimizer.step()\n        scheduler.step()\n",
            "        scheduler.step()\n        optimizer.step()\n",
        ),
        why="the scheduler is stepped before the optimizer: the first learning rate is skipped",
        cause="scheduler-before-optimizer",
        level=Level.PROCEDURE,
        by=50,
        source="T16",
    ),
)
