"""Mistakes made in the LSTM forecaster."""

from holter.record.findings import Level
from zoo.specimens import fault

CLIP = "        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
ADAM = "torch.optim.Adam(model.parameters(), lr=5e-3)"

SPECIMENS = (
    fault(
        "lstm-recurrent-gain",
        "lstm",
        (
            "self.rnn = nn.LSTM(1, 32, batch_first=True)",
            (
                'self.rnn = nn.RNN(1, 32, nonlinearity="relu", batch_first=True)\n'
                "        nn.init.normal_(self.rnn.weight_hh_l0, std=0.6)"
            ),
        ),
        (CLIP, ""),
        why="recurrent weights amplify each time step, so gradients grow exponentially in time",
        cause="exploding-gradients",
        accepts=("growing-activations",),
        level=Level.ARCHITECTURE,
        by=30,
        source="A16",
    ),
    fault(
        "lstm-late-clipping",
        "lstm",
        (ADAM, "torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9)"),
        (
            CLIP + "        optimizer.step()\n",
            "        optimizer.step()\n" + CLIP.replace("1.0", "0.1"),
        ),
        why="gradients are clipped after the step, at a learning rate that needs the clipping",
        cause="late-clipping",
        level=Level.PROCEDURE,
        by=30,
        source="T17",
    ),
    fault(
        "lstm-tiny-clip",
        "lstm",
        (ADAM, "torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)"),
        ("model.parameters(), 1.0)", "model.parameters(), 1e-4)"),
        why="SGD is given gradients clipped to a norm of 1e-4",
        cause="constant-clipping",
        level=Level.HYPERPARAMETER,
        by=100,
        source="H06",
    ),
    fault(
        "lstm-raw-targets",
        "lstm",
        ("series[:, WINDOW:]\n", "1000 * series[:, WINDOW:] + 5000\n"),
        why="inputs are standardised, targets are left in their own unit of thousands",
        cause="unscaled-targets",
        level=Level.DATA,
        by=100,
        source="D20",
    ),
    fault(
        "lstm-broadcast",
        "lstm",
        ("series[:, WINDOW:]\n", "series[:, WINDOW]\n"),
        why="targets have shape (N,), predictions (N, 1): the loss compares all with all",
        cause="broadcast-loss",
        level=Level.PROCEDURE,
        by=50,
        source="T18",
    ),
    fault(
        "lstm-missing-readings",
        "lstm",
        (
            "series = (series - series.mean()) / series.std()\n",
            (
                "series = (series - series.mean()) / series.std()\n"
                'series[700, 5:9] = float("nan")  # the sensor was off\n'
            ),
        ),
        why="a sensor's gap was left as NaN in one series",
        cause="nonfinite-inputs",
        accepts=("nonfinite-samples",),
        level=Level.DATA,
        by=41,
        source="D05",
    ),
    fault(
        "lstm-low-learning-rate",
        "lstm",
        ("lr=5e-3", "lr=5e-7"),
        why="the learning rate is four orders of magnitude too low",
        cause="tiny-updates",
        level=Level.HYPERPARAMETER,
        by=150,
        source="H02",
    ),
    fault(
        "lstm-large-epsilon",
        "lstm",
        ("lr=5e-3", "lr=1e-3, eps=1.0"),
        why="epsilon is far above the gradients, so that Adam no longer adapts",
        cause="large-epsilon",
        level=Level.HYPERPARAMETER,
        by=150,
        source="H12",
    ),
    fault(
        "lstm-relu-forecast",
        "lstm",
        ("return self.head(states[:, -1])", "return self.head(states[:, -1]).relu()"),
        why="the forecast cannot be negative, but half of the targets are",
        cause="limited-outputs",
        level=Level.ARCHITECTURE,
        by=100,
        source="A13",
    ),
    fault(
        "lstm-summed-loss",
        "lstm",
        ("nn.MSELoss()", 'nn.MSELoss(reduction="sum")'),
        (ADAM, "torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)"),
        (CLIP, ""),
        why="the loss is summed over the batch, the learning rate is one for the mean",
        cause="summed-loss",
        level=Level.PROCEDURE,
        by=60,
        source="T20",
    ),
    fault(
        "lstm-undivided-accumulation",
        "lstm",
        (ADAM, "torch.optim.SGD(model.parameters(), lr=0.15, momentum=0.9)"),
        (
            "    for x, y in train_loader:\n        optimizer.zero_grad()\n",
            "    for batch, (x, y) in enumerate(train_loader):\n",
        ),
        (
            CLIP + "        optimizer.step()\n",
            (
                "        if batch % 8 == 7:\n"
                "            optimizer.step()\n"
                "            optimizer.zero_grad()\n"
            ),
        ),
        ("batch_size=32", "batch_size=8"),
        why="eight micro-batches are accumulated and the loss is not divided by eight",
        cause="undivided-accumulation",
        level=Level.PROCEDURE,
        by=60,
        source="T04",
    ),
    fault(
        "lstm-raw-validation",
        "lstm",
        (
            "            valid_loss += criterion(model(x), y)",
            "            valid_loss += criterion(model(40 + 15 * x), y)",
        ),
        why="validation inputs skip the standardisation that training inputs had",
        cause="mismatched-validation-inputs",
        level=Level.DATA,
        by=120,
        source="D11",
    ),
    fault(
        "lstm-new-optimizer-each-step",
        "lstm",
        (
            "        optimizer.zero_grad()\n",
            f"        optimizer = {ADAM}\n        optimizer.zero_grad()\n",
        ),
        why="the optimizer is re-created at every step, so that Adam remembers nothing",
        cause="reset-optimizer-state",
        level=Level.PROCEDURE,
        by=50,
        source="T31",
    ),
    fault(
        "lstm-saturated-inputs",
        "lstm",
        ("series = (series - series.mean()) / series.std()\n", "series = 400 * series + 3000\n"),
        (
            "series[:, WINDOW:]\n",
            "(series[:, WINDOW:] - 3000) / 400\n",
        ),
        why="inputs are raw readings in the thousands, which saturate every gate",
        cause="unscaled-inputs",
        level=Level.DATA,
        by=50,
        source="D03",
    ),
)
