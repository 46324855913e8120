"""What holds for the results of every experiment, present and future."""

from pathlib import Path

import pytest
from situations import NORMAL, RULED_OUT
from tabled import shown

from holter.diagnosis.engine import Checkup
from holter.record import Event
from holter.record.events import ChangesTried, ChangeTried, Reproduced, TriageMade, WindowMeasure
from holter.record.signals import INIT_ACTIVATION_STD, INIT_GRAD_RMS, INIT_WEIGHT_STD
from holter.reports import experiments, text
from holter.reports._lines import painted
from holter.reports._tables import table_lines
from holter.reports.experiments import ResultTable, all_results
from synthetic import run_of


def test_a_run_without_experiments_has_no_results() -> None:
    assert all_results(run_of({})) == []


def test_every_module_offers_its_results() -> None:
    from importlib import import_module

    for path in Path(experiments.__file__).parent.glob("[a-z]*.py"):
        assert import_module(f"holter.reports.experiments.{path.stem}").results(run_of({})) == []


@pytest.mark.parametrize("width", [60, 96])
def test_a_table_keeps_to_the_width(width: int) -> None:
    table = ResultTable(
        "x", "title", ("name", "value", "note"), (("a", 1234.5, "word " * 40), ("b", None, None))
    )
    lines = painted(table_lines(table, width), color=False).splitlines()
    assert max(map(len, lines)) <= width
    assert lines[1].split() == ["name", "value", "note"]
    assert lines[2].split()[:2] == ["a", "1,234"]


def test_many_rows_are_cut_in_the_middle() -> None:
    table = ResultTable("x", "title", ("n",), tuple((n,) for n in range(30)))
    lines = painted(table_lines(table, 60, most_rows=4), color=False).split("\n")
    assert [line.strip() for line in lines[2:-1]] == ["0", "1", "... 26 more", "28", "29"]


def test_layers_before_the_first_step() -> None:
    run = run_of(
        {
            INIT_ACTIVATION_STD: {"body": [0.5], "head": [0.25]},
            INIT_WEIGHT_STD: {"body.weight": [0.1], "body.bias": [9.0]},
            INIT_GRAD_RMS: {"head.weight": [0.01]},
        }
    )
    assert all_results(run)[0].rows == (
        ("body", 0.5, pytest.approx(0.1), None),
        ("head", 0.25, None, pytest.approx(0.01)),
    )
    assert "activation std" in shown(run)


def test_a_replay() -> None:
    happened = (
        Reproduced(
            *("bit for bit", "reproduced bit for bit", 59),
            onset=50,
            state_step=31,
            alarm="nonfinite",
            normal_loss=0.69,
            normal_spread=0.01,
            unchanged=WindowMeasure(nonfinite_at=59),
        ),
        ChangeTried("clip to 1", measure=WindowMeasure(nonfinite_at=59)),
        ChangeTried("step skipped", measure=WindowMeasure(late_loss=0.68)),
        ChangesTried(),
        TriageMade(True, False, samples=(27,)),
    )
    run = run_of({}, events=[Event(59, 0.0, what) for what in happened])
    said = shown(run)
    assert "abnormal from step 50 on, 9 steps before the failure" in said
    assert "step skipped  cures" in said
    assert "smallest change that cures it: step skipped" in said
    assert "samples of the batch that fail: 27" in said


def test_one_experiment_is_on_the_first_screen() -> None:
    signals = {INIT_ACTIVATION_STD: {f"layer{n}": [0.5] for n in range(40)}}
    first = text.render(run_of(signals), Checkup((), NORMAL, RULED_OUT, ()))
    assert "before the first step" in first
    assert "... 28 more" in first
    assert "more" not in text.render(run_of(signals), Checkup(), whole=True)
