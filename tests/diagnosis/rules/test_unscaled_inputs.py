import numpy as np
import pytest

from holter.diagnosis.rule import NO_DAMAGE
from holter.diagnosis.rules.unscaled_inputs import unscaled_inputs
from holter.record import Run
from holter.record.findings import Clear, Confidence, Finding, Normal, NotExamined
from holter.record.meta import Meta, ParameterSummary
from holter.record.signals import (
    ACTIVATION_STD,
    INPUT_ABSMAX,
    INPUT_OTHER_ABSMAX,
    INPUT_OTHER_MEAN,
    INPUT_OTHER_STD,
    INPUT_STD,
    LOSS,
    LOSS_ROOT_SHARE,
    TARGET_ENTROPY,
    USE_CHANGE,
    USE_SCALE,
    Signal,
)
from layered import broken, falling, flat, layered
from synthetic import found, run_of, said, series


def given(
    loss: np.ndarray,
    std: float,
    top: float,
    *,
    inside: dict[str, float] | None = None,
    meta: Meta | None = None,
    entropy: float | None = None,
) -> Run:
    readings: dict[Signal, dict[str, float]] = {INPUT_STD: {"Net": std}, INPUT_ABSMAX: {"Net": top}}
    if inside is not None:
        readings[ACTIVATION_STD] = inside
    if entropy is not None:
        readings[TARGET_ENTROPY] = {"cross_entropy": entropy}
        readings[LOSS_ROOT_SHARE] = {"": 1.0}
    return layered(loss, readings, meta)


@pytest.mark.parametrize(("std", "top", "word"), [(80, 255, "large"), (0.004, 0.01, "small")])
@pytest.mark.parametrize("loss", [flat(), broken()])
def test_far_off_and_the_loss_is_bad(loss: np.ndarray, std: float, top: float, word: str) -> None:
    (finding,) = found(unscaled_inputs, given(loss, std, top))
    assert finding.confidence is Confidence.LIKELY
    assert word in finding.summary


def test_the_loss_began_far_above_the_best_constant_prediction() -> None:
    (finding,) = found(unscaled_inputs, given(falling(start=40), 80, 255, entropy=1.386))
    assert "40" in finding.summary
    assert "1.39" in finding.summary


def slowly(steps: int, *, over: float, last: float) -> np.ndarray:
    return last + (1.386 - last) * np.exp(-np.arange(steps) / over)


def test_little_was_learned() -> None:
    run = given(slowly(200, over=30, last=1.15), 80, 255, entropy=1.386)
    (finding,) = found(unscaled_inputs, run)
    assert finding.confidence is Confidence.LIKELY


@pytest.mark.parametrize(
    "loss",
    [
        slowly(40, over=15, last=1.1),  # too early to judge
        slowly(200, over=400, last=0.2),  # still falling
    ],
)
def test_a_loss_that_has_just_begun_to_fall_is_harmless(loss: np.ndarray) -> None:
    (note,) = said(unscaled_inputs, given(loss, 80, 255, entropy=1.386))
    assert isinstance(note, Normal)
    assert note.exception == NO_DAMAGE


@pytest.mark.parametrize("entropy", [None, 1.386])
def test_a_loss_that_falls_is_harmless(entropy: float | None) -> None:
    (note,) = said(unscaled_inputs, given(falling(), 80, 255, entropy=entropy))
    assert isinstance(note, Normal)
    assert note.exception == NO_DAMAGE


@pytest.mark.parametrize(
    ("std", "top", "inside", "applies"),
    [
        (80, 255, 1.0, True),
        (80, 255, 40.0, False),
        (0.004, 0.01, 1.0, True),
        (0.004, 0.01, 0.1, False),
    ],
)
def test_normalised_inside(std: float, top: float, inside: float, applies: bool) -> None:
    run = given(flat(), std, top, inside={"norm": inside, "0": 0.9 * inside})
    (verdict,) = said(unscaled_inputs, run)
    assert isinstance(verdict, Normal if applies else Finding)
    assert not isinstance(verdict, Normal) or verdict.exception == "normalised-inside"


def test_tables_of_other_inputs_say_nothing_of_the_first_layer() -> None:
    shapes = {
        "embs.0.weight": (121, 8),
        "embs.1.weight": (6, 8),
        "mlp.0.weight": (64, 21),
        "mlp.0.bias": (64,),
    }
    meta = Meta(
        parameters={name: ParameterSummary(shape, "float32") for name, shape in shapes.items()}
    )
    inside = {"embs.0": 1.0, "embs.1": 0.8, "mlp.0": 5300.0, "mlp.1": 2900.0}
    assert found(unscaled_inputs, given(flat(), 17000, 61000, inside=inside, meta=meta))


def test_a_recurrent_layer_hides_the_size_of_its_input() -> None:
    meta = Meta(parameters={"rnn.weight_hh_l0": ParameterSummary((32, 8), "float32")})
    assert found(unscaled_inputs, given(flat(), 300, 900, inside={"rnn": 0.5}, meta=meta))


def test_an_embedding_of_other_inputs_hides_nothing() -> None:
    assert found(unscaled_inputs, given(flat(), 18800, 124000, inside={"e": 0.9, "f.0": 10500.0}))


@pytest.mark.parametrize(
    "run",
    [
        given(flat(), 1, 3),
        given(flat(), 0.01, 1),  # words of a large vocabulary, one of thousands is 1
        given(flat(), 0, 0),
    ],
)
def test_silent(run: Run) -> None:
    (verdict,) = said(unscaled_inputs, run)
    assert isinstance(verdict, Clear)


@pytest.mark.parametrize(("inside", "finds"), [(0.5, False), (60.0, True)])
def test_adversaries_cannot_be_judged_by_their_losses(inside: float, finds: bool) -> None:
    run = run_of(
        {
            INPUT_STD: {"Critic": [80.0] * 50},
            INPUT_ABSMAX: {"Critic": [255.0] * 50},
            ACTIVATION_STD: {"Maker.0": [0.5] * 50, "Critic.0": [inside] * 50},
            LOSS: {"Maker": [0.7] * 50, "Critic": [1.4] * 50},
        }
    )
    findings = found(unscaled_inputs, run)
    assert [each.confidence for each in findings] == [Confidence.HINT] * finds


def test_a_loss_without_a_floor_makes_a_hint() -> None:
    (finding,) = found(unscaled_inputs, given(np.array([1.0, -1.0] * 50), 80, 255))
    assert finding.confidence is Confidence.HINT


def test_nan_is_left_out() -> None:
    std = np.where(np.arange(200) % 2, np.nan, 80)
    run = layered(flat(), {INPUT_STD: {"Net": std}, INPUT_ABSMAX: {"Net": 3 * std}})
    assert found(unscaled_inputs, run)


def test_too_few_losses_to_judge() -> None:
    (verdict,) = said(unscaled_inputs, given(flat(10), 80, 255))
    assert isinstance(verdict, NotExamined)


@pytest.mark.parametrize("std", [[80.0] * 4, [np.nan] * 50])
def test_not_examined(std: list[float]) -> None:
    (verdict,) = said(
        unscaled_inputs, run_of({INPUT_STD: {"Net": std}, INPUT_ABSMAX: {"Net": std}})
    )
    assert isinstance(verdict, NotExamined)


def tabular(loss: np.ndarray, scales: list[float], changes: list[float]) -> Run:
    readings = {
        INPUT_STD: {"Net": 1.0},
        INPUT_ABSMAX: {"Net": 3.0},
        USE_SCALE: {"columns of x": series(scales)},
        USE_CHANGE: {"columns of x": series(changes)},
    }
    return layered(loss, readings)


def test_small_columns_that_the_model_hardly_uses() -> None:
    loss = falling(start=0.45, end=0.17)
    (finding,) = found(unscaled_inputs, tabular(loss, [0.002, 1.0, 0.003], [0.01, 1.5, 0.02]))
    assert finding.confidence is Confidence.HINT
    assert "2 of 3" in finding.summary


@pytest.mark.parametrize(
    ("scales", "changes"),
    [
        ([0.002, 1.0, 0.003], [0.6, 1.5, 0.4]),  # a batch norm comes first, or large weights
        ([0.5, 1.0, 0.4], [0.01, 1.5, 0.02]),  # unused for another reason
        ([0.002, 1.0, 0.003], [0.01, 0.05, 0.02]),  # nothing is used
    ],
)
def test_other_columns_are_clear(scales: list[float], changes: list[float]) -> None:
    verdicts = said(unscaled_inputs, tabular(falling(start=0.45, end=0.17), scales, changes))
    assert [type(each) for each in verdicts] == [Clear]


def test_small_columns_do_no_damage_where_the_loss_is_low() -> None:
    run = tabular(falling(start=2.3, end=0.05), [0.002, 1.0], [0.01, 1.5])
    (note,) = said(unscaled_inputs, run)
    assert isinstance(note, Normal)
    assert note.exception == NO_DAMAGE


@pytest.mark.parametrize(("other", "reported"), [("Net", True), ("Other", False)])
def test_a_model_of_the_same_class_with_inputs_of_a_normal_scale(
    other: str, *, reported: bool
) -> None:
    readings = {
        INPUT_STD: {other: 1.1, "Net (2)": 72.0},
        INPUT_ABSMAX: {other: 3.0, "Net (2)": 230.0},
    }
    findings = found(unscaled_inputs, layered(falling(start=2.3, end=0.02), readings))
    assert [each.confidence for each in findings] == [Confidence.HINT] * reported


def with_another(loss: np.ndarray, mean: float, std: float, top: float) -> Run:
    argument = "Net, argument 2"
    return layered(
        loss,
        {
            INPUT_STD: {"Net": 1.0},
            INPUT_ABSMAX: {"Net": 4.0},
            INPUT_OTHER_MEAN: {argument: mean},
            INPUT_OTHER_STD: {argument: std},
            INPUT_OTHER_ABSMAX: {argument: top},
        },
    )


def test_a_further_argument_that_is_far_too_large() -> None:
    (finding,) = found(unscaled_inputs, with_another(flat(), 1.7e5, 4.1e6, 1e8))
    assert finding.confidence is Confidence.LIKELY
    assert "Net, argument 2, has a standard deviation of 4.1e+06" in finding.summary
    assert not found(unscaled_inputs, with_another(falling(), 1.7e5, 4.1e6, 1e8))
    assert not found(unscaled_inputs, with_another(flat(), 0.0, 1e-3, 4e-3))  # maybe weights


def test_a_mask_is_large_on_purpose() -> None:
    verdicts = said(unscaled_inputs, with_another(flat(), -2.5e8, 4.33e8, 1e9))
    assert [each.exception for each in verdicts if isinstance(each, Normal)] == ["masked"]
    assert not [each for each in verdicts if isinstance(each, Finding)]
