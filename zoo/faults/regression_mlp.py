"""Mistakes made in the regression."""

from holter.record.findings import Level
from zoo.specimens import fault

SPECIMENS = (
    fault(
        "regression-broadcast",
        "regression_mlp",
        ("prices = prices.unsqueeze(1)\n", ""),
        why="targets are (N,), predictions (N, 1): their difference is a matrix of (N, N)",
        cause="broadcast-loss",
        level=Level.ARCHITECTURE,
        by=50,
        source="T18",
    ),
    fault(
        "regression-broadcast-by-hand",
        "regression_mlp",
        ("prices = prices.unsqueeze(1)\n", ""),
        (
            "        loss = criterion(model(x), y)\n",
            "        loss = ((model(x) - y) ** 2).mean()\n",
        ),
        why="targets are (N,), predictions (N, 1), and the loss is written by hand",
        cause="broadcast-loss",
        level=Level.ARCHITECTURE,
        by=50,
        source="T18",
    ),
    fault(
        "regression-tanh-head-by-hand",
        "regression_mlp",
        ("nn.Linear(64, 1),\n", "nn.Linear(64, 1),\n    nn.Tanh(),\n"),
        (
            "        loss = criterion(model(x), y)\n",
            "        loss = ((model(x) - y) ** 2).mean()\n",
        ),
        why="a tanh at the end cannot answer beyond 1, and the loss is written by hand",
        cause="limited-outputs",
        level=Level.ARCHITECTURE,
        by=320,
        source="A13",
    ),
    fault(
        "regression-raw-prices",
        "regression_mlp",
        ("targets = (prices - prices[:2048].mean()) / prices[:2048].std()", "targets = prices"),
        why="prices go into the loss as they are, in the hundred thousands",
        cause="unscaled-targets",
        level=Level.DATA,
        by=100,
        source="D20",
    ),
    fault(
        "regression-tanh-head",
        "regression_mlp",
        ("nn.Linear(64, 1),\n", "nn.Linear(64, 1),\n    nn.Tanh(),\n"),
        why="a tanh at the end cannot answer beyond 1, where a third of the targets lie",
        cause="limited-outputs",
        level=Level.ARCHITECTURE,
        by=320,
        source="A13",
    ),
    fault(
        "regression-relu-head",
        "regression_mlp",
        ("nn.Linear(64, 1),\n", "nn.Linear(64, 1),\n    nn.ReLU(),\n"),
        why="a ReLU at the end cannot answer below 0, where half of the targets lie",
        cause="limited-outputs",
        level=Level.ARCHITECTURE,
        by=320,
        source="A13",
    ),
    fault(
        "regression-steplr-per-batch",
        "regression_mlp",
        ("    scheduler.step()\n\n", "\n"),
        ("        optimizer.step()\n", "        optimizer.step()\n        scheduler.step()\n"),
        why="a schedule in epochs is stepped at every batch: the learning rate is soon gone",
        cause="rushed-schedule",
        level=Level.PROCEDURE,
        by=100,
        source="T12",
    ),
    fault(
        "regression-decayed-too-fast",
        "regression_mlp",
        ("step_size=5, gamma=0.3", "step_size=1, gamma=0.1"),
        ("lr=3e-3", "lr=1e-3"),
        why="the learning rate falls tenfold each epoch and is gone before anything is learned",
        cause="decayed-learning-rate",
        level=Level.HYPERPARAMETER,
        by=250,
        source="T12",
    ),
    fault(
        "regression-too-small",
        "regression_mlp",
        ("nn.Linear(FEATURES, 64)", "nn.Linear(FEATURES, 1)"),
        ("nn.Linear(64, 64)", "nn.Linear(1, 64)"),
        why="the first layer has a single unit: all twelve inputs go through one number",
        cause="underfitting",
        accepts=("loss-plateau",),
        level=Level.ARCHITECTURE,
        by=400,
        source="H10",
    ),
    fault(
        "regression-lr-too-high",
        "regression_mlp",
        (
            "torch.optim.Adam(model.parameters(), lr=3e-3)",
            "torch.optim.SGD(model.parameters(), lr=2.0)",
        ),
        why="the learning rate is far beyond what plain gradient descent can bear",
        cause="huge-updates",
        level=Level.HYPERPARAMETER,
        by=20,
        source="H01",
    ),
    fault(
        "regression-lr-too-low",
        "regression_mlp",
        (
            "torch.optim.Adam(model.parameters(), lr=3e-3)",
            "torch.optim.SGD(model.parameters(), lr=1e-5)",
        ),
        why="the learning rate is ten thousand times too low for SGD",
        cause="tiny-updates",
        level=Level.HYPERPARAMETER,
        by=150,
        source="H02",
    ),
    fault(
        "regression-sigmoid-chain",
        "regression_mlp",
        ("nn.Linear(FEATURES, 64),\n    nn.ReLU()", "nn.Linear(FEATURES, 64),\n    nn.Sigmoid()"),
        (
            "    nn.Linear(64, 64),\n    nn.ReLU(),\n",
            "    *[layer for _ in range(7) for layer in (nn.Linear(64, 64), nn.Sigmoid())],\n",
        ),
        (
            "torch.optim.Adam(model.parameters(), lr=3e-3)",
            "torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)",
        ),
        why="gradients vanish on their way through eight sigmoids",
        cause="vanishing-gradients",
        level=Level.ARCHITECTURE,
        by=150,
        source="A15",
    ),
    fault(
        "regression-clip-after-step",
        "regression_mlp",
        (
            "        optimizer.step()\n",
            "        optimizer.step()\n        nn.utils.clip_grad_norm_(model.parameters(), 0.5)\n",
        ),
        why="gradients are clipped after the step, where it has no effect",
        cause="late-clipping",
        level=Level.PROCEDURE,
        by=50,
        source="T17",
    ),
    fault(
        "regression-square-root-at-zero",
        "regression_mlp",
        (
            "        loss = criterion(model(x), y)\n",
            (
                "        pairs = zip(model.parameters(), start, strict=True)\n"
                "        drift = sum((new - old).pow(2).sum() for new, old in pairs)\n"
                "        loss = criterion(model(x), y) + 0.01 * drift.sqrt()\n"
            ),
        ),
        (
            "criterion = nn.MSELoss()\n",
            (
                "start = [parameter.detach().clone() for parameter in model.parameters()]\n"
                "criterion = nn.MSELoss()\n"
            ),
        ),
        why="the root of a distance that is initially 0 has an infinite slope",
        cause="singular-operations",
        accepts=("nonfinite-gradient", "nonfinite-loss"),
        level=Level.NUMERICS,
        by=5,
        source="N02",
    ),
    fault(
        "regression-nan-hidden",
        "regression_mlp",
        (
            "train_set = TensorDataset(",
            'inputs[torch.rand(len(inputs)) < 0.002, 2] = float("nan")\ntrain_set = TensorDataset(',
        ),
        (
            "        optimizer.step()\n",
            (
                "        for parameter in model.parameters():\n"
                "            parameter.grad.nan_to_num_()\n"
                "        optimizer.step()\n"
            ),
        ),
        why="missing values make gradients NaN, and nan_to_num turns these into zeros",
        cause="nonfinite-inputs",
        accepts=("hidden-nonfinite",),
        level=Level.DATA,
        by=50,
        source="D05",
    ),
    fault(
        "regression-one-column-in-dollars",
        "regression_mlp",
        (
            "train_set = TensorDataset(",
            "inputs[:, 11] = 100_000 * features[:, 11]\ntrain_set = TensorDataset(",
        ),
        why="one column was left in its own unit, a hundred thousand times larger than the rest",
        cause="unscaled-inputs",
        level=Level.DATA,
        by=100,
        source="D03",
    ),
    fault(
        "regression-new-adam-each-epoch",
        "regression_mlp",
        (
            "    model.train()\n",
            "    model.train()\n    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)\n",
        ),
        ("batch_size=64", "batch_size=512"),
        ("FEATURES, EPOCHS = 12, 15", "FEATURES, EPOCHS = 12, 80"),
        ("step_size=5", "step_size=40"),
        why="Adam is re-created each epoch, of four steps: it never gets to know its gradients",
        cause="reset-optimizer-state",
        level=Level.PROCEDURE,
        by=150,
        source="T31",
    ),
    fault(
        "regression-deep-large-init",
        "regression_mlp",
        (
            "    nn.Linear(64, 64),\n    nn.ReLU(),\n",
            "    *[layer for _ in range(8) for layer in (nn.Linear(64, 64), nn.ReLU())],\n",
        ),
        (
            "criterion = nn.MSELoss()\n",
            (
                "for parameter in model.parameters():\n"
                "    nn.init.normal_(parameter, std=0.5)\n"
                "criterion = nn.MSELoss()\n"
            ),
        ),
        why="weights drawn too large multiply activations and gradients from layer to layer",
        cause="growing-activations",
        accepts=("exploding-gradients",),
        level=Level.ARCHITECTURE,
        by=50,
        source="A16",
    ),
    fault(
        "regression-deep-small-init",
        "regression_mlp",
        (
            "    nn.Linear(64, 64),\n    nn.ReLU(),\n",
            "    *[layer for _ in range(6) for layer in (nn.Linear(64, 64), nn.ReLU())],\n",
        ),
        (
            "criterion = nn.MSELoss()\n",
            (
                "for parameter in model.parameters():\n"
                "    nn.init.normal_(parameter, std=0.01)\n"
                "criterion = nn.MSELoss()\n"
            ),
        ),
        why="weights drawn too small let activations and gradients fade from layer to layer",
        cause="fading-activations",
        accepts=("vanishing-gradients",),
        level=Level.ARCHITECTURE,
        by=100,
        source="A15",
    ),
    fault(
        "regression-stale-validation",
        "regression_mlp",
        ("criterion = nn.MSELoss()\n", "best = copy.deepcopy(model)\ncriterion = nn.MSELoss()\n"),
        ("import argparse\n", "import argparse\nimport copy\n"),
        ("valid = sum(criterion(model(x), y)", "valid = sum(criterion(best(x), y)"),
        why="validation measures a copy that was made before training",
        cause="constant-validation",
        level=Level.PROCEDURE,
        by=200,
        source="T29",
    ),
    fault(
        "regression-plateau-in-max-mode",
        "regression_mlp",
        (
            "StepLR(optimizer, step_size=5, gamma=0.3)",
            'ReduceLROnPlateau(optimizer, mode="max", patience=0)',
        ),
        ("    scheduler.step()\n\n", "\n"),
        ("    print(", "    scheduler.step(valid)\n    print("),
        why="the scheduler takes a falling loss for a metric that gets worse, and cuts the rate",
        cause="decayed-learning-rate",
        level=Level.PROCEDURE,
        by=250,
        source="T15",
    ),
    fault(
        "regression-overfitting",
        "regression_mlp",
        (
            "TensorDataset(inputs[:2048], targets[:2048])",
            "TensorDataset(inputs[:256], targets[:256])",
        ),
        ("FEATURES, EPOCHS = 12, 15", "FEATURES, EPOCHS = 12, 80"),
        ("step_size=5", "step_size=60"),
        ("quality + torch.randn(", "quality + 4 * torch.randn("),
        why="the noise in 256 prices is memorised",
        cause="overfitting",
        level=Level.HYPERPARAMETER,
        by=240,
        source="H09",
    ),
    fault(
        "regression-shuffled-targets",
        "regression_mlp",
        (
            "train_set = TensorDataset(inputs[:2048]",
            (
                "targets = targets[torch.randperm(len(targets))]\n"
                "train_set = TensorDataset(inputs[:2048]"
            ),
        ),
        why="targets were shuffled apart from their inputs, in training and in validation",
        cause="loss-at-constant-predictor",
        accepts=("independent-labels", "unrelated-labels", "validation-mismatch"),
        level=Level.DATA,
        by=300,
        source="D01",
    ),
)
