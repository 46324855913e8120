"""A capture loaded into a setup: its models and optimizers are matched, then overwritten."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from holter.lab.setup import Setup
from holter.record.errors import HolterError
from holter.watching.blackbox.capture import Capture
from holter.watching.blackbox.shadow import held_by


class CapturedState:
    """The state of a capture, matched with the models and optimizers of a setup."""

    def __init__(self, setup: Setup, capture: Capture) -> None:
        self._capture = capture
        self._models = _paired_models(setup.models, capture.state)
        self.optimizers = _paired_optimizers(setup.optimizers, capture.plain, capture.state)
        _require_fitting(self._models, capture)

    def parameter(self, name: str) -> Tensor:
        """Return the parameter of the setup that a capture has under this name."""
        _, label, place = name.split("/", 2)
        return self._models[label].get_parameter(place)

    def load(self) -> None:
        """Write weights, buffers and optimizer states of the capture into the setup."""
        with torch.no_grad():
            for label, model in self._models.items():
                for name, tensor in (*model.named_parameters(), *model.named_buffers()):
                    tensor.copy_(self._capture.state[f"model/{label}/{name}"])
                    tensor.grad = None
            for label, optimizer in self.optimizers.items():
                _load_optimizer(optimizer, label, self._capture)


def _paired_models(
    models: Mapping[str, nn.Module], state: Mapping[str, Tensor]
) -> dict[str, nn.Module]:
    """The models by the labels that the capture has for them."""
    labels = list(dict.fromkeys(n.split("/")[1] for n in state if n.startswith("model/")))
    if set(models) <= set(labels):
        return dict(models)
    if len(models) != len(labels):
        raise HolterError(
            f"The capture has {len(labels)} models ({', '.join(labels)}), the training has"
            f" {len(models)}: replay it on the training that was recorded."
        )
    return dict(zip(labels, models.values(), strict=True))


def _paired_optimizers(
    optimizers: Sequence[Optimizer], plain: Mapping[str, Any], state: Mapping[str, Tensor]
) -> dict[str, Optimizer]:
    """The optimizers by the labels that the capture has for them: by class, groups and shapes."""
    left = list(optimizers)
    paired: dict[str, Optimizer] = {}
    for label, about in plain.items():
        alike = [
            o
            for o in left
            if type(o).__name__ == about["class"]
            and len(about["groups"]) == len(o.param_groups)
            and len(about["state"]) == len(held_by(o))
            and about["shapes"] == [list(parameter.shape) for parameter in held_by(o)]
            and _fits(o, label, state)
        ]
        if not alike:
            raise HolterError(
                f"No optimizer of the training matches the captured {about['class']}."
            )
        paired[label] = alike[0]
        left.remove(alike[0])
    return paired


def _fits(optimizer: Optimizer, label: str, state: Mapping[str, Tensor]) -> bool:
    """Whether the captured moments have the shapes of the parameters: two may be alike else."""
    return all(
        not kept.ndim or kept.shape == each.shape
        for place, each in enumerate(held_by(optimizer))
        for name in ("exp_avg", "momentum_buffer", "square_avg", "sum")
        if (kept := state.get(f"optimizer/{label}/{place}/{name}")) is not None
    )


def _require_fitting(models: Mapping[str, nn.Module], capture: Capture) -> None:
    for label, model in models.items():
        for name, each in (*model.named_parameters(), *model.named_buffers()):
            kept = capture.state.get(f"model/{label}/{name}")
            if kept is None or kept.shape != each.shape:
                what = "is not in the capture" if kept is None else f"is {tuple(kept.shape)} there"
                raise HolterError(
                    f"The model has changed since the capture: {name} {tuple(each.shape)} {what}."
                )


def _load_optimizer(optimizer: Optimizer, label: str, capture: Capture) -> None:
    about = capture.plain[label]
    for group, kept in zip(optimizer.param_groups, about["groups"], strict=True):
        for key, value in kept.items():
            if isinstance(group.get(key), Tensor):
                group[key].fill_(value)
            elif key in group:
                group[key] = tuple(value) if isinstance(group[key], tuple) else value
    optimizer.state.clear()
    for place, parameter in enumerate(held_by(optimizer)):
        start = f"optimizer/{label}/{place}/"
        tensors = {n[len(start) :]: t for n, t in capture.state.items() if n.startswith(start)}
        plain = about["state"].get(str(place), {})
        if tensors or plain:
            optimizer.state[parameter] = {
                **plain,
                # A count of steps stays on the host, unless it was captured with the device's help.
                **{n: t.clone().to(_home(n, optimizer, parameter)) for n, t in tensors.items()},
            }
        parameter.grad = None


def _home(name: str, optimizer: Optimizer, parameter: Tensor) -> torch.device:
    group = next(g for g in optimizer.param_groups if any(p is parameter for p in g["params"]))
    on_device = bool(group.get("fused")) or bool(group.get("capturable"))
    return parameter.device if name != "step" or on_device else torch.device("cpu")
