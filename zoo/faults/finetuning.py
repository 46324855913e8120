"""Mistakes made in fine-tuning."""

from holter.record.findings import Level
from zoo.specimens import fault

SPECIMENS = (
    fault(
        "finetuning-optimizer-before-new-head",
        "finetuning",
        (
            "optimizer = torch.optim.Adam(model.head.parameters(), lr=3e-3)\n",
            "",
        ),
        (
            "model.head = nn.Sequential(",
            (
                "optimizer = torch.optim.Adam(model.head.parameters(), lr=3e-3)\n"
                "model.head = nn.Sequential("
            ),
        ),
        why="the head is replaced after the optimizer was given the old one",
        cause="parameters-outside-model",
        accepts=("parameters-outside-optimizer",),
        level=Level.PROCEDURE,
        by=50,
        source="T06",
    ),
    fault(
        "finetuning-optimizer-of-the-backbone",
        "finetuning",
        ("Adam(model.head.parameters(),", "Adam(model.backbone.parameters(),"),
        why="the optimizer is given the frozen backbone; the head is in none",
        cause="parameters-outside-optimizer",
        level=Level.PROCEDURE,
        by=50,
        source="T07",
    ),
    fault(
        "finetuning-sigmoid-before-logit-loss",
        "finetuning",
        (
            "return self.head(self.backbone(x))",
            "return self.head(self.backbone(x)).sigmoid()",
        ),
        why="a sigmoid goes before a loss that has one built in",
        cause="doubled-sigmoid",
        level=Level.ARCHITECTURE,
        by=100,
        source="A02",
    ),
    fault(
        "finetuning-softmax-over-one-unit",
        "finetuning",
        ("return self.head(self.backbone(x))", "return self.head(self.backbone(x)).softmax(1)"),
        ("nn.BCEWithLogitsLoss()", "nn.BCELoss()"),
        why="a softmax over one unit is always 1, and its gradient always 0",
        cause="single-class-softmax",
        level=Level.ARCHITECTURE,
        by=50,
        source="A04",
    ),
    fault(
        "finetuning-divided-twice",
        "finetuning",
        (
            "train_set = TensorDataset(normalise(train_pixels), train_labels)",
            "train_set = TensorDataset(normalise(train_pixels) / 255, train_labels)",
        ),
        (
            "valid_set = TensorDataset(normalise(valid_pixels), valid_labels)",
            "valid_set = TensorDataset(normalise(valid_pixels) / 255, valid_labels)",
        ),
        why="pixels are divided by 255 twice: the pretrained filters see almost nothing",
        cause="unscaled-inputs",
        level=Level.DATA,
        by=150,
        source="D04",
    ),
    fault(
        "finetuning-validation-not-normalised",
        "finetuning",
        ("TensorDataset(normalise(valid_pixels), ", "TensorDataset(valid_pixels / 255, "),
        why="validation images lack the normalisation of the training images",
        cause="mismatched-validation-inputs",
        level=Level.DATA,
        by=100,
        source="D11",
    ),
    fault(
        "finetuning-lr-of-the-backbone",
        "finetuning",
        ("lr=3e-3", "lr=1e-6"),
        why="the new head is given the tiny learning rate meant for pretrained weights",
        cause="tiny-updates",
        level=Level.HYPERPARAMETER,
        by=150,
        source="H02",
    ),
    fault(
        "finetuning-zero-head",
        "finetuning",
        (
            "criterion = nn.BCEWithLogitsLoss()\n",
            (
                "for parameter in model.head.parameters():\n"
                "    nn.init.zeros_(parameter)\n"
                "criterion = nn.BCEWithLogitsLoss()\n"
            ),
        ),
        why="both layers of the new head begin at zero: nothing but the last bias gets a gradient",
        cause="dead-gradients",
        accepts=("identical-rows", "dead-units"),
        level=Level.ARCHITECTURE,
        by=100,
        source="A18",
    ),
    fault(
        "finetuning-log-of-zero",
        "finetuning",
        (
            "        loss = criterion(logits, labels)\n",
            (
                "        p = logits.sigmoid()\n"
                "        loss = -(labels * p.log() + (1 - labels) * (1 - p).log()).mean()\n"
            ),
        ),
        ("lr=3e-3", "lr=0.03"),
        why="a cross-entropy by hand takes the log of 0 once the sigmoid rounds to 1",
        cause="singular-operations",
        accepts=("nonfinite-loss", "nonfinite-gradient"),
        level=Level.NUMERICS,
        by=200,
        source="N01",
    ),
)
