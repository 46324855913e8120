"""Small networks that are trained, recorded and checked on request; in the worker process."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from holter.dashboard.encoding import numbers, plain_finding
from holter.diagnosis.differential import diagnose
from holter.diagnosis.engine import check
from holter.record import Run
from holter.record.signals import (
    ACTIVATION_DEAD_FRACTION,
    ACTIVATION_SATURATED_FRACTION,
    ACTIVATION_STD,
    GRAD_NORM,
    LOSS,
    UPDATE_RATIO,
    WEIGHT_NORM,
    Signal,
)
from holter.reports._outcome import headline
from holter.watching.watch import watch

_CLASSES, _FEATURES, _WIDTH, _SAMPLES, _BATCH = 10, 64, 64, 1024, 64
_BINS, _SNAPSHOTS = 61, 24  # of the distribution of weights

ACTIVATIONS: Mapping[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "leaky-relu": nn.LeakyReLU,
    "gelu": nn.GELU,
    "tanh": nn.Tanh,
    "sigmoid": nn.Sigmoid,
    "linear": nn.Identity,
}
NORMS: Mapping[str, type[nn.Module]] = {
    "none": nn.Identity,
    "batch": nn.BatchNorm1d,
    "layer": nn.LayerNorm,
}


class Block(nn.Module):
    """Linear, normalisation, activation; with `residual`, added to the input."""

    def __init__(self, options: Mapping[str, Any], *, inputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, _WIDTH)
        _initialise(self.linear, options["init"], options["bias"])
        norm = NORMS[options["norm"]]
        self.norm = norm() if norm is nn.Identity else norm(_WIDTH)
        self.activation = ACTIVATIONS[options["activation"]]()
        self.residual = options["residual"] == "yes" and inputs == _WIDTH

    def forward(self, x: Tensor) -> Tensor:
        """Return the output of the block."""
        y: Tensor = self.activation(self.norm(self.linear(x)))
        return x + y if self.residual else y


def build(options: Mapping[str, Any]) -> nn.Module:
    """Return the network: hidden blocks and a linear head."""
    torch.manual_seed(0)
    blocks = [Block(options, inputs=_FEATURES)]
    blocks += [Block(options, inputs=_WIDTH) for _ in range(int(options["depth"]) - 1)]
    return nn.Sequential(*blocks, nn.Linear(_WIDTH, _CLASSES))


def optimizer_for(model: nn.Module, options: Mapping[str, Any]) -> torch.optim.Optimizer:
    """Return the optimizer."""
    lr, decay = float(options["lr"]), float(options["decay"])
    parameters = model.parameters()
    if options["optimizer"] == "adam":
        return torch.optim.Adam(parameters, lr=lr, weight_decay=decay)
    if options["optimizer"] == "adamw":
        return torch.optim.AdamW(parameters, lr=lr, weight_decay=decay)
    momentum = 0.9 if options["optimizer"] == "momentum" else 0.0
    return torch.optim.SGD(parameters, lr=lr, momentum=momentum, weight_decay=decay)


def loader() -> "DataLoader[tuple[Tensor, ...]]":
    """Return noisy samples of ten patterns, shuffled."""
    draw = torch.Generator().manual_seed(1)
    patterns = torch.randn(_CLASSES, _FEATURES, generator=draw)
    labels = torch.randint(_CLASSES, (_SAMPLES,), generator=draw)
    inputs = (patterns[labels] + torch.randn(_SAMPLES, _FEATURES, generator=draw)) / 2**0.5
    return DataLoader(TensorDataset(inputs, labels), _BATCH, shuffle=True, generator=draw)


def train(options: Mapping[str, Any]) -> dict[str, Any]:
    """Train a network under holter; return what the panels show and what the rules say."""
    model = build(options)
    optimizer, batches = optimizer_for(model, options), loader()
    steps = int(options["steps"])
    every = max(steps // _SNAPSHOTS, 1)
    distribution: list[tuple[int, list[np.ndarray]]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network"
        with watch(model, optimizer, path, budget=None, quiet=True, black_box=False):
            step = 0
            while step < steps:
                for inputs, labels in batches:
                    if step % every == 0:
                        distribution.append((step, _weights(model)))
                    optimizer.zero_grad()
                    loss: Tensor = nn.functional.cross_entropy(model(inputs), labels)
                    torch.autograd.backward(loss)
                    optimizer.step()
                    step += 1
                    if step == steps:
                        break
        distribution.append((steps, _weights(model)))
        return _document(Run.load(path), distribution)


def _initialise(linear: nn.Linear, how: str, bias: float) -> None:
    weight = linear.weight
    if how == "he":
        nn.init.kaiming_normal_(weight, nonlinearity="relu")
    elif how == "large":
        nn.init.kaiming_normal_(weight, nonlinearity="relu")
        with torch.no_grad():
            weight *= 3
    elif how == "xavier":
        nn.init.xavier_normal_(weight)
    elif how == "orthogonal":
        nn.init.orthogonal_(weight)
    elif how == "small":
        nn.init.normal_(weight, std=0.01)
    elif how == "zeros":
        nn.init.zeros_(weight)
    if how != "pytorch" or bias:
        nn.init.constant_(linear.bias, bias)


def _weights(model: nn.Module) -> list[np.ndarray]:
    """Return the weights of every layer, flat."""
    return [
        parameter.detach().numpy().ravel().copy()
        for parameter in model.parameters()
        if parameter.ndim > 1
    ]


def _document(run: Run, distribution: list[tuple[int, list[np.ndarray]]]) -> dict[str, Any]:
    checkup = check(run)
    diagnosis = diagnose(checkup)
    leading = () if diagnosis.leading is None else (diagnosis.leading,)
    line, losses = headline(run, checkup), next(iter(run[LOSS].values()))
    depth = len(distribution[0][1])
    weights = [name for name in run[GRAD_NORM] if name.endswith("weight") and "norm" not in name]
    return {
        "loss": {"steps": losses.steps.tolist(), "values": numbers(losses.values)},
        "layers": [*(f"layer {n + 1}" for n in range(depth - 1)), "head"],
        "gradients": _heat(run, GRAD_NORM, weights),
        "updates": _heat(run, UPDATE_RATIO, weights),
        "norms": _heat(run, WEIGHT_NORM, weights),
        "spread": _heat(run, ACTIVATION_STD, _modules(run, ACTIVATION_STD)),
        "dead": _heat(run, ACTIVATION_DEAD_FRACTION, _modules(run, ACTIVATION_DEAD_FRACTION)),
        "saturated": _heat(
            run,
            ACTIVATION_SATURATED_FRACTION,
            _modules(run, ACTIVATION_SATURATED_FRACTION),
        ),
        "distribution": [_histograms(distribution, layer) for layer in range(depth)],
        "outcome": {"state": line.state, "numbers": line.says, "bad": checkup.outcome.bad},
        "findings": [
            plain_finding(finding)
            for finding in (*leading, *diagnosis.explained, *diagnosis.others)
        ],
    }


def _modules(run: Run, signal: Signal) -> list[str]:
    """Return the activations that have this signal, in the order of the layers."""
    if signal not in run:
        return []
    return [name for name in run[signal] if name.endswith("activation") or name.isdigit()]


def _heat(run: Run, signal: Signal, owners: list[str]) -> dict[str, Any] | None:
    """Return the readings of owners as rows, the first layer first; None without readings."""
    if signal not in run or not owners:
        return None
    table = run[signal]
    steps = sorted({int(step) for owner in owners for step in table[owner].steps})
    column = {step: place for place, step in enumerate(steps)}
    rows: list[list[float | str | None]] = []
    for owner in owners:
        row: list[float | str | None] = [None] * len(steps)
        series = table[owner]
        for step, value in zip(series.steps.tolist(), numbers(series.values), strict=True):
            row[column[step]] = value
        rows.append(row)
    return {"rows": [_layer(owner) for owner in owners], "steps": steps, "values": rows}


def _layer(owner: str) -> str:
    """Return `3` for the owner `2.linear.weight`, and `head` for the last layer."""
    index, _, rest = owner.partition(".")
    return f"{int(index) + 1}" if "." in rest or rest == "activation" else "head"


def _histograms(distribution: list[tuple[int, list[np.ndarray]]], layer: int) -> dict[str, Any]:
    """Return the distribution of a layer's weights over time, in bins that hold all of them."""
    snapshots = [(step, weights[layer]) for step, weights in distribution]
    finite = [values[np.isfinite(values)] for _, values in snapshots]
    widest = max((float(np.abs(values).max()) for values in finite if len(values)), default=1.0)
    edges = np.linspace(-(widest or 1.0), widest or 1.0, _BINS + 1)
    return {
        "steps": [step for step, _ in snapshots],
        "edges": numbers(edges),
        "counts": [np.histogram(values, edges)[0].tolist() for values in finite],
        "nonfinite": [
            len(values) - len(kept) for (_, values), kept in zip(snapshots, finite, strict=True)
        ],
    }
