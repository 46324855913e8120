"""No quick experiment breaks on an odd input: it measures, or says why it does not apply."""

from pathlib import Path

import pytest
from odd_inputs import ODD

from holter import check
from holter.lab.experiments import all_experiments
from holter.lab.running import conduct
from holter.lab.writing import Lab
from holter.record import Run
from holter.record.events import ExperimentFailed, NotApplicable
from holter.record.signals import INPUT_RESPONSE

QUICK = [experiment for experiment in all_experiments().values() if experiment.preflight]
BRIEF = {
    "label-control": {"steps": 6, "more_steps": 12, "twins": 1},
    "overfit-batch": {"steps": 20, "seconds": 1.5},
    "clip-threshold": {"steps": 20, "seconds": 1.0},
    "eval-gap": {"steps": 4, "passes": 4, "batches": 4},
    "input-control": {"steps": 4},
}


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta state")
@pytest.mark.parametrize("kind", ODD)
def test_all_quick_experiments(kind: str, tmp_path: Path) -> None:
    with Lab(tmp_path / "run") as lab:
        conduct(QUICK, ODD[kind](), lab, BRIEF)
    run = Run.load(tmp_path / "run")
    failed = {event.what.experiment: event.what.error for event in run.events_of(ExperimentFailed)}
    assert not failed
    assert not check(run).failures
    declined = {event.what.experiment: event.what.why for event in run.events_of(NotApplicable)}
    assert all(declined.values())
    assert ("input-control" in declined) is (kind == "single_numbers")
    assert "overfit-batch" not in declined
    if kind == "a_carried_state":
        assert not [trial for trial in run[INPUT_RESPONSE] if "state" in trial]
