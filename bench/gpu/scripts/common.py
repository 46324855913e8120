"""What the scripts share: their arguments, synthetic data, and the losses that they print."""

import argparse

import torch
from torch import Tensor, nn


def parser(*, steps: int, lr: float) -> argparse.ArgumentParser:
    """Return a parser with the arguments of every script."""
    made = argparse.ArgumentParser()
    made.add_argument("--device", default="cuda")
    made.add_argument("--deterministic", action="store_true")
    made.add_argument("--steps", type=int, default=steps)
    made.add_argument("--lr", type=float, default=lr)
    return made


def start(made: argparse.ArgumentParser) -> argparse.Namespace:
    """Parse the arguments, seed torch, and choose deterministic algorithms if asked to."""
    args = made.parse_args()
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(args.deterministic)
    return args


def clusters(count: int, *, width: int, classes: int = 10) -> tuple[Tensor, Tensor]:
    """Return points around the centres of classes, and their labels."""
    centres = torch.randn(classes, width)
    labels = torch.randint(classes, (count,))
    return 0.7 * centres[labels] + torch.randn(count, width), labels


class Losses:
    """The losses of all steps, kept on their device until the end."""

    def __init__(self) -> None:
        self._kept: list[Tensor] = []

    def add(self, loss: Tensor) -> None:
        """Keep the loss of one step."""
        self._kept.append(loss.detach().float().clone())

    def finish(self, *models: nn.Module) -> None:
        """Print every loss and a sum over the weights, exactly."""
        for step, loss in enumerate(torch.stack(self._kept).tolist()):
            print("loss", step, float(loss).hex())
        total = sum(float(p.detach().cpu().double().sum()) for m in models for p in m.parameters())
        print("weights", float(total).hex())
        print("steps", len(self._kept))
