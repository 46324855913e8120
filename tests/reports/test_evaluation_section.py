"""Evaluation passes in reports: metrics beside their baselines."""

import json
from importlib.resources import files

import jsonschema
import numpy as np
from situations import SITUATIONS

from holter.record import Event, Run
from holter.record.events import (
    SCORE_BINS,
    ClassCount,
    ClassCounts,
    Confusion,
    FrequencyBin,
    NumberSums,
    PassMeasured,
    PositionBin,
    ReliabilityBin,
    ScoreCounts,
    UnitCount,
)
from holter.record.signals import LOSS
from holter.reports import json as json_report
from holter.reports import text
from synthetic import run_of

CHECKUP = SITUATIONS["nothing"][1]
SCHEMA = json.loads((files("holter.reports") / "schema-3.json").read_text())
CLASSES = PassMeasured(
    "cross_entropy on val_loader",
    100,
    classes=ClassCounts(
        number=3,
        present=3,
        right=92,
        largest=90,
        recall=0.6,
        each=(
            ClassCount(0, 90, 92, 88, 0.1),
            ClassCount(1, 5, 4, 3, 1.0),
            ClassCount(2, 5, 4, 1, 2.5),
        ),
        confusions=(Confusion(2, 0, 4), Confusion(0, 2, 2), Confusion(1, 2, 1)),
        reliability=(ReliabilityBin(0, 0.0, 0),) * 14 + (ReliabilityBin(100, 99.0, 92),),
        positions=(PositionBin(0, 1, 50, 3.0), PositionBin(2, 3, 50, 1.0)),
        frequencies=(FrequencyBin(2, 10, 4, 1.75), FrequencyBin(1, 90, 88, 0.1)),
    ),
)
YES = tuple(np.bincount([100, 200], minlength=SCORE_BINS).tolist())
NO = tuple(np.bincount([50, 150], minlength=SCORE_BINS).tolist())
UNITS = PassMeasured(
    "binary_cross_entropy on val_loader",
    4,
    scores=ScoreCounts(2, (UnitCount(0, 1, 1, 1), UnitCount(1, 1, 1, 0)), YES, NO),
)
NUMBERS = PassMeasured(
    "mse_loss on val_loader",
    8,
    numbers=NumberSums(1, 2.0, 4.0, 0.1, 0.5, 1.0, 3.9, (0,) * 240, (8,) + (0,) * 239),
)


def run(*passes: PassMeasured) -> Run:
    events = [Event(19, 0.0, what) for what in passes]
    return run_of({LOSS: {"": np.linspace(2, 1, 20)}}, events=events)


def shown(*passes: PassMeasured) -> str:
    made = run(*passes)
    return text.render(made, CHECKUP, whole=True)


def document(*passes: PassMeasured) -> list[dict[str, object]]:
    made = run(*passes)
    printed = json.loads(json_report.render(made, CHECKUP))
    jsonschema.Draft202012Validator(SCHEMA).validate(printed)
    return printed["evaluation"]  # type: ignore[no-any-return]


def test_text_shows_metrics_beside_baselines() -> None:
    says = " ".join(shown(CLASSES).split())
    assert "evaluation on val_loader after step 19 (100 targets)" in says
    assert "accuracy 0.92 0.9 for always predicting the most frequent class" in says
    assert "balanced accuracy 0.6 0.333 without using the inputs" in says
    assert "0 (4 times)" in says
    assert "loss by position in the sequence" in says
    assert "most frequent 1 90 0.978 0.1" in says


def test_the_first_screen_is_without_it() -> None:
    made = run(CLASSES)
    assert "balanced accuracy" not in text.render(made, CHECKUP)


def test_json_has_every_number() -> None:
    (found,) = document(CLASSES)
    assert (found["data"], found["step"], found["targets"]) == ("val_loader", 19, 100)
    assert found["classification"]["accuracy"] == 0.92
    assert found["classification"]["classes"][2]["recall"] == 0.2
    assert found["classification"]["confusions"][0] == {"target": 2, "predicted": 0, "times": 4}
    assert round(found["calibration"]["error"], 6) == 0.07
    for name in ("evaluation", "classification"):
        part = found if name == "evaluation" else found[name]
        assert set(part) == set(SCHEMA["$defs"][name]["properties"])


def test_units_and_numbers() -> None:
    units, numbers = document(UNITS, NUMBERS)
    assert units["classification"] is None
    assert units["auroc"] == 0.75
    assert [unit["f1"] for unit in units["units"]] == [1.0, 0.0]
    assert numbers["regression"]["r2"] == 0.75
    assert set(numbers["regression"]["quantiles"]) == {"0.05", "0.25", "0.5", "0.75", "0.95"}
    says = " ".join(shown(UNITS, NUMBERS).split())
    assert "explained variance (R²) 0.75" in says
    assert "units with the lowest F1" in says


def test_the_last_pass_counts() -> None:
    early = PassMeasured(CLASSES.owner, 7, classes=CLASSES.classes)
    (found,) = document(early, CLASSES)
    assert found["targets"] == 100
