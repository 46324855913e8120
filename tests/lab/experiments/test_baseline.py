"""Simple models beside the network: their parts against obvious oracles, and on small data."""

import math
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from setups import KINDS
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, TensorDataset

from holter import Run
from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.data_sets import measured
from holter.lab.experiments._baselines import comparing, models
from holter.lab.experiments._baselines.features import features_of
from holter.lab.experiments._baselines.rows import IGNORED, read_rows
from holter.lab.inapplicable import InapplicableError
from holter.lab.running import run
from holter.lab.setup import Setup
from holter.record.events import NotApplicable
from holter.record.signals import BASELINE_BALANCED, BASELINE_RANKING, BASELINE_ROWS, BASELINE_SCORE

RANDOM = np.random.default_rng(0)


# Scores and paired tests


def test_a_tail_is_the_sum_of_binomial_probabilities() -> None:
    for first, second in ((3, 2), (10, 0), (7, 7), (0, 4), (40, 12)):
        count = first + second
        exact = sum(math.comb(count, k) for k in range(first, count + 1)) / 2**count
        assert comparing.log_tail(first, second) == pytest.approx(math.log10(exact), abs=1e-9)
    assert comparing.log_tail(0, 0) == 0.0


def test_right_and_wrong_answers_are_compared_by_mcnemars_test() -> None:
    worse = np.array([1.0] * 12 + [0.0] * 3 + [1.0] * 5 + [0.0] * 80)
    better = np.array([0.0] * 12 + [1.0] * 3 + [1.0] * 5 + [0.0] * 80)
    assert comparing.log_chance(worse, better) == comparing.log_tail(12, 3)


def test_a_few_rows_with_large_errors_do_not_decide() -> None:
    better = RANDOM.random(400)
    worse = better + 0.001 * RANDOM.normal(size=400)
    worse[:4] += 1e3
    assert comparing.log_chance(worse, better) > -4
    assert comparing.log_chance(better + 0.1 + 0.01 * RANDOM.random(400), better) < -50
    assert comparing.log_chance(better, better) == 0.0


def test_ranking_is_the_share_of_pairs_in_order() -> None:
    scores, targets = RANDOM.integers(0, 9, 60).astype(float), RANDOM.integers(0, 2, 60)
    pairs = [(a > b) + 0.5 * (a == b) for a in scores[targets == 1] for b in scores[targets == 0]]
    assert comparing.ranking(scores, targets) == pytest.approx(np.mean(pairs))
    assert comparing.ranking(scores, np.ones(60)) is None


def test_errors_of_numbers_are_in_units_of_the_best_constant_prediction() -> None:
    targets = RANDOM.normal(3, 5, (200, 2))
    mean = np.broadcast_to(targets.mean(axis=0), targets.shape)
    median = np.broadcast_to(np.median(targets, axis=0), targets.shape)
    assert comparing.number_errors(mean, targets, absolute=False).mean() == pytest.approx(1)
    assert comparing.number_errors(median, targets, absolute=True).mean() == pytest.approx(1)
    assert np.isnan(comparing.number_errors(mean, mean, absolute=False)).all()


def test_columns_weigh_as_in_the_loss() -> None:
    targets = RANDOM.normal(size=(200, 2)) * [10, 0.1]
    answers = targets * [1, 0]  # the small column is not predicted
    assert comparing.number_errors(answers, targets, absolute=False).mean() < 0.001


def test_targets_below_zero_do_not_count() -> None:
    targets, answers = np.array([[0, 1, -1], [-1, -1, -1]]), np.array([[0, 0, 0], [0, 0, 0]])
    errors = comparing.class_errors(answers, targets)
    assert errors[0] == 0.5
    assert np.isnan(errors[1])
    assert comparing.balanced_accuracy(answers, targets) == 0.5


# Models and features


def test_ridge_finds_a_linear_relation_with_more_columns_than_rows_too() -> None:
    for columns in (5, 150):
        x = RANDOM.normal(size=(300, columns))
        x[:, 5:] *= 0.01
        y = x[:, :5] @ RANDOM.normal(size=(5, 1)) + 7
        made = models.ridge(x[:100], y[:100], x[100:])
        assert np.square(made - y[100:]).mean() < 0.05 * y.var()
    constant = models.ridge(np.ones((50, 2)), np.arange(50.0)[:, None], np.ones((3, 2)))
    assert constant == pytest.approx(24.5)


def test_neighbours_are_those_with_the_least_distance() -> None:
    train, valid = RANDOM.normal(size=(80, 3)), RANDOM.normal(size=(20, 3))
    targets = np.sin(3 * train[:, :1])
    nearest = [np.argsort(((train - row) ** 2).sum(axis=1), kind="stable") for row in valid]
    options = [
        np.array([targets[near[:number]].mean(axis=0) for near in nearest])
        for number in models.NEIGHBOURS
    ]
    made = models.neighbours(train, targets, valid)
    assert any(np.allclose(made, each) for each in options)


def test_a_token_table_has_the_most_frequent_class_of_each_token() -> None:
    tokens, labels = np.array([[1, 1, 1, 2, 2, 5]]), np.array([[0, 0, 1, 1, 1, -1]])
    made = models.token_table(tokens, labels, np.array([[1, 2, 5, 9]]), 2)
    assert made.tolist() == [[0, 1, 1, 1]]  # unknown tokens: the most frequent class of all


def test_naive_bayes_tells_classes_by_their_tokens() -> None:
    counts = np.array([[5.0, 1.0], [4.0, 0.0], [0.0, 6.0]])
    aims = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    made = models.naive_bayes(counts, aims, np.array([[3.0, 0.0], [0.0, 3.0]]))
    assert made.argmax(axis=1).tolist() == [0, 1]


def test_features_are_standardised_by_training_rows_and_missing_numbers_are_the_mean() -> None:
    own = RANDOM.normal(5, 3, (100, 2))
    other = np.array([[np.nan, 1e9]])
    made = features_of({"x": own}, {"x": other, "only here": other}, columns=10)
    assert made is not None
    assert made.train == pytest.approx((own - own.mean(0)) / own.std(0))
    assert made.valid[0, 0] == pytest.approx(0)
    assert np.abs(made.valid).max() < 100  # an outlier is clipped
    assert features_of({"x": own}, {"y": own}, columns=10) is None


def test_large_and_many_inputs_stay_within_the_columns() -> None:
    images = RANDOM.normal(size=(20, 3, 33, 65)).astype(np.float32)
    made = features_of({"x": images}, {"x": images[:5]}, columns=400)
    assert made is not None and made.train.shape[1] <= 400
    many = {f"{n:02}": RANDOM.normal(size=(20, 50)) for n in range(20)}
    made = features_of(many, many, columns=400)
    assert made is not None and made.train.shape[1] <= 400
    text = {"x": RANDOM.integers(0, 5000, (50, 30))}
    made = features_of(text, text, columns=400)
    assert made is not None and made.counts is not None and made.train.shape[1] <= 400


def test_few_integers_are_categories_and_many_are_counted() -> None:
    few, many = np.array([[3], [7], [3]]), np.array([[1] * 9 + [2], [2] * 10, [4] * 10])
    made = features_of({"few": few}, {"few": few}, columns=100)
    assert made is not None and made.counts is None
    assert (made.train[0] == made.train[2]).all() and (made.train[0] != made.train[1]).all()
    made = features_of({"many": many}, {"many": many}, columns=100)
    assert made is not None and made.counts is not None
    assert made.counts[0].tolist() == [[9, 1, 0], [0, 10, 0], [0, 0, 10]]


# Rows


class Pairs(Dataset[dict[str, Tensor]]):
    """Samples that are dicts."""

    def __init__(self, x: Tensor, y: Tensor) -> None:
        self.x, self.y = x, y

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, place: int) -> dict[str, Tensor]:
        return {"values": self.x[place], "target": self.y[place]}


class Linear(nn.Module):
    """A linear model that may standardise each row by itself."""

    def __init__(self, features: int, outputs: int, *, alone: bool = False) -> None:
        super().__init__()
        self.head, self.alone = nn.Linear(features, outputs), alone

    def forward(self, x: Tensor) -> Tensor:
        if self.alone:
            x = functional.layer_norm(x, x.shape[1:])
        made: Tensor = self.head(x)
        return made


def setup_of(
    model: nn.Module, loss: Any, x: Tensor, y: Tensor, *, steps: int = 0, as_dict: bool = False
) -> Setup:
    """A training on three quarters of the rows; the others are held out."""
    kind: Any = Pairs if as_dict else TensorDataset
    part = 3 * len(x) // 4
    train, valid = kind(x[:part], y[:part]), kind(x[part:], y[part:])

    def step(model: nn.Module, batch: Any) -> Tensor:
        inputs, targets = (batch["values"], batch["target"]) if as_dict else batch
        made: Tensor = loss(model(inputs), targets)
        return made

    optimizer = torch.optim.Adam(model.parameters(), 0.03)
    setup = Setup.of(
        model, optimizer, step, DataLoader(train, 32, shuffle=True), valid=DataLoader(valid, 50)
    )
    for batch in islice(setup.endless(), steps):
        setup.step(batch)
    return setup


def table(count: int = 800) -> tuple[Tensor, Tensor]:
    """Rows whose level tells the target."""
    torch.manual_seed(0)
    level = torch.randn(count, 1)
    return torch.randn(count, 6) + 2 * level, level[:, 0]


def text_loss(made: Tensor, targets: Tensor) -> Tensor:
    return functional.cross_entropy(made.flatten(0, 1), targets.flatten(), ignore_index=0)


@pytest.mark.parametrize("as_dict", [False, True])
def test_rows_of_numbers(as_dict: bool) -> None:
    x, y = table(200)
    setup = setup_of(Linear(6, 1), nn.MSELoss(), x, y[:, None], as_dict=as_dict)
    rows = read_rows(setup, setup.valid or (), rows=1000, seconds=5)
    (given,) = rows.inputs.values()
    assert np.array_equal(given, x[150:].numpy())
    assert rows.targets == pytest.approx(y[150:, None].numpy())
    assert rows.answers == pytest.approx(setup.model(x[150:]).detach().numpy(), abs=1e-5)
    assert not rows.is_class and not rows.is_absolute
    wanted = functional.mse_loss(setup.model(x[150:]), y[150:, None])
    assert rows.loss == pytest.approx(wanted.item(), rel=1e-4)


def test_rows_of_yes_and_no_and_of_classes() -> None:
    x, y = table(200)
    yes = nn.BCEWithLogitsLoss()
    setup = setup_of(Linear(6, 1), yes, x, (y > 0).float()[:, None])
    rows = read_rows(setup, setup.valid or (), rows=1000, seconds=5)
    assert rows.is_class and rows.targets.tolist() == (y[150:] > 0).long().tolist()
    assert rows.scores is not None
    assert ((rows.scores > 0) == rows.answers).all()

    setup = setup_of(Linear(6, 3), nn.CrossEntropyLoss(), x, (y > 0).long())
    rows = read_rows(setup, setup.valid or (), rows=1000, seconds=5)
    assert rows.answers.tolist() == setup.model(x[150:]).argmax(1).tolist()
    assert rows.scores is None


def test_rows_of_tokens_have_positions_though_the_loss_is_given_one_axis() -> None:
    torch.manual_seed(0)
    x = torch.randint(1, 8, (100, 6))
    y = x.roll(-1, 1).clone()
    y[:, -2:] = 0  # ignored
    model = nn.Sequential(nn.Embedding(8, 4), nn.Linear(4, 8))
    setup = setup_of(model, text_loss, x, y)
    rows = read_rows(setup, setup.valid or (), rows=1000, seconds=5)
    assert rows.targets.shape == rows.answers.shape == (25, 6)
    assert (rows.targets[:, -2:] == IGNORED).all()
    assert rows.targets[:, :-2].tolist() == y[75:, :-2].tolist()


def test_reading_ends_with_the_rows_that_are_wanted_or_the_time() -> None:
    x, y = table(800)
    setup = setup_of(Linear(6, 1), nn.MSELoss(), x, y[:, None])
    assert len(read_rows(setup, setup.train, rows=40, seconds=5)) == 64
    with pytest.raises(InapplicableError, match="too slow"):
        read_rows(setup, setup.train, rows=1000, seconds=0)


def test_a_loss_that_is_not_known_is_no_comparison() -> None:
    x, y = table(200)

    def poisson(made: Tensor, targets: Tensor) -> Tensor:
        return functional.poisson_nll_loss(made, targets)

    setup = setup_of(Linear(6, 1), poisson, x, y[:, None].abs())
    with pytest.raises(InapplicableError):
        read_rows(setup, setup.train, rows=100, seconds=5)


# The experiment


def scores(made: Run, signal: Any = BASELINE_SCORE) -> Mapping[str, float]:
    return {name: float(each.values[-1]) for name, each in made[signal].items()}


def why(made: Run) -> str:
    (event,) = (
        each for each in made.events_of(NotApplicable) if each.what.experiment == "baseline"
    )
    assert BASELINE_SCORE not in made
    return event.what.why


def test_a_network_that_loses_the_level_is_far_worse(tmp_path: Path) -> None:
    x, y = table()
    setup = setup_of(Linear(6, 1, alone=True), nn.MSELoss(), x, y[:, None], steps=100)
    made = run("baseline", setup, tmp_path / "alone")
    assert scores(made)["linear"] > 0.9
    assert scores(made)["network"] < 0.2
    assert scores(made)["constant"] == 0
    compared = Facts(made).comparison
    assert compared is not None
    assert compared.rows == measured(made, BASELINE_ROWS, "valid") == 200
    assert compared.share < 0.3 and compared.log_chance < -4

    setup = setup_of(Linear(6, 1), nn.MSELoss(), x, y[:, None], steps=200)
    compared = Facts(run("baseline", setup, tmp_path / "whole")).comparison
    assert compared is not None and compared.share > 0.95


def test_two_classes_have_a_balanced_accuracy_and_a_ranking(tmp_path: Path) -> None:
    x, y = table()
    setup = setup_of(Linear(6, 2, alone=True), nn.CrossEntropyLoss(), x, (y > 1).long())
    made = run("baseline", setup, tmp_path / "run")
    assert scores(made, BASELINE_RANKING)["linear"] > 0.95
    assert scores(made, BASELINE_BALANCED)["constant"] == 0.5
    assert scores(made)["constant"] == pytest.approx(float((y[600:] <= 1).float().mean()))


def test_tokens_have_a_table_and_labels_a_constant_of_their_own(tmp_path: Path) -> None:
    torch.manual_seed(0)
    words = torch.randint(1, 8, (300, 6))
    model = nn.Sequential(nn.Embedding(8, 4), nn.Linear(4, 8))
    made = run("baseline", setup_of(model, text_loss, words, 8 - words), tmp_path / "tokens")
    assert scores(made)["token table"] == 1

    x, y = table()
    labels = torch.stack([(y > 1.5).float(), (y < 1.5).float()], 1)  # rare, and frequent
    yes = nn.BCEWithLogitsLoss()
    made = run("baseline", setup_of(Linear(6, 2), yes, x, labels), tmp_path / "labels")
    assert scores(made)["constant"] == pytest.approx(float((y[600:] < 1.5).float().mean()))


def test_ignored_rows_are_left_out(tmp_path: Path) -> None:
    x, y = table()
    classes = (y > 0).long()
    classes[::2] = -100
    made = run("baseline", setup_of(Linear(6, 2), nn.CrossEntropyLoss(), x, classes), tmp_path)
    assert measured(made, BASELINE_ROWS, "valid") == 100
    assert scores(made)["linear"] > 0.9


class Leaky(nn.Module):
    """A model that is given the class as well, one-hot, and does not use it."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(6, 2)

    def forward(self, x: Tensor, classes: Tensor) -> Tensor:
        made: Tensor = self.head(x) + 0 * classes.sum()
        return made


def test_a_class_among_the_inputs_is_left_out(tmp_path: Path) -> None:
    torch.manual_seed(0)
    x, y = torch.randn(400, 6), torch.randint(2, (400,))
    data = TensorDataset(x, functional.one_hot(y).float(), y)
    model = Leaky()

    def loss(model: nn.Module, batch: Any) -> Tensor:
        return functional.cross_entropy(model(batch[0], batch[1]), batch[2])

    train, valid = torch.utils.data.random_split(data, [200, 200])
    setup = Setup.of(
        model,
        torch.optim.SGD(model.parameters(), 0.1),
        loss,
        DataLoader(train, 50),
        valid=DataLoader(valid, 50),
    )
    assert scores(run("baseline", setup, tmp_path / "run"))["linear"] < 0.65


def test_says_why_it_is_not_made(tmp_path: Path) -> None:
    x, y = table()
    few = run(
        "baseline",
        setup_of(Linear(6, 1), nn.MSELoss(), x[:80], y[:80, None]),
        tmp_path / "few",
    )
    assert "20 held-out rows of the 50 needed" in why(few)
    same = run("baseline", setup_of(Linear(6, 6), nn.MSELoss(), x, x), tmp_path / "same")
    assert "reconstruction" in why(same)
    bits = nn.BCEWithLogitsLoss()
    grey = run(
        "baseline", setup_of(Linear(6, 6), bits, x.sigmoid(), x.sigmoid()), tmp_path / "grey"
    )
    assert "reconstruction" in why(grey)
    assert "validation" in why(run("baseline", KINDS["classifier"](), tmp_path / "alone"))
