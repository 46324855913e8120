from collections.abc import Sequence

from holter.diagnosis.rules.unreached_parameters import unreached_parameters
from holter.record import Run, Series
from holter.record.findings import Clear, Confidence, NotExamined, Severity
from holter.record.signals import (
    ACTIVATION_STD,
    GRAD_NORM,
    GRAPH_LEAVES,
    GRAPH_LOOSE_LEAVES,
    PARAMETER_IN_MODEL,
    PARAMETER_OPTIMIZER,
    PARAMETER_TRAINABLE,
    WEIGHT_TOTAL_NORM,
)
from synthetic import found, run_of, said, series

ENCODER = ["encoder.0.weight", "encoder.0.bias", "encoder.2.weight"]
HEAD = ["head.weight", "head.bias"]


def _run(
    held: dict[str, int],
    reached: Sequence[str] | dict[str, Series],
    *,
    trainable: dict[str, Series] | None = None,
    strangers: tuple[str, ...] = (),
    stepping: tuple[str, ...] = ("",),
    steps: int = 20,
    called: dict[str, list[float]] | None = None,
) -> Run:
    return run_of(
        {
            **({} if called is None else {ACTIVATION_STD: called}),
            PARAMETER_OPTIMIZER: {name: [index] for name, index in held.items()},
            PARAMETER_TRAINABLE: {name: [1.0] for name in held} | (trainable or {}),
            PARAMETER_IN_MODEL: {name: [float(name not in strangers)] for name in held},
            GRAD_NORM: {name: [1.0] * steps for name in reached}
            if not isinstance(reached, dict)
            else reached,
            WEIGHT_TOTAL_NORM: {name: [1.0] * steps for name in stepping},
        }
    )


def test_a_detached_encoder_is_named_as_one() -> None:
    (finding,) = found(unreached_parameters, _run(dict.fromkeys(ENCODER + HEAD, 0), HEAD))
    assert finding.summary == (
        "no gradient reached encoder.* in 20 steps: 3 of the 5 trainable parameters that the"
        " optimizer holds"
    )
    assert finding.severity is Severity.WARNING
    assert finding.confidence is Confidence.CERTAIN
    assert finding.onset == 0
    assert finding.evidence[0].owner == "encoder.0.weight"


def test_a_graph_that_ends_at_no_parameter_reaches_none() -> None:
    def cut(leaves: float) -> Run:
        return run_of(
            {
                PARAMETER_OPTIMIZER: {name: [0.0] for name in HEAD},
                PARAMETER_TRAINABLE: {name: [1.0] for name in HEAD},
                PARAMETER_IN_MODEL: {name: [1.0] for name in HEAD},
                GRAPH_LEAVES: {"": [leaves] * 3},
                GRAPH_LOOSE_LEAVES: {"": [1.0] * 3},
                WEIGHT_TOTAL_NORM: {"": [1.0] * 20},
            }
        )

    (finding,) = found(unreached_parameters, cut(1.0))
    assert finding.severity is Severity.ERROR
    assert "requires_grad_()" in finding.fix
    (verdict,) = said(unreached_parameters, cut(3.0))  # the gradients were cleared before the step
    assert isinstance(verdict, NotExamined)


def test_modules_that_are_never_called_make_a_hint() -> None:
    held = dict.fromkeys(ENCODER + HEAD, 0)
    read, never = [1.0] * 20, []
    called = {"encoder.0": never, "encoder.2": never, "head": read}
    (finding,) = found(unreached_parameters, _run(held, HEAD, called=called))
    assert finding.severity is Severity.INFO
    assert finding.confidence is Confidence.HINT
    assert "forward" in finding.fix
    called["encoder.2"] = read
    (finding,) = found(unreached_parameters, _run(held, HEAD, called=called))
    assert finding.confidence is Confidence.CERTAIN


def test_only_the_part_that_is_cut_off_is_named() -> None:
    run = _run(dict.fromkeys(ENCODER + HEAD, 0), [*HEAD, "encoder.2.weight"])
    (finding,) = found(unreached_parameters, run)
    assert "reached encoder.0.* in" in finding.summary


def test_silent_where_every_parameter_is_reached() -> None:
    (verdict,) = said(unreached_parameters, _run(dict.fromkeys(HEAD, 0), HEAD))
    assert isinstance(verdict, Clear)
    assert "all 2" in verdict.because


def test_a_gradient_of_zero_did_arrive() -> None:
    run = _run({"a": 0, "b": 0}, {"a": series([1.0] * 20), "b": series([0.0] * 20)})
    assert not found(unreached_parameters, run)


def test_one_gradient_in_the_middle_of_a_long_run_is_enough(monkeypatch) -> None:
    monkeypatch.setattr("holter.diagnosis.facts.windows.SMALLEST", 10)
    monkeypatch.setattr("holter.diagnosis.facts.windows.CELLS", 1)
    run = _run({"a": 0, "b": 0}, {"a": series([1.0] * 100), "b": series([1.0], [47])})
    assert not found(unreached_parameters, run)
    run = _run({"a": 0, "b": 0}, {"a": series([1.0] * 100)})
    (finding,) = found(unreached_parameters, run)
    assert "in 100 steps" in finding.summary


def test_a_few_unused_parameters_of_many_are_information() -> None:
    used = [f"layer.{i}.weight" for i in range(30)]
    run = _run(dict.fromkeys([*used, "pooler.weight", "pooler.bias"], 0), used)
    (finding,) = found(unreached_parameters, run)
    assert finding.severity is Severity.INFO
    (finding,) = found(unreached_parameters, run, minor=0.0)
    assert finding.severity is Severity.WARNING


def test_frozen_and_unheld_parameters_do_not_count() -> None:
    run = _run({"a": 0, "frozen": 0, "unheld": -1}, ["a"], trainable={"frozen": series([0.0])})
    (verdict,) = said(unreached_parameters, run)
    assert isinstance(verdict, Clear)


def test_stale_parameters_are_left_to_another_rule() -> None:
    assert not found(unreached_parameters, _run({"a": 0, "old": 0}, ["a"], strangers=("old",)))


def test_one_unfrozen_a_moment_ago_gets_its_time() -> None:
    thawed = {"b": series([0.0, 1.0], [0, 15])}
    (verdict,) = said(unreached_parameters, _run({"a": 0, "b": 0}, ["a"], trainable=thawed))
    assert isinstance(verdict, NotExamined)


def test_a_whole_optimizer_without_gradients_is_an_error_if_it_steps() -> None:
    held = dict.fromkeys(ENCODER, 0) | dict.fromkeys(HEAD, 1)
    (finding,) = found(unreached_parameters, _run(held, HEAD, stepping=("encoder", "head")))
    assert finding.severity is Severity.ERROR
    assert "optimizer 0" in finding.summary


def test_an_optimizer_for_a_later_phase_is_no_fault() -> None:
    held = dict.fromkeys(ENCODER, 0) | dict.fromkeys(HEAD, 1)
    assert not found(unreached_parameters, _run(held, HEAD, stepping=("head",)))


def test_too_few_steps_say_nothing() -> None:
    (verdict,) = said(unreached_parameters, _run({"a": 0, "b": 0}, ["a"], steps=9))
    assert isinstance(verdict, NotExamined)
    assert "9 of the 10" in verdict.because
