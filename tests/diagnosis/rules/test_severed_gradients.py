from holter.diagnosis.rules.severed_gradients import severed_gradients
from holter.record import Run
from holter.record.findings import Clear, Confidence, Normal
from holter.record.signals import PATH_CHANGE, PATH_CUTS, PATH_ROUNDING, PATH_STOPS
from synthetic import found, run_of, said


def _run(changes: dict[str, float], *, stops: float = 0.0, rounding: float = 1e-6) -> Run:
    return run_of(
        {
            PATH_CHANGE: {"": [0.0], **{name: [change] for name, change in changes.items()}},
            PATH_ROUNDING: {"": [rounding]},
            PATH_STOPS: {"": [stops]},
            PATH_CUTS: {"argmax": [1.0]},
        }
    )


def test_weights_that_matter_without_a_gradient() -> None:
    (finding,) = found(severed_gradients, _run({"router": 2.5, "head": 0.0}))
    assert finding.confidence is Confidence.LIKELY
    assert [each.owner for each in finding.evidence] == ["router", "argmax"]
    assert "`argmax`" in finding.fix


def test_weights_that_do_not_matter() -> None:
    for run in (_run({}), _run({"head": 0.0}), _run({"head": 0.01}, rounding=0.1)):
        (verdict,) = said(severed_gradients, run)
        assert isinstance(verdict, Clear)


def test_a_gradient_that_is_stopped_on_purpose() -> None:
    (verdict,) = said(severed_gradients, _run({"codes": 2.5}, stops=2.0))
    assert isinstance(verdict, Normal)
    assert verdict.exception == "stop-gradient"
