from holter.diagnosis.rules.parameters_outside_optimizer import parameters_outside_optimizer
from holter.record import Run, Series
from holter.record.findings import Clear, Confidence, Normal, NotExamined, Severity
from holter.record.meta import Meta, ModelSummary
from holter.record.signals import (
    GRAD_NORM,
    LOSS,
    PARAMETER_IN_MODEL,
    PARAMETER_OPTIMIZER,
    PARAMETER_TRAINABLE,
    TARGET_ENTROPY,
    Signal,
)
from synthetic import found, run_of, said, series

STEPS = 20


def _run(
    optimizer: dict[str, float | Series],
    gradients: dict[str, float],
    *,
    frozen: tuple[str, ...] = (),
    strangers: tuple[str, ...] = (),
    steps: int = STEPS,
    models: tuple[str, ...] = (),
    final_loss: float | None = None,
) -> Run:
    return run_of(
        {
            PARAMETER_OPTIMIZER: {
                name: value if isinstance(value, Series) else [value]
                for name, value in optimizer.items()
            },
            PARAMETER_TRAINABLE: {name: [float(name not in frozen)] for name in optimizer},
            PARAMETER_IN_MODEL: {name: [float(name not in strangers)] for name in optimizer},
            GRAD_NORM: {name: [value] * steps for name, value in gradients.items()},
            **({} if final_loss is None else _classes(final_loss, steps)),
        },
        meta=Meta(model=tuple(ModelSummary(name, "Sequential") for name in models)),
    )


def _classes(final: float, steps: int) -> dict[Signal, dict[str, list[float]]]:
    """The readings of a loss over two classes that falls."""
    return {
        LOSS: {"": [final + 2 * 0.8**step for step in range(steps)]},
        TARGET_ENTROPY: {"cross_entropy": [0.69] * steps},
    }


def test_a_forgotten_head_is_a_warning_that_names_it() -> None:
    run = _run(
        {"body.0.weight": 0, "body.0.bias": 0, "head.weight": -1, "head.bias": -1},
        {"body.0.weight": 1.0, "body.0.bias": 1.0, "head.weight": 2.0, "head.bias": 0.1},
    )
    (finding,) = found(parameters_outside_optimizer, run)
    assert finding.summary.startswith("2 of 4 trainable parameters")
    assert "head.*" in finding.summary
    assert finding.severity is Severity.WARNING
    assert finding.confidence is Confidence.CERTAIN
    assert finding.onset == 0
    assert [each.signal for each in finding.evidence] == [PARAMETER_OPTIMIZER, GRAD_NORM]


def test_a_model_of_its_own_is_a_hint_but_a_part_of_a_model_is_none() -> None:
    gradients = {"0.weight": 1.0, "Other.0.weight": 1.0, "Other.1.weight": 1.0}
    whole = _run({**dict.fromkeys(gradients, -1), "0.weight": 0}, gradients, models=("A", "Other"))
    part = _run(
        {**dict.fromkeys(gradients, 0), "Other.1.weight": -1}, gradients, models=("A", "Other")
    )
    confidences = [
        finding.confidence
        for run in (whole, part)
        for finding in found(parameters_outside_optimizer, run)
    ]
    assert confidences == [Confidence.HINT, Confidence.CERTAIN]


def test_fixed_features_of_a_model_that_fits_its_data_are_harmless() -> None:
    gradients = {"0.weight": 1.0, "Other.0.weight": 1.0}
    held = {"0.weight": 0, "Other.0.weight": -1}
    run = _run(held, gradients, models=("A", "Other"), steps=60, final_loss=0.01)
    (verdict,) = said(parameters_outside_optimizer, run)
    assert isinstance(verdict, Normal)
    assert found(
        parameters_outside_optimizer,
        _run(held, gradients, models=("A", "Other"), steps=60, final_loss=0.5),
    )


def test_it_is_an_error_when_nothing_that_learns_is_held() -> None:
    run = _run({"old": 0, "a": -1, "b": -1}, {"a": 1.0, "b": 1.0}, strangers=("old",))
    (finding,) = found(parameters_outside_optimizer, run)
    assert finding.severity is Severity.ERROR


def test_a_learned_prompt_before_an_unfrozen_model_is_no_error() -> None:
    run = _run({"prompt": 0, "a": -1}, {"prompt": 1.0, "a": 1.0}, strangers=("prompt",))
    (finding,) = found(parameters_outside_optimizer, run)
    assert finding.severity is Severity.WARNING


def test_silent_where_all_are_held() -> None:
    (verdict,) = said(parameters_outside_optimizer, _run({"a": 0, "b": 1}, {"a": 1.0, "b": 1.0}))
    assert isinstance(verdict, Clear)
    assert "all 2" in verdict.because


def test_silent_without_gradients() -> None:
    for gradients in ({"a": 1.0}, {"a": 1.0, "b": 0.0}):
        (verdict,) = said(parameters_outside_optimizer, _run({"a": 0, "b": -1}, gradients))
        assert isinstance(verdict, Clear)


def test_silent_on_frozen_parameters_and_on_models_not_trained() -> None:
    run = _run(
        {"a": 0, "frozen": -1, "teacher": -1},
        {"a": 1.0, "frozen": 1.0, "teacher": 1.0},
        frozen=("frozen",),
        strangers=("teacher",),
    )
    (verdict,) = said(parameters_outside_optimizer, run)
    assert isinstance(verdict, Clear)


def test_the_last_reading_decides() -> None:
    joined = series([-1, 0], [0, 10])
    (verdict,) = said(parameters_outside_optimizer, _run({"a": 0, "b": joined}, {"b": 1.0}))
    assert isinstance(verdict, Clear)


def test_one_that_was_just_let_go_is_not_judged_by_its_past() -> None:
    left = series([0, -1], [0, STEPS - 2])
    run = _run({"a": 0, "b": left}, {"a": 1.0, "b": 1.0})
    assert not found(parameters_outside_optimizer, run)
    (finding,) = found(parameters_outside_optimizer, run, min_steps=2)
    assert finding.onset == STEPS - 2


def test_too_few_steps_say_nothing() -> None:
    (verdict,) = said(
        parameters_outside_optimizer, _run({"a": 0, "b": -1}, {"a": 1.0, "b": 1.0}, steps=2)
    )
    assert isinstance(verdict, NotExamined)
