"""Guards of operations that have a safe form come before leaving out a batch; rising rates."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from failures import window
from torch import Tensor, nn

import holter
from holter import check
from holter.diagnosis.facts.replays import Replayed, replayed
from holter.lab.replay.investigating import whole
from holter.lab.setup import LossPhase, Setup
from holter.lab.writing import Lab

STEPS, BAD = 60, 45


class Steep(torch.autograd.Function):
    """Softplus, with a gradient that overflows."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return nn.functional.softplus(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:  # type: ignore[override]
        (x,) = ctx.saved_tensors
        e = torch.exp(x)
        return grad * e / (1 + e)


def inputs(scale: float) -> list[Tensor]:
    torch.manual_seed(0)
    made = [torch.randn(8, 4) for _ in range(STEPS)]
    made[BAD][2] *= scale
    return made


def ranking() -> tuple[nn.Module, list[Any], Callable[[nn.Module, Any], Tensor]]:
    torch.manual_seed(1)

    def loss(model: nn.Module, x: Any) -> Tensor:
        return Steep.apply(model(x) - x.sum(1, keepdim=True)).mean()

    return nn.Linear(4, 1), inputs(1e3), loss


def recognition() -> tuple[nn.Module, list[Any], Callable[[nn.Module, Any], Tensor]]:
    torch.manual_seed(1)
    ctc = nn.CTCLoss()
    batches = [(x, 2 if step == BAD else 8) for step, x in enumerate(inputs(1.0))]

    def loss(model: nn.Module, batch: Any) -> Tensor:
        x, frames = batch
        logs = model(x).unsqueeze(0).expand(8, -1, -1).log_softmax(-1)
        lengths = torch.full((8,), 8)
        lengths[3] = frames
        return ctc(logs, torch.tensor([[1, 2, 3]]).expand(8, -1), lengths, torch.full((8,), 3))

    return nn.Linear(4, 5), batches, loss


def investigated(
    path: Path,
    model: nn.Module,
    batches: list[Any],
    loss_of: Callable[[nn.Module, Any], Tensor],
    rate: Callable[[int], float] = lambda _: 1e-2,
) -> Replayed:
    state = {name: each.clone() for name, each in model.state_dict().items()}
    optimizer = torch.optim.SGD(model.parameters(), lr=rate(0))
    setup = Setup({"": model}, (LossPhase(lambda b: loss_of(model, b), (optimizer,)),), batches)
    with holter.watch(model, optimizer, path, quiet=True, budget=None):
        for step, batch in enumerate(batches):
            optimizer.param_groups[0]["lr"] = rate(step)
            loss = setup.loss(batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    model.load_state_dict(state)
    again = window(path, setup)
    again._drawn = {step: [batch] for step, batch in enumerate(batches)}
    with Lab(path) as lab:
        list(whole(again, lab))
    found = replayed(holter.Run.load(path))
    assert found is not None
    return found


def test_a_gradient_that_the_script_writes_is_guarded(tmp_path: Path) -> None:
    found = investigated(tmp_path / "run", *ranking())
    assert found.birth is not None and found.birth.is_in_own_backward
    assert "step skipped" in found.cured_by("skip")
    assert found.proven_cure is not None and found.proven_cure.name == "guarded exp"


def test_a_ctc_loss_without_an_alignment_is_guarded(tmp_path: Path) -> None:
    found = investigated(tmp_path / "run", *recognition())
    assert found.birth is not None and found.birth.operation == "ctc_loss"
    assert "step skipped" in found.cured_by("skip")
    assert found.proven_cure is not None and found.proven_cure.name == "guarded ctc_loss"


def test_a_rate_that_never_stops_rising_is_held_at_its_earlier_value(tmp_path: Path) -> None:
    torch.manual_seed(0)
    target = torch.randn(4, 1)
    batches = [torch.randn(32, 4) for _ in range(400)]

    def loss(model: nn.Module, x: Any) -> Tensor:
        return (model(x) - x @ target).pow(2).mean() + 0.1 * model(x).abs().mean()

    found = investigated(
        tmp_path / "run", nn.Linear(4, 1), batches, loss, lambda step: 0.004 * (step + 1)
    )
    assert found.proven_cure is not None
    assert found.proven_cure.name == "learning rate before it rose"
    findings = check(holter.Run.load(tmp_path / "run")).findings
    (told,) = [each for each in findings if each.rule == "oversized-steps"]
    assert "the learning rate rises from" in told.summary
