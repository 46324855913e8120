"""Statistics of few runs, against known values."""

import json

import numpy as np
import pytest

from holter.diagnosis.comparing.seeds import Metric, SeedReport, read, report
from holter.diagnosis.comparing.statistics import contrast, summarise, t_cdf, t_quantile
from holter.record import Run
from holter.record.errors import HolterError
from holter.record.signals import LOSS, LR, VAL_ACCURACY, VAL_LOSS
from holter.reports.comparisons.seeds import headline, render, render_json
from synthetic import run_of, series


def ended(loss: float) -> Run:
    return run_of({LOSS: {"": [2.0] * 9 + [loss]}})


def reported(**values: list[float]) -> SeedReport:
    runs = {(name, n): ended(v) for name, own in values.items() for n, v in enumerate(own)}
    return report({name: f"python {name}.py" for name in values}, runs, Metric())


@pytest.mark.parametrize(
    ("p", "freedom", "expected"),
    [(0.975, 1, 12.7062), (0.975, 4, 2.7764), (0.975, 30, 2.0423), (0.995, 2.5, 7.1637)],
)
def test_quantiles_of_t(p: float, freedom: float, expected: float) -> None:
    assert t_quantile(p, freedom) == pytest.approx(expected, rel=2e-4)
    assert t_cdf(t_quantile(p, freedom), freedom) == pytest.approx(p)
    assert t_cdf(-1.0, freedom) == pytest.approx(1 - t_cdf(1.0, freedom))


def test_mean_and_interval() -> None:
    sample = summarise([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (sample.mean, sample.std) == (3.0, pytest.approx(1.5811, rel=1e-4))
    assert sample.interval is not None
    assert sample.interval.low == pytest.approx(3 - 1.9632, rel=1e-3)
    assert summarise([1.0]).interval is None


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    draw = np.random.default_rng(0)
    results = [contrast(draw.normal(0, 1, 5), draw.normal(0, 3, 4)) for _ in range(200)]
    false = sum(each is not None and each.interval.excludes_zero for each in results)
    assert false / 200 < 0.1


def test_a_difference_beyond_noise_is_told_from_one_within() -> None:
    apart = reported(A=[1.0, 1.1, 0.9], B=[0.5, 0.6, 0.55])
    assert apart.duels[0].is_better
    assert headline(apart).startswith("B beats A beyond noise")
    worse = reported(A=[0.5, 0.6, 0.55], B=[1.0, 1.1, 0.9])
    assert worse.duels[0].is_better is False
    assert headline(worse).startswith("A beats B beyond noise")
    within = reported(A=[1.0, 1.4, 0.6], B=[0.9, 1.3, 0.5])
    assert within.duels[0].is_better is None
    assert "seeds each would show" in within.duels[0].says
    assert "no variant differs from A" in headline(within)


def test_more_comparisons_need_wider_intervals() -> None:
    two, three = (reported(**{name: [1.0, 1.1] for name in names}) for names in ("AB", "ABC"))
    assert two.level == 0.95
    assert three.level == 0.975


def test_one_run_has_no_interval_and_no_verdict() -> None:
    made = reported(A=[1.0], B=[2.0])
    assert made.duels[0].result is None
    assert "at least two" in made.duels[0].says
    assert render(made)


def test_diverged_and_missing_runs_are_counted_not_averaged() -> None:
    runs: dict[tuple[str, int], Run | str] = {
        ("A", 0): ended(1.0),
        ("A", 1): ended(np.nan),
        ("A", 2): "the script failed: no data",
    }
    made = report({"A": "python a.py"}, runs, Metric())
    assert (made.variants[0].values, made.variants[0].diverged) == ([1.0], 1)
    assert not made.is_complete
    assert "seed 2: the script failed: no data" in render(made)
    values = json.loads(render_json(made))["variants"][0]["values"]
    assert [each["value"] for each in values] == [1.0, "nan", None]


def test_the_metric_is_the_validation_loss_if_there_is_one() -> None:
    run = run_of(
        {
            LOSS: {"": [3.0, 2.0, 1.0]},
            VAL_LOSS: {"": series([2.0, 0.5, 1.5], [0, 1, 2])},
            VAL_ACCURACY: {"": series([0.2, 0.9, 0.8], [0, 1, 2])},
        }
    )
    assert read(run, Metric()) == ("val.loss", VAL_LOSS, 1.5)
    assert read(run, Metric.parse("val.loss", best=True))[2] == 0.5
    assert read(run, Metric.parse("val.accuracy", best=True))[2] == pytest.approx(0.9)
    assert read(run, Metric.parse("loss"))[2] == 1.0


def test_unknown_metrics_and_several_owners_give_a_sentence() -> None:
    with pytest.raises(HolterError, match=r"did you mean 'val\.loss'"):
        Metric.parse("val_loss")
    with pytest.raises(HolterError):
        Metric.parse("grad.norm")  # of every parameter
    run = run_of({LOSS: {"": [1.0]}, LR: {"group 0": [0.1], "group 1": [0.2]}})
    assert "--owner" in str(read(run, Metric.parse("lr")))
    assert read(run, Metric.parse("lr", "group 1"))[2] == pytest.approx(0.2)
    assert "has no val.loss" in str(read(run, Metric.parse("val.loss")))
