"""Floors against a slow and obvious oracle: predictions that are moved until nothing is gained."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from holter.lab.calls import losses_seen
from holter.lab.experiments._overfitting.floors import Floor, floor_of
from holter.lab.experiments._overfitting.free_floors import free_floor
from holter.lab.experiments._overfitting.passes import Pass
from holter.lab.setup import Setup

DUPLICATES = torch.tensor([0, 0, 1, 2, 2, 2, 3, 4])  # which of 8 samples have the same input
ONE_FOR_ALL = torch.zeros(8, dtype=torch.long)


def seen(function: str, predictions: Tensor, target: Tensor, **how: Any) -> Pass:
    with losses_seen() as calls:
        loss = vars(functional)[function](predictions, target, **how)
    inputs = torch.eye(8)[torch.arange(8)]
    return Pass(float(loss.mean()), tuple(calls), (inputs,), ())


def computed(found: Pass, groups: Tensor | None = None) -> Floor:
    inputs = torch.eye(8) if groups is None else torch.eye(8)[groups]
    floor = floor_of([Pass(found.loss, found.calls, (inputs,), ())], 8)
    assert isinstance(floor, Floor)
    return floor


def least(
    function: str, shape: tuple[int, ...], target: Tensor, groups: Tensor, **how: Any
) -> float:
    free = (0.1 * torch.randn(8, *shape[1:], dtype=torch.float64)).requires_grad_()
    optimizer = torch.optim.LBFGS([free], max_iter=400, line_search_fn="strong_wolfe")
    exact = {k: v.double() if isinstance(v, Tensor) else v for k, v in how.items()}
    goal = target.double() if target.is_floating_point() else target

    def loss() -> Tensor:
        optimizer.zero_grad()
        given = free[groups]
        if function in ("nll_loss", "kl_div"):
            given = given.log_softmax(1)
        if function == "binary_cross_entropy":
            given = given.sigmoid()
        found = vars(functional)[function](given, goal, **exact)
        found.backward()
        return found

    for _ in range(3):
        optimizer.step(loss)
    return float(loss().detach())


torch.manual_seed(0)
LABELS = torch.randint(5, (8,))
SOFT = torch.rand(8, 5).softmax(1)
WEIGHTS = torch.rand(5) + 0.2
IGNORED = LABELS.clone().index_fill_(0, torch.tensor([2, 5]), -100)
NUMBERS = 3 * torch.randn(8, 2)
CASES: list[tuple[str, tuple[int, ...], Tensor, dict[str, Any]]] = [
    ("cross_entropy", (8, 5), LABELS, {}),
    ("cross_entropy", (8, 5), LABELS, {"label_smoothing": 0.1}),
    ("cross_entropy", (8, 5), LABELS, {"label_smoothing": 0.2, "weight": WEIGHTS}),
    ("cross_entropy", (8, 5), IGNORED, {"label_smoothing": 0.1, "weight": WEIGHTS}),
    ("cross_entropy", (8, 5), LABELS, {"label_smoothing": 0.1, "reduction": "sum"}),
    ("cross_entropy", (8, 5), SOFT, {}),
    ("cross_entropy", (8, 5), SOFT, {"label_smoothing": 0.1, "weight": WEIGHTS}),
    ("nll_loss", (8, 5), LABELS, {"weight": WEIGHTS}),
    ("binary_cross_entropy_with_logits", (8, 5), SOFT, {}),
    ("binary_cross_entropy_with_logits", (8, 5), SOFT, {"pos_weight": 3 * WEIGHTS}),
    ("binary_cross_entropy_with_logits", (8, 5), SOFT, {"weight": torch.rand(8, 5)}),
    ("binary_cross_entropy", (8, 5), (SOFT > 0.2).float(), {}),
    ("kl_div", (8, 5), SOFT, {"reduction": "batchmean"}),
    ("kl_div", (8, 5), SOFT, {"reduction": "sum"}),
    ("mse_loss", (8, 2), NUMBERS, {}),
    ("huber_loss", (8, 2), NUMBERS, {"delta": 0.5}),
    ("smooth_l1_loss", (8, 2), NUMBERS, {"reduction": "sum"}),
]


@pytest.mark.parametrize(("function", "shape", "target", "how"), CASES)
def test_floor_is_the_least_that_free_predictions_reach(
    function: str, shape: tuple[int, ...], target: Tensor, how: dict[str, Any]
) -> None:
    predictions = torch.rand(shape).log_softmax(1) if function == "kl_div" else torch.rand(shape)
    found = seen(function, predictions, target, **how)
    for groups in (torch.arange(8), DUPLICATES):
        floor = computed(found, groups)
        assert floor.least == pytest.approx(least(function, shape, target, groups, **how), abs=1e-4)
    constant = least(function, shape, target, ONE_FOR_ALL, **how)
    assert computed(found).constant == pytest.approx(constant, abs=1e-4)


def test_median_is_the_floor_of_l1() -> None:
    target = torch.tensor([0.0, 1, 5, 2, 2, 9, 0, 0])[:, None]
    found = seen("l1_loss", torch.zeros(8, 1), target)
    assert computed(found, DUPLICATES).least == pytest.approx((1 + 7) / 8, abs=1e-4)


@pytest.mark.parametrize(("classes", "floor"), [(10, 0.500), (1000, 1.015), (50_000, 1.407)])
def test_label_smoothing_by_classes(classes: int, floor: float) -> None:
    labels = torch.randint(classes, (8,))
    found = seen("cross_entropy", torch.zeros(8, classes), labels, label_smoothing=0.1)
    assert computed(found).least == pytest.approx(floor, abs=1e-3)


def test_sequences_with_the_same_beginning() -> None:
    """What follows the first word of all cannot be known by a model that reads from the left."""
    words = torch.tensor([[0, 1, 2], [0, 2, 1], [0, 1, 1], [0, 2, 2]])
    following = torch.tensor([[1, 2, 0], [2, 1, 0], [1, 1, 0], [2, 2, 0]])
    found = seen("cross_entropy", torch.zeros(12, 3), following.flatten())
    floor = floor_of([Pass(found.loss, found.calls, (words,), ())], 4)
    assert isinstance(floor, Floor)
    assert floor.least == pytest.approx((4 + 4) * 0.6931 / 12, abs=1e-3)


def test_noise_in_targets_of_the_same_inputs() -> None:
    y = torch.randn(8, 1)
    passes = [seen("mse_loss", torch.zeros(8, 1), y + 0.3 * torch.randn(8, 1)) for _ in range(200)]
    floor = floor_of(passes, 8)
    assert isinstance(floor, Floor)
    assert floor.exact
    assert floor.least == pytest.approx(0.09, rel=0.1)


def test_inputs_drawn_anew_make_a_floor_inexact() -> None:
    passes = [seen("mse_loss", torch.zeros(8, 1), torch.randn(8, 1)) for _ in range(4)]
    other = [Pass(e.loss, e.calls, (torch.randn(8, 3),), ()) for e in passes]
    floor = floor_of(other, 8)
    assert isinstance(floor, Floor)
    assert not floor.exact


def test_samples_that_are_each_others_classes_make_a_floor_inexact() -> None:
    floor = computed(seen("cross_entropy", torch.zeros(8, 8), torch.arange(8)))
    assert (floor.least, floor.exact) == (0.0, False)


def test_a_loss_divided_for_accumulation_has_a_floor() -> None:
    found = seen("cross_entropy", torch.zeros(8, 5), LABELS, label_smoothing=0.1)
    whole = computed(found)
    quarter = computed(Pass(found.loss / 4, found.calls, (), ()))
    assert quarter.least == pytest.approx(whole.least / 4)


def test_a_sum_of_two_calls_has_the_sum_of_floors() -> None:
    one = seen("cross_entropy", torch.zeros(8, 5), LABELS, label_smoothing=0.1)
    other = seen("binary_cross_entropy_with_logits", torch.zeros(8, 5), SOFT)
    both = computed(Pass(one.loss + other.loss, (*one.calls, *other.calls), (), ()))
    assert both.least == pytest.approx(computed(one).least + computed(other).least)


@pytest.mark.parametrize("beside", [0.37, -0.2])
def test_a_loss_with_another_term_has_no_computed_floor(beside: float) -> None:
    found = seen("cross_entropy", torch.zeros(8, 5), LABELS)
    assert isinstance(floor_of([Pass(found.loss + beside, found.calls, (), ())], 8), str)


@pytest.mark.parametrize("function", ["gaussian_nll_loss", "triplet_margin_loss", "ctc_loss"])
def test_other_functions_have_no_computed_floor(function: str) -> None:
    call = seen("mse_loss", torch.zeros(8, 1), torch.zeros(8, 1)).calls[0]
    strange = type(call)(function, call.arguments, call.value)
    assert isinstance(floor_of([Pass(0.0, (strange,), (), ())], 8), str)


def hand_written(loss: Any) -> Setup:
    torch.manual_seed(0)
    model = nn.Linear(6, 5)
    batches = [(torch.randn(8, 6), LABELS)]
    return Setup.of(model, torch.optim.SGD(model.parameters(), 0.1), loss, batches)


def test_free_outputs_find_the_floor_of_a_loss_written_by_hand() -> None:
    def smoothed(model: nn.Module, batch: Any) -> Tensor:
        logs = model(batch[0]).log_softmax(1)
        return -(0.9 * logs.gather(1, batch[1][:, None])[:, 0] + 0.1 * logs.mean(1)).mean()

    setup = hand_written(smoothed)
    known = computed(seen("cross_entropy", torch.zeros(8, 5), LABELS, label_smoothing=0.1))
    batch = setup.batches(1)[0]
    assert free_floor(setup, batch) == pytest.approx(known.least, abs=1e-3)
    assert free_floor(setup, batch, shared=8) == pytest.approx(known.constant, abs=1e-3)


def test_a_loss_without_end_has_no_floor() -> None:
    setup = hand_written(lambda model, batch: -model(batch[0]).square().mean())
    assert free_floor(setup, setup.batches(1)[0]) is None


def test_a_loss_that_the_model_returns_itself_is_not_free() -> None:
    setup = hand_written(lambda model, batch: model(batch[0]).mean(0).sum())
    setup.model.register_forward_hook(lambda *given: given[2].square().mean())
    assert free_floor(setup, setup.batches(1)[0]) is None
