"""What every change must satisfy: it has a name that can be read back, and it leaves no trace."""

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from holter.lab.birth.guards import OperationGuard
from holter.lab.changes import UNCHANGED, Change
from holter.lab.changes.clipping import CLIPPING_OFF, clip_to
from holter.lab.changes.dropout import DROPOUT_OFF
from holter.lab.changes.kernels import COMPILE_OFF, DETERMINISTIC, MATH_ATTENTION
from holter.lab.changes.learning_rate import learning_rate_times
from holter.lab.changes.modes import batch_norm_mode
from holter.lab.changes.optimizer import LARGER_EPSILON, NO_WEIGHT_DECAY, adam
from holter.lab.changes.passes import (
    LOGITS,
    ROLLED_LABELS,
    SAME_RANDOM_NUMBERS,
    TARGET_SHAPE,
    layer_left_out,
    noise_inputs,
    rescaled_outputs,
    standardised_inputs,
)
from holter.lab.changes.precision import FLOAT32
from holter.lab.changes.weights import REINITIALISED
from holter.lab.randomness import RandomState
from holter.lab.setup import Setup
from holter.lab.state import State
from holter.record.births import Birth
from holter.record.trials import TrialName
from holter.record.typed import from_json

BIRTH = from_json(Birth, {"operation": "log", "where": "train.py:1"})
CHANGES: list[Change] = [
    *(UNCHANGED, CLIPPING_OFF, clip_to(0.1), DROPOUT_OFF, DETERMINISTIC, MATH_ATTENTION),
    *(COMPILE_OFF, learning_rate_times(0.1), learning_rate_times(10_000), LARGER_EPSILON),
    *(batch_norm_mode(training=True), batch_norm_mode(training=False), NO_WEIGHT_DECAY),
    *(adam(), adam(nothing_frozen=True), LOGITS, ROLLED_LABELS, SAME_RANDOM_NUMBERS),
    *(TARGET_SHAPE, layer_left_out(nn.ReLU()), noise_inputs(16), standardised_inputs(16)),
    OperationGuard(BIRTH).change,
    *(rescaled_outputs(torch.ones(1), torch.zeros(1)), FLOAT32, REINITIALISED),
]
changes = pytest.mark.parametrize("change", CHANGES, ids=lambda change: str(change.id))


def training() -> Setup:
    """A setup in the middle of its training, in which every change has something to change."""
    torch.manual_seed(0)
    x = torch.randn(64, 6)
    y = (x[:, 0] > 0).long()
    model = nn.Sequential(
        nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 2)
    )
    model[0].bias.requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    loader = DataLoader(TensorDataset(x, y), 16, shuffle=True)
    setup = Setup.of(model, optimizer, nn.CrossEntropyLoss(), loader, max_norm=0.5)
    setup.step(*setup.batches(1))
    return setup


def functions() -> list[object]:
    return [functional.dropout, functional.cross_entropy, functional.scaled_dot_product_attention]


@changes
def test_its_name_is_read_back(change: Change) -> None:
    assert TrialName.parse(str(change.id)) == change.id
    assert change.description.endswith(".")


@changes
def test_it_leaves_no_trace(change: Change) -> None:
    setup = training()
    state, before, random = State(setup), functions(), RandomState.now()
    with change.applied(setup):
        pass
    random.restore()
    state.prove()
    assert functions() == before


@changes
def test_an_exception_leaves_none_either(change: Change) -> None:
    setup = training()
    state, before, random = State(setup), functions(), RandomState.now()
    with pytest.raises(KeyboardInterrupt), change.applied(setup):
        raise KeyboardInterrupt
    random.restore()
    state.prove()
    assert functions() == before


@pytest.mark.parametrize(
    "change",
    [each for each in CHANGES if each not in (TARGET_SHAPE, LOGITS)],
    ids=lambda change: str(change.id),
)
def test_a_changed_training_can_be_trained(change: Change) -> None:
    setup = training()
    with change.applied(setup) as changed:
        losses = [changed.step(*changed.batches(1)) for _ in range(2)]
    assert all(torch.isfinite(torch.tensor(losses)))
