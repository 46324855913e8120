"""The peers' side of the comparison: rules by their limits, scripts heard from outside."""

from pathlib import Path

import numpy as np
import pytest

from bench.peers import sagemaker, torch_audit, torchmortem
from bench.peers.attaching import run_with
from bench.peers.peer import Alarm, Peer
from bench.peers.report import Row, render
from holter.diagnosis.engine import all_rules
from holter.record import Run
from holter.record.meta import Meta, ParameterSummary
from holter.record.signals import (
    ACTIVATION_DEAD_FRACTION,
    GRAD_NONFINITE,
    GRAD_NORM,
    LOSS,
    UPDATE_RATIO,
    VAL_LOSS,
)
from synthetic import run_of, series
from zoo.specimens import Specimen

FALLING = np.linspace(2.0, 1.0, 40)
WEIGHT = Meta(parameters={"layer.weight": ParameterSummary((100, 100), "float32")})


def fired(run: Run) -> set[str]:
    return {each.name for each in sagemaker.alarms(run)}


def test_a_falling_loss_is_silent() -> None:
    assert not fired(run_of({LOSS: {"": FALLING}, VAL_LOSS: {"mse": series([1.6, 1.1], [20, 39])}}))


def test_a_loss_that_is_higher_ten_steps_later_fires() -> None:
    loss = FALLING.copy()
    loss[30:] = 3.0
    assert "LossNotDecreasing" in fired(run_of({LOSS: {"": loss}}))


def test_validation_a_tenth_above_training_is_overfit() -> None:
    level = np.ones(40)
    over = run_of({LOSS: {"": level}, VAL_LOSS: {"mse": series([1.11], [39])}})
    under = run_of({LOSS: {"": level}, VAL_LOSS: {"mse": series([1.09], [39])}})
    assert sagemaker.overfit(over)
    assert not sagemaker.overfit(under)


@pytest.mark.parametrize(("norm", "said"), [(0.9e-5, True), (1.1e-5, False)])
def test_gradients_vanish_below_a_mean_of_1e_7(norm: float, said: bool) -> None:
    run = run_of({GRAD_NORM: {"layer.weight": [1.0, norm]}}, meta=WEIGHT)
    assert sagemaker.vanishing_gradient(run) is said


def test_updates_have_a_band_and_biases_are_not_looked_at() -> None:
    run = run_of({UPDATE_RATIO: {"a.weight": [1e-3, 11.0], "a.bias": [0.0, 0.0, 0.0]}})
    assert fired(run) == {"WeightUpdateRatio: large"}
    still = run_of({UPDATE_RATIO: {"a.weight": [1e-3, 0.0, 0.0]}})
    assert fired(still) == {"WeightUpdateRatio: small", "UnchangedTensor"}


def test_dead_layers_and_nonfinite_tensors_fire() -> None:
    run = run_of({ACTIVATION_DEAD_FRACTION: {"1": [0.51]}, GRAD_NONFINITE: {"a.weight": [0, 3]}})
    assert fired(run) == {"DeadRelu", "ExplodingTensor"}


@pytest.mark.parametrize("peer", [sagemaker.PEER, torchmortem.PEER, torch_audit.PEER])
def test_alarms_mean_rules_that_exist(peer: Peer) -> None:
    assert {rule for rules in peer.means.values() for rule in rules} <= set(all_rules())


def test_a_script_is_heard_from_outside(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import torch\n"
        "encoder, teacher = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)\n"
        "model = torch.nn.Sequential(encoder, torch.nn.Linear(4, 1))\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "for step in range(3):\n"
        "    x = torch.ones(2, 4)\n"
        "    with torch.no_grad(): y = teacher(x)\n"
        "    loss = ((model(x) - y) ** 2).mean() * 0 + step\n"
        "    loss.backward()\n"
        "    optimizer.step()\n"
    )
    heard: list[tuple[str, float | None]] = []

    class Monitor:
        def __init__(self, model: object, optimizer: object) -> None:
            self.name = f"{type(model).__name__} {type(optimizer).__name__}"

        def step(self, loss: float | None) -> None:
            heard.append((self.name, loss))

        def alarms(self) -> list[Alarm]:
            return [Alarm("said", step=len(heard))]

    assert run_with(script, Monitor) == [Alarm("said", step=3)]
    assert heard == [("Sequential SGD", 0.0), ("Sequential SGD", 1.0), ("Sequential SGD", 2.0)]


def test_the_table_counts_each_run_once() -> None:
    peer = Peer("some", "some things", {"hot": ("huge-updates",), "odd": ()}, frozenset({"style"}))
    sick = {name: Specimen(name, "", (), "", cause="huge-updates") for name in "abc"}
    truth = {**sick, "well": Specimen("well", "", (), "")}
    said = {
        ("a", 0): [Alarm("hot", note=True)],
        ("b", 0): [Alarm("odd"), Alarm("odd", note=True)],
        ("c", 0): [Alarm("style")],
        ("well", 0): [Alarm("odd")],
    }
    line = next(each for each in render([Row("some", peer, said)], truth).splitlines()[2:])
    named, covered, chance, elsewhere, silent, _, loud, *_ = line.split(" | ")[3:]
    assert named == covered == elsewhere == silent == "33% (1 of 3)"
    assert (chance, loud) == ("0%", "100% (1 of 1)")
