import numpy as np
import pytest

from holter.diagnosis.facts.figures import Meaning, meaning_of
from holter.diagnosis.rules.unimproved_metrics import unimproved_metrics
from holter.record import Event, Run
from holter.record.events import FigurePrinted
from holter.record.findings import Clear, Confidence, Finding, NotExamined, Verdict
from holter.record.signals import LOSS, LOSS_COEFFICIENT_BALANCE
from synthetic import run_of, said

STEPS = 200
FALLING = np.geomspace(2, 0.2, STEPS)


def shown(loss: np.ndarray = FALLING, **metrics: list[float]) -> Run:
    events = []
    for name, values in metrics.items():
        steps = np.linspace(10, STEPS - 1, len(values)).astype(int)
        figure = FigurePrinted(name.replace("_", " "), tuple(map(int, steps)), tuple(values))
        events.append(Event(STEPS - 1, 0.0, figure))
    return run_of({LOSS: {"": loss}}, events=events)


@pytest.mark.parametrize(
    "metrics",
    [
        {"recall@1": [0.03, 0.02, 0.03, 0.025]},
        {"val_accuracy": [0.5, 0.3, 0.1, 0.07]},
        {"val_acc": [45.0, 21.0, 9.0, 8.0]},  # in per cent
        {"val_R2": [-0.1, 0.01, 0.0, 0.002], "acc": [0.3, 0.6, 0.8, 0.9]},
        {"auc": [0.5, 0.51, 0.49, 0.5]},
        {"c-index": [0.4, 0.35, 0.3, 0.26]},
        {"relative_error": [0.8, 0.81, 0.79, 0.8]},
        {"mean_return": [-20.0, -23.0, -21.0, -19.0, -22.0, -21.0]},
        {"reward": [0.0] * 8},
        {"verification_acc": [0.5] * 5},  # as one constant prediction gets
        {"val_mae": [31.0, 26.0, 25.8, 25.7, 25.6, 25.5], "seasonal_naive": [18.0] * 6},
        {"acc": [0.1, 0.28, 0.29, 0.3, 0.3, 0.3], "majority_acc": [0.31]},
        {"logloss_of_the_rate_alone": [0.172], "val_logloss": [0.215, 0.201, 0.21, 0.211]},
        {"mean_predictor_rmse": [4.0], "test_rmse": [4.1]},  # of the final test alone
        {"exact": [0.0] * 6, "token_acc": [0.02, 0.06, 0.09, 0.1, 0.11, 0.11]},
        {"pair_acc": [0.84, 0.94, 0.95, 0.96], "val_hr@10": [0.07, 0.1, 0.09, 0.09]},
    ],
)
def test_none_improves_or_one_is_useless_by_definition(metrics: dict[str, list[float]]) -> None:
    (verdict,) = said(unimproved_metrics, shown(**metrics))
    assert isinstance(verdict, Finding)
    assert verdict.confidence is Confidence.HINT


@pytest.mark.parametrize(
    ("metrics", "kind"),
    [
        ({"acc": [0.3, 0.5, 0.7, 0.8]}, Clear),
        ({"acc": [0.86, 0.87, 0.85, 0.86]}, Clear),  # as good as it gets
        ({"exact": [0.0, 0.0, 0.0, 0.0], "token_acc": [0.2, 0.3, 0.5, 0.6]}, Clear),
        ({"R2": [0.1, 0.4, 0.6, 0.8]}, Clear),
        ({"relative_error": [0.8, 0.5, 0.3, 0.2]}, Clear),
        ({"mean_return": [-20.0, -18.0, -21.0, -5.0, -7.0, 3.0]}, Clear),
        ({"acc": [0.97] * 5}, Clear),
        ({"acc": [0.5] * 5, "recall": [0.5, 0.5, 0.52, 0.5, 0.51]}, Clear),
        ({"val_mae": [31.0, 20.0, 14.0, 13.0, 12.5], "seasonal_naive": [18.0] * 5}, Clear),
        ({"val_mae": [60.0, 50.0, 40.0, 30.0, 24.0, 20.0], "naive": [18.0] * 6}, Clear),  # falls
        ({"mae": [5.0, 4.0, 3.5, 3.4], "lr_naive": [0.1, 0.1]}, Clear),  # not beside it
        ({"mae": [5.0, 3.0, 2.5, 2.4], "same_hour_yesterday_mae": [3.3]}, Clear),
        ({"val_nll": [2.1, 1.2, 1.0], "unigram_nll": [1.9], "acc": [0.2, 0.5, 0.6]}, Clear),
        ({"pair_acc": [0.84, 0.94, 0.95, 0.96], "val_hr@10": [0.07, 0.2, 0.3, 0.4]}, Clear),
        ({"acc": [0.1, 0.1]}, NotExamined),
        ({"reward": [0.0, 0.0, 0.0]}, NotExamined),
        ({"temperature": [0.1, 0.1, 0.1]}, NotExamined),
        ({"val_loss": [0.1, 0.1, 0.1]}, NotExamined),
        ({"correct": [310.0, 312.0, 309.0]}, NotExamined),  # a count
    ],
)
def test_silent(metrics: dict[str, list[float]], kind: type[Verdict]) -> None:
    (verdict,) = said(unimproved_metrics, shown(**metrics))
    assert isinstance(verdict, kind)


@pytest.mark.parametrize(
    ("loss", "kind"),
    [
        (np.geomspace(2, 0.2, 30), NotExamined),  # a short run
        (np.full(STEPS, 2.0), NotExamined),  # the loss tells already
        (np.concatenate((np.geomspace(2, 0.5, 20), np.full(STEPS - 20, 0.5))), Finding),
        (np.linspace(2, 1.85, STEPS), Finding),  # hardly falls
    ],
)
def test_the_loss_beside_it(loss: np.ndarray, kind: type[Verdict]) -> None:
    (verdict,) = said(unimproved_metrics, shown(loss, acc=[0.2, 0.21, 0.2, 0.2, 0.2, 0.2]))
    assert isinstance(verdict, kind)


def test_an_error_says_nothing_where_the_loss_had_fallen_before() -> None:
    loss = np.concatenate((np.geomspace(2e8, 4e6, 8), np.full(STEPS - 8, 4e6)))
    (verdict,) = said(unimproved_metrics, shown(loss, test_rmse=[2003.0, 2005.0, 2005.0, 2004.0]))
    assert isinstance(verdict, Clear)


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("val pair accuracy", Meaning.SHARE),
        ("macro-f1", Meaning.SHARE),
        ("val ndcg@5", Meaning.SHARE),
        ("val/roc_auc", Meaning.ABOVE_HALF),
        ("r2 price", Meaning.ABOVE_ZERO),
        ("relative l2 error", Meaning.ERROR),
        ("accuracy loss", None),
        ("step", None),
    ],
)
def test_what_a_name_means(name: str, meaning: Meaning | None) -> None:
    assert meaning_of(name) is meaning


@pytest.mark.parametrize(
    "metrics",
    [
        {"reward": [0.28, 0.19, 0.05, 0.02, 0.0, 0.01]},
        {"mean_return": [20.0, 17.0, 12.0, 9.0, 8.0, 8.2, 7.9]},
        {"solved": [0.138, 0.12, 0.093, 0.086, 0.083, 0.068, 0.046, 0.06]},
        {"pair_accuracy": [0.5, 0.33, 0.22, 0.15, 0.12, 0.1]},
    ],
)
@pytest.mark.parametrize("loss", [FALLING, np.full(STEPS, 0.7)])
def test_a_metric_below_that_of_the_untrained_model_is_worse(
    loss: np.ndarray, metrics: dict[str, list[float]]
) -> None:
    (verdict,) = said(unimproved_metrics, shown(loss, **metrics))
    assert isinstance(verdict, Finding)
    assert "never rises above its first values" in verdict.summary


@pytest.mark.parametrize(
    "metrics",
    [
        {"reward": [0.3, 0.2, 0.4, 0.5, 0.3, 0.2]},  # it was better once
        {"reward": [0.3, 0.2, 0.3, 0.25, 0.28, 0.22]},  # noise
        {"acc": [0.98, 0.8, 0.7, 0.6, 0.55, 0.5]},  # a discriminator that is fooled
        {"old_acc": [0.95, 0.6, 0.3, 0.2, 0.1, 0.1]},  # an old task that is forgotten
        {"acc": [0.5, 0.45, 0.42, 0.4, 0.4, 0.41]},
        {"reward": [0.28, 0.19, 0.05, 0.02, 0.0, 0.01], "acc": [0.3, 0.5, 0.6, 0.7, 0.8, 0.9]},
        {"reward": [0.3, 0.1, 0.0]},  # too few
        {"against_the_exact_solution": [0.54, 0.26, 0.05, 0.003, 0.0006, 0.0003, 0.0002]},
    ],
)
def test_other_courses_are_not_worse(metrics: dict[str, list[float]]) -> None:
    for verdict in said(unimproved_metrics, shown(**metrics)):
        assert not isinstance(verdict, Finding) or "first values" not in verdict.summary


def test_the_share_of_a_policy_is_a_reward() -> None:
    success = [0.2, 0.15, 0.1, 0.05, 0.03, 0.02]
    (verdict,) = said(unimproved_metrics, shown(success=success))
    assert isinstance(verdict, Finding)
    assert "first values" not in verdict.summary
    run = shown(success=success)
    balance = {"": np.zeros(STEPS)}  # of the constants: advantages
    run = run_of(
        {LOSS: dict(run[LOSS].items()), LOSS_COEFFICIENT_BALANCE: balance},
        events=run.events_of(FigurePrinted),
    )
    (verdict,) = said(unimproved_metrics, run)
    assert isinstance(verdict, Finding)
    assert "first values" in verdict.summary


def test_a_loss_that_diverges_tells_more() -> None:
    loss = np.geomspace(1, 1e6, STEPS)
    (verdict,) = said(unimproved_metrics, shown(loss, reward=[0.3, 0.2, 0.1, 0.05, 0.0, 0.0]))
    assert isinstance(verdict, NotExamined)
