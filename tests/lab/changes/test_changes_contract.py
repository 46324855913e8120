"""What every change must satisfy: it has a name that can be read back, and it leaves no trace."""

from contextlib import nullcontext

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.nn.modules.module import _global_forward_pre_hooks
from torch.optim import optimizer
from torch.utils.data import DataLoader, TensorDataset

from holter.lab.birth.guards import OperationGuard
from holter.lab.changes import UNCHANGED, Change, TappedChange
from holter.lab.changes.activations import LAST_ACTIVATION_OFF
from holter.lab.changes.augmentation import AUGMENTATION_OFF
from holter.lab.changes.clipping import CLIP_OUTLIERS, CLIPPING_OFF, clip_to, clipped_at_steps
from holter.lab.changes.data import (
    CLASS_WEIGHTS,
    MEAN_LOSS,
    SHUFFLED_LOADER,
    STANDARDISED_INPUTS,
    STANDARDISED_TARGETS,
    UNWEIGHTED_LOSS,
)
from holter.lab.changes.dropout import DROPOUT_OFF
from holter.lab.changes.gradients import ACCUMULATION_DIVIDED, GRADIENTS_CLEARED
from holter.lab.changes.graph import CUTS_OFF, hidden_term, without_term
from holter.lab.changes.kernels import COMPILE_OFF, DETERMINISTIC, MATH_ATTENTION
from holter.lab.changes.learning_rate import RATES_HELD, SCHEDULE_CONSTANT, rates_times, warm_up
from holter.lab.changes.membership import ALL_IN_OPTIMIZER, ALL_TRAINABLE
from holter.lab.changes.modes import EVAL_MODE, FROZEN_EVAL, TRAIN_MODE, batch_norm_mode
from holter.lab.changes.optimizer import (
    DEFAULT_EPSILON,
    DEFAULT_MOMENTUM,
    LARGER_EPSILON,
    LINE_SEARCH,
    NO_WEIGHT_DECAY,
    adam,
)
from holter.lab.changes.passes import (
    LOG_PROBABILITIES,
    LOGITS,
    ROLLED_LABELS,
    SAME_RANDOM_NUMBERS,
    TARGET_SHAPE,
    layer_left_out,
    noise_inputs,
    rescaled_outputs,
    standardised_inputs,
)
from holter.lab.changes.precision import AUTOCAST_OFF, FLOAT32
from holter.lab.changes.reference import REFERENCE_MODEL
from holter.lab.changes.swaps import (
    LABELS_SHUFFLED,
    LEARNABLE_LABELS,
    PLAIN_LOOP,
    REFERENCE_OPTIMIZER,
)
from holter.lab.changes.weights import DEFAULT_INITIALISATION, EDITS_LEFT_OUT, REINITIALISED
from holter.lab.randomness import RandomState
from holter.lab.setup import Setup
from holter.lab.state import State
from holter.record.births import Birth
from holter.record.trials import TrialName
from holter.record.typed import from_json

BIRTH = from_json(Birth, {"operation": "log", "where": "train.py:1"})
TAPPED: list[TappedChange] = [
    *(CLIPPING_OFF, CLIP_OUTLIERS, DROPOUT_OFF, LARGER_EPSILON, NO_WEIGHT_DECAY, LOGITS),
    *(TARGET_SHAPE, LOG_PROBABILITIES, rates_times(0.1), rates_times(10_000), warm_up(5)),
    *(
        SCHEDULE_CONSTANT,
        DEFAULT_EPSILON,
        DEFAULT_MOMENTUM,
        GRADIENTS_CLEARED,
        ACCUMULATION_DIVIDED,
    ),
    *(ALL_IN_OPTIMIZER, ALL_TRAINABLE, TRAIN_MODE, EVAL_MODE, AUTOCAST_OFF),
    *(STANDARDISED_INPUTS, STANDARDISED_TARGETS, MEAN_LOSS, CLASS_WEIGHTS, SHUFFLED_LOADER),
    *(DEFAULT_INITIALISATION, PLAIN_LOOP, REFERENCE_OPTIMIZER, REFERENCE_MODEL),
    *(LEARNABLE_LABELS, LAST_ACTIVATION_OFF, RATES_HELD, clipped_at_steps(0.1)),
    *(LABELS_SHUFFLED, FROZEN_EVAL, UNWEIGHTED_LOSS, CUTS_OFF, AUGMENTATION_OFF),
    *(without_term(1), hidden_term(2), LINE_SEARCH, EDITS_LEFT_OUT),
]
CHANGES: list[Change] = [
    *(UNCHANGED, clip_to(0.1), DETERMINISTIC, MATH_ATTENTION, COMPILE_OFF),
    *(batch_norm_mode(training=True), batch_norm_mode(training=False)),
    *(adam(), adam(nothing_frozen=True), ROLLED_LABELS, SAME_RANDOM_NUMBERS),
    *(layer_left_out(nn.ReLU()), noise_inputs(16), standardised_inputs(16)),
    OperationGuard(BIRTH).change.on_setup,
    *(rescaled_outputs(torch.ones(1), torch.zeros(1)), FLOAT32, REINITIALISED),
    *(change.on_setup for change in TAPPED),
]
tapped = pytest.mark.parametrize("change", TAPPED, ids=lambda change: str(change.id))
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
    adamw = torch.optim.AdamW(model.parameters(), lr=1e-2)
    loader = DataLoader(TensorDataset(x, y), 16, shuffle=True)
    setup = Setup.of(model, adamw, nn.CrossEntropyLoss(), loader, max_norm=0.5)
    setup.step(*setup.batches(1))
    return setup


def functions() -> list[object]:
    """What changes may tap or hook."""
    return [
        *(functional.dropout, functional.cross_entropy, functional.scaled_dot_product_attention),
        *(nn.Module.__call__, nn.utils.clip_grad_value_, torch.autograd.backward),
        *(torch.optim.Optimizer.add_param_group, DataLoader.__init__, DataLoader.__iter__),
        *(torch.amp.autocast_mode.autocast.__init__, len(optimizer._global_optimizer_pre_hooks)),
        *(len(optimizer._global_optimizer_post_hooks), len(_global_forward_pre_hooks)),
        *(torch.Tensor.__add__, torch.Tensor.__radd__, torch.Tensor.__sub__, torch.Tensor.detach),
    ]


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


@changes
def test_a_changed_training_can_be_trained_and_restored(change: Change) -> None:
    setup = training()
    state, before, random = State(setup), functions(), RandomState.now()
    with change.applied(setup) as changed:
        losses = [changed.step(*changed.batches(1)) for _ in range(2)]
    assert all(torch.isfinite(torch.tensor(losses)))
    state.restore()
    random.restore()
    state.prove()
    assert functions() == before


@tapped
def test_it_says_whether_it_altered_anything(change: TappedChange) -> None:
    """A change that altered nothing leaves the training as it is, bit for bit."""
    altered = []
    after = []
    for entered in (nullcontext(), change.entered(lambda: altered.append(1))):
        setup = training()
        with entered:
            batches = list(setup.train)
            for number in range(3):
                setup.step(batches[number])
        after.append([p.detach().clone() for p in setup.model.parameters()])
    same = all(torch.equal(one, other) for one, other in zip(*after, strict=True))
    assert same is not bool(altered)
