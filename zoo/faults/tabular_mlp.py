"""Mistakes made in the tabular MLP."""

from holter.record.findings import Level
from zoo.specimens import fault

SPECIMENS = (
    fault(
        "tabular-softmax-in-model",
        "tabular_mlp",
        ("return self.head(self.body(x))", "return self.head(self.body(x)).softmax(1)"),
        why="the model ends in a softmax, and cross-entropy applies another",
        cause="doubled-softmax",
        level=Level.ARCHITECTURE,
        by=50,
        source="A01",
    ),
    fault(
        "tabular-softmax-in-model-by-hand",
        "tabular_mlp",
        ("return self.head(self.body(x))", "return self.head(self.body(x)).softmax(1)"),
        (
            "        loss = criterion(model(x), y)\n",
            "        loss = -model(x).log_softmax(1)[torch.arange(len(y)), y].mean()\n",
        ),
        why="the model ends in a softmax, and the cross-entropy by hand applies another",
        cause="doubled-softmax",
        level=Level.ARCHITECTURE,
        by=50,
        source="A01",
    ),
    fault(
        "tabular-softmax-over-samples",
        "tabular_mlp",
        (
            "        loss = criterion(model(x), y)\n",
            "        loss = -model(x).log_softmax(0)[torch.arange(len(y)), y].mean()\n",
        ),
        why="the log-softmax of a cross-entropy by hand runs over the batch",
        cause="batch-axis-softmax",
        accepts=("unnormalised-nll",),
        level=Level.ARCHITECTURE,
        by=50,
        source="A02",
    ),
    fault(
        "tabular-softmax-over-samples-in-model",
        "tabular_mlp",
        ("return self.head(self.body(x))", "return self.head(self.body(x)).softmax(0)"),
        why="the model ends in a softmax over the batch, and cross-entropy applies another",
        cause="batch-axis-softmax",
        level=Level.ARCHITECTURE,
        by=50,
        source="A02",
    ),
    fault(
        "tabular-no-zero-grad",
        "tabular_mlp",
        ("        optimizer.zero_grad()\n", ""),
        why="gradients are never cleared",
        cause="uncleared-gradients",
        level=Level.PROCEDURE,
        by=50,
        source="T01",
    ),
    fault(
        "tabular-zero-grad-before-step",
        "tabular_mlp",
        ("        optimizer.zero_grad()\n", ""),
        ("        loss.backward()\n", "        loss.backward()\n        optimizer.zero_grad()\n"),
        why="gradients are cleared between backward and step, so that no step does anything",
        cause="step-without-backward",
        accepts=("motionless-weights", "all-zero-gradients"),
        level=Level.PROCEDURE,
        by=50,
        source="T02",
    ),
    fault(
        "tabular-sorted-by-class",
        "tabular_mlp",
        (
            "train_set = TensorDataset(rows[:2048], labels[:2048])",
            (
                "order = labels[:2048].argsort()\n"
                "train_set = TensorDataset(rows[:2048][order], labels[:2048][order])"
            ),
        ),
        ("batch_size=64, shuffle=True", "batch_size=64"),
        why="the rows are sorted by class and the loader does not shuffle",
        cause="sorted-batches",
        level=Level.DATA,
        by=100,
        source="D02",
    ),
    fault(
        "tabular-labels-of-other-rows",
        "tabular_mlp",
        ("TensorDataset(rows[:2048],", "TensorDataset(rows[torch.randperm(2048)],"),
        ("range(10)", "range(20)"),
        why="the training rows are shuffled, their labels are not",
        cause="validation-mismatch",
        accepts=("independent-labels", "unrelated-labels", "loss-at-constant-predictor"),
        level=Level.DATA,
        by=320,
        source="D01",
    ),
    fault(
        "tabular-missing-values",
        "tabular_mlp",
        (
            "train_set = TensorDataset(",
            'rows[torch.rand(len(rows)) < 0.002, 3] = float("nan")\ntrain_set = TensorDataset(',
        ),
        why="a few rows have a missing value, read as NaN",
        cause="nonfinite-inputs",
        accepts=("nonfinite-samples",),
        level=Level.DATA,
        by=40,
        source="D05",
    ),
    fault(
        "tabular-constant-column",
        "tabular_mlp",
        ("rows = (rows -", "rows[:, 7] = 1\nrows = (rows -"),
        why="a column that is the same in all rows is divided by its standard deviation of 0",
        cause="nonfinite-inputs",
        accepts=("nonfinite-samples",),
        level=Level.DATA,
        by=10,
        source="D06",
    ),
    fault(
        "tabular-raw-columns",
        "tabular_mlp",
        ("rows = (rows - rows.mean(0)) / rows.std(0)\n", ""),
        ("Adam(model.parameters(), lr=1e-3)", "SGD(model.parameters(), lr=0.05, momentum=0.9)"),
        why="columns with values of -100 to 300 go into the model as they are",
        cause="unscaled-inputs",
        level=Level.DATA,
        by=50,
        source="D03",
    ),
    fault(
        "tabular-optimizer-of-the-head",
        "tabular_mlp",
        ("Adam(model.parameters(),", "Adam(model.head.parameters(),"),
        why="the optimizer is given the head alone; the body keeps its random weights",
        cause="parameters-outside-optimizer",
        level=Level.PROCEDURE,
        by=50,
        source="T07",
    ),
    fault(
        "tabular-model-rebuilt",
        "tabular_mlp",
        ("lr=1e-3)\n", "lr=1e-3)\nmodel = Classifier()\n"),
        why="the model is re-created after the optimizer, which goes on to train the old one",
        cause="parameters-outside-model",
        accepts=("parameters-outside-optimizer",),
        level=Level.PROCEDURE,
        by=50,
        source="T06",
    ),
    fault(
        "tabular-detached-body",
        "tabular_mlp",
        ("self.head(self.body(x))", "self.head(self.body(x).detach())"),
        why="a detach between body and head keeps gradients from the body",
        cause="unreached-parameters",
        level=Level.ARCHITECTURE,
        by=50,
        source="A10",
    ),
    fault(
        "tabular-lr-too-low",
        "tabular_mlp",
        ("lr=1e-3", "lr=1e-7"),
        why="the learning rate is ten thousand times too low",
        cause="tiny-updates",
        level=Level.HYPERPARAMETER,
        by=150,
        source="H02",
    ),
    fault(
        "tabular-lr-too-high",
        "tabular_mlp",
        ("lr=1e-3", "lr=1.0"),
        why="the learning rate is a thousand times too high for Adam",
        cause="huge-updates",
        level=Level.HYPERPARAMETER,
        by=50,
        source="H01",
    ),
    fault(
        "tabular-constant-init",
        "tabular_mlp",
        (
            "model = Classifier()\n",
            (
                "model = Classifier()\n"
                "for parameter in model.parameters():\n"
                "    nn.init.constant_(parameter, 0.05)\n"
            ),
        ),
        ("nn.ReLU(), nn.Dropout(0.1)", "nn.ReLU()"),
        why="all weights begin at the same value, so that all units of a layer stay alike",
        cause="identical-rows",
        level=Level.ARCHITECTURE,
        by=100,
        source="A18",
    ),
    fault(
        "tabular-init-too-large",
        "tabular_mlp",
        (
            "model = Classifier()\n",
            (
                "model = Classifier()\n"
                "for parameter in model.parameters():\n"
                "    nn.init.normal_(parameter)\n"
            ),
        ),
        why="weights are drawn with a standard deviation of 1, whatever the width of the layer",
        cause="large-initial-loss",
        accepts=("growing-activations",),
        level=Level.ARCHITECTURE,
        by=50,
        source="A19",
    ),
    fault(
        "tabular-dead-relus",
        "tabular_mlp",
        (
            "model = Classifier()\n",
            "model = Classifier()\nnn.init.constant_(model.body[2].bias, -5.0)\n",
        ),
        why="a bias of -5 keeps almost all units of the second layer at zero for every row",
        cause="dead-units",
        accepts=("dead-gradients",),
        level=Level.ARCHITECTURE,
        by=100,
        source="A14",
    ),
    fault(
        "tabular-validation-in-train-mode",
        "tabular_mlp",
        ("nn.Dropout(0.1)", "nn.Dropout(0.5)"),
        ("    model.eval()\n", ""),
        why="validation is measured with dropout on",
        cause="validation-in-train-mode",
        level=Level.PROCEDURE,
        by=100,
        source="T11",
    ),
    fault(
        "tabular-nll-of-probabilities",
        "tabular_mlp",
        ("return self.head(self.body(x))", "return self.head(self.body(x)).softmax(1)"),
        ("nn.CrossEntropyLoss()", "nn.NLLLoss()"),
        why="the negative log-likelihood is given probabilities, not their logarithms",
        cause="unnormalised-nll",
        level=Level.ARCHITECTURE,
        by=50,
        source="A03",
    ),
    fault(
        "tabular-nll-of-logits",
        "tabular_mlp",
        ("nn.CrossEntropyLoss()", "nn.NLLLoss()"),
        why="the negative log-likelihood is given logits: it can fall without end",
        cause="unnormalised-nll",
        level=Level.ARCHITECTURE,
        by=50,
        source="A03",
    ),
    fault(
        "tabular-large-epsilon",
        "tabular_mlp",
        ("lr=1e-3", "lr=1e-3, eps=1.0"),
        why="an epsilon of 1 is far above all gradients: Adam becomes SGD with a tiny step",
        cause="large-epsilon",
        level=Level.HYPERPARAMETER,
        by=150,
        source="H12",
    ),
    fault(
        "tabular-bfloat16-weights",
        "tabular_mlp",
        ("model = Classifier()", "model = Classifier().bfloat16()"),
        ("/ rows.std(0)\n", "/ rows.std(0)\nrows = rows.bfloat16()\n"),
        ("lr=1e-3", "lr=5e-5"),
        why="weights are kept in bfloat16, where most updates are too small to count",
        cause="rounded-away-updates",
        level=Level.NUMERICS,
        by=150,
        source="N07",
    ),
    fault(
        "tabular-overfitting",
        "tabular_mlp",
        ("rows[:2048], labels[:2048]", "rows[:96], labels[:96]"),
        ("1.5 * torch.randn(len", "4.5 * torch.randn(len"),
        ("nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.1)", "nn.Linear(64, 64), nn.ReLU()"),
        ("range(10)", "range(150)"),
        why="a hundred rows are memorised, for 150 epochs",
        cause="overfitting",
        level=Level.HYPERPARAMETER,
        by=300,
        source="H09",
    ),
    fault(
        "tabular-decayed-away",
        "tabular_mlp",
        (
            "Adam(model.parameters(), lr=1e-3)",
            "Adam(model.parameters(), lr=1e-3, weight_decay=1.0)",
        ),
        why="a weight decay of 1 pulls all weights to zero",
        cause="collapsed-weights",
        level=Level.HYPERPARAMETER,
        by=320,
        source="H04",
    ),
    fault(
        "tabular-same-batch",
        "tabular_mlp",
        ("batch_size=64, shuffle=True", "batch_size=64"),
        (
            "    for x, y in train_loader:\n",
            "    for _ in range(len(train_loader)):\n        x, y = next(iter(train_loader))\n",
        ),
        why="next(iter(loader)) starts again each time, so that all steps see the first batch",
        cause="repeated-batches",
        level=Level.DATA,
        by=50,
        source="D15",
    ),
    fault(
        "tabular-climbing",
        "tabular_mlp",
        ("loss = criterion(model(x), y)", "loss = -criterion(model(x), y)"),
        why="the sign of the loss is flipped: training makes the predictions worse",
        cause="unbounded-loss",
        level=Level.PROCEDURE,
        by=100,
        source="T19",
    ),
    fault(
        "tabular-micro-batches-not-divided",
        "tabular_mlp",
        ("Adam(model.parameters(), lr=1e-3)", "SGD(model.parameters(), lr=0.2, momentum=0.9)"),
        ("batch_size=64", "batch_size=8"),
        (
            "for x, y in train_loader:\n        optimizer.zero_grad()\n",
            "for index, (x, y) in enumerate(train_loader):\n",
        ),
        (
            "        optimizer.step()\n",
            (
                "        if index % 8 == 7:\n"
                "            optimizer.step()\n"
                "            optimizer.zero_grad()\n"
            ),
        ),
        why="the gradients of eight batches are summed, with a learning rate for their mean",
        cause="undivided-accumulation",
        level=Level.PROCEDURE,
        by=100,
        source="T04",
    ),
    fault(
        "tabular-dropout-too-strong",
        "tabular_mlp",
        (
            "nn.Linear(FEATURES, 64), nn.ReLU()",
            "nn.Linear(FEATURES, 64), nn.ReLU(), nn.Dropout(0.95)",
        ),
        ("nn.Dropout(0.1)", "nn.Dropout(0.95)"),
        why="dropout of 0.95 was meant to keep 95 %, and keeps 5 %",
        cause="excessive-dropout",
        accepts=("validation-better-than-training", "underfitting"),
        level=Level.HYPERPARAMETER,
        by=320,
        source="H05",
    ),
    fault(
        "tabular-nan-made-zero",
        "tabular_mlp",
        (
            "return self.head(self.body(x))",
            "return torch.nan_to_num(self.head(self.body(x.log1p())))",
        ),
        why="the logarithm of negative values is NaN; nan_to_num hides it from the loss alone",
        cause="hidden-nonfinite",
        accepts=("nonfinite-gradient", "nonfinite-weights"),
        level=Level.NUMERICS,
        by=50,
        source="N03",
    ),
    fault(
        "tabular-saturated-tanh",
        "tabular_mlp",
        (
            "nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU()",
            "nn.Linear(FEATURES, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh()",
        ),
        (
            "model = Classifier()\n",
            (
                "model = Classifier()\n"
                "nn.init.normal_(model.body[0].weight, std=3.0)\n"
                "nn.init.normal_(model.body[2].weight, std=3.0)\n"
            ),
        ),
        why="weights drawn too large keep every tanh at -1 or 1, where it passes no gradient",
        cause="saturated-units",
        accepts=("oversized-weights",),
        level=Level.ARCHITECTURE,
        by=100,
        source="A17",
    ),
    fault(
        "tabular-unlabelled-batches",
        "tabular_mlp",
        ("train_set = TensorDataset(", "labels[1900:2048] = -100\ntrain_set = TensorDataset("),
        ("batch_size=64, shuffle=True", "batch_size=64"),
        why="rows without a label fill whole batches, whose mean loss is 0 / 0",
        cause="empty-targets",
        level=Level.DATA,
        by=40,
        source="N13",
    ),
    fault(
        "tabular-clip-before-unscale",
        "tabular_mlp",
        (
            "optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)\n",
            (
                "optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)\n"
                'scaler = torch.amp.GradScaler("cpu")\n'
            ),
        ),
        (
            "        loss.backward()\n        optimizer.step()\n",
            (
                "        scaler.scale(loss).backward()\n"
                "        nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
                "        scaler.step(optimizer)\n"
                "        scaler.update()\n"
            ),
        ),
        why="gradients are clipped while they carry the loss scale: almost nothing is left",
        cause="scaled-clipping",
        level=Level.NUMERICS,
        by=100,
        source="N08",
    ),
    fault(
        "tabular-half-overflow",
        "tabular_mlp",
        ("return self.head(self.body(x))", "return self.head(self.body(x)) / 1e-6"),
        ("lr=1e-3)\n", 'lr=1e-3)\nscaler = torch.amp.GradScaler("cpu")\n'),
        (
            (
                "        loss = criterion(model(x), y)\n"
                "        loss.backward()\n"
                "        optimizer.step()\n"
            ),
            (
                '        with torch.autocast("cpu", dtype=torch.float16):\n'
                "            loss = criterion(model(x), y)\n"
                "        scaler.scale(loss).backward()\n"
                "        scaler.step(optimizer)\n"
                "        scaler.update()\n"
            ),
        ),
        why="a temperature of 1e-6 takes the logits beyond float16, and every step is skipped",
        cause="nonfinite-loss",
        accepts=("skipped-steps", "collapsing-loss-scale"),
        level=Level.NUMERICS,
        by=50,
        source="N04",
    ),
)
