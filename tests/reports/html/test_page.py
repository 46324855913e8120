"""The page as a document: what is in it, in which order, and that nothing leaves it."""

import base64
import hashlib
import pkgutil
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made import drawing, drawings, training, written

from holter import check
from holter._cli import main
from holter.diagnosis.engine import Checkup
from holter.record import Event, Writer
from holter.record.births import Birth, Operand
from holter.record.events import (
    BirthFound,
    ClassCount,
    ClassCounts,
    Confusion,
    PassMeasured,
    ReliabilityBin,
    Reproduced,
    SampleShown,
)
from holter.record.findings import Evidence
from holter.record.signals import GRAD_NORM, LOSS, TIME_DATA_WAIT
from holter.reports.html import panels, render
from holter.reports.html._assets import asset, joined_script
from holter.reports.html._markup import element, with_code
from synthetic import run_of

FLAT = run_of({LOSS: {"": [2.3] * 300}})
BROKEN = np.r_[np.linspace(2.3, 1, 60), np.full(40, np.nan)]
ASSETS = sorted(Path(panels.__path__[0]).parent.joinpath("assets").iterdir())


def test_the_cause_stands_before_the_curves() -> None:
    page = written(run_of({LOSS: {"": BROKEN}}))
    places = [page.index(part) for part in ("<h1", 'id="diagnosis"', 'id="losses"', 'id="rules"')]
    assert places == sorted(places)
    assert "nonfinite-loss" in page[places[1] : places[2]]
    assert "Broke at step 60" in page


def test_evidence_is_marked_on_the_curves() -> None:
    page = written(run_of({LOSS: {"": BROKEN}}))
    marks = drawing(page, "Loss")["marks"]
    assert [mark["from"] for mark in marks if mark["kind"] == "onset"] == [60]
    (error,) = (mark for mark in marks if mark["kind"] == "error")
    assert (error["from"], error["to"]) == (40, 60)
    assert error["text"].startswith("nonfinite-loss: ")


def test_evidence_of_a_layer_is_marked_in_its_row() -> None:
    norms = {"0.weight": np.ones(100), "2.weight": BROKEN}
    run = run_of({LOSS: {"": BROKEN}, GRAD_NORM: norms})
    finding = replace(
        check(run).findings[0],
        evidence=(Evidence(GRAD_NORM, (60, 99), "is NaN", "2.weight"),),
    )
    page = render(run, Checkup((finding,)))
    data = drawing(page, "Gradient norm per parameter")
    assert data["rows"] == ["0.weight", "2.weight"]
    assert [(mark["row"], mark["from"]) for mark in data["marks"]] == [(1, 60)]
    assert data["chosen"][0] == 1


def test_a_healthy_run_has_no_diagnosis() -> None:
    page = written(training())
    assert 'id="diagnosis"' not in page
    assert 'data-kind="good"' in page


def test_panels_without_readings_are_named_in_one_line() -> None:
    page = written(FLAT)
    (line,) = re.findall(r"Not recorded in this run[^<]*", page)
    assert "Histograms" in line
    assert "Loss and validation" not in line
    assert 'id="histograms"' not in page


def test_every_panel_has_its_place() -> None:
    assert sorted(panels.ORDER) == sorted(
        module.name for module in pkgutil.iter_modules(panels.__path__)
    )


def test_only_the_page_s_own_script_and_style_may_run() -> None:
    page = written(training())
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    script = re.search(r'<script type="module">(.*)</script>', page, re.S)
    style = re.search(r"<style>(.*?)</style>", page, re.S)
    assert script is not None
    assert style is not None
    for content in (script[1], style[1]):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert not re.search(r"""(src|href)=["'](?!#)""", page)


@pytest.mark.parametrize("path", ASSETS, ids=lambda path: path.name)
def test_assets_insert_no_html_and_ask_nobody(path: Path) -> None:
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S).replace(
        "http://www.w3.org/2000/svg", ""
    )
    assert not re.search(r"innerHTML|insertAdjacent|eval\(|fetch\(|https?:|import\(|url\(", text)


def test_modules_are_joined_in_the_order_of_their_imports() -> None:
    script = joined_script("report.js")
    assert not re.search(r"^(import|export)\b", script, re.M)
    assert script.index("module_canvas =") < script.index("module_lines =")
    assert script.index("module_charts =") < script.index("module_report =")
    assert script.count("module_canvas = ") == 1
    assert "function lineChart" in asset("lines.js")


def test_thinning_is_said() -> None:
    page = written(run_of({LOSS: {"": np.linspace(2, 1, 9_000)}}))
    assert re.search(r"[\d,]+ of 9,000 readings are drawn", page)


BIRTH = Birth(
    *("log", "log of zero", "forward", "train.py:13", "loss = p.log()", "head", ""),
    operands=(Operand("p", (2, 3), "float32", 0.0, 1.0, zeros=1, nonfinite=0),),
    count=1,
    of=6,
    samples=(1,),
    positions=((1, 2),),
    passed_on=2,
    passed_to=("head",),
    headroom=None,
    says="-inf is born in log",
    made_by=("sigmoid", "addmm"),
    went_into=("mul", "mean"),
)


def test_the_birth_of_a_nan_is_a_graph_with_the_guilty_line() -> None:
    reproduced = Reproduced("same", "reproduced", failing=60, onset=60, state_step=30, alarm="")
    events = (Event(60, 0.0, reproduced), Event(60, 0.0, BirthFound(BIRTH, 60)))
    page = written(run_of({LOSS: {"": [1.0] * 60}}, events=events))
    graph = next(drawn["data"] for drawn in drawings(page) if drawn["kind"] == "graph")
    names = [node["name"] for node in graph["nodes"]]
    assert names == ["addmm", "sigmoid", "p", "log", "mul", "mean"]
    assert ["operand-0", "birth"] in graph["edges"]
    assert "loss = p.log()" in page
    assert "train.py:13" in page


def test_stored_samples_are_shown() -> None:
    events = (Event(0, 0.0, SampleShown("train", 3, "tensor([1.5])", "2")),)
    page = written(run_of({LOSS: {"": [1.0] * 60}}, events=events))
    assert "tensor([1.5])" in page


@pytest.mark.parametrize("text", ["<b>", "a & b", '"quoted"', "\udc80", "\u202e x", "a\nb"])
def test_texts_are_escaped(text: str) -> None:
    made = element("p", text, with_code(f"`{text}`"), title=text)
    assert "<b>" not in made
    assert not re.search(r"&(?!amp;|lt;|gt;|quot;|#x27;)", made)
    made.encode()


def recorded(folder: Path) -> Path:
    writer = Writer(folder / "run", status="finished")
    writer.close()
    return folder / "run"


def test_the_command_writes_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = recorded(tmp_path)
    out = tmp_path / "report.html"
    assert main(["check", str(run), "--format", "html", "-o", str(out)]) == 0
    assert out.read_text().startswith("<!doctype html>")
    assert main(["check", str(run), "--format", "html"]) == 0  # redirected: to standard output
    assert capsys.readouterr().out == out.read_text()


def test_a_terminal_gets_a_file_instead_of_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = recorded(tmp_path)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(["check", str(run), "--format", "html"]) == 0
    shown = capsys.readouterr()
    assert shown.out == ""
    assert str(run / "report.html") in shown.err
    assert (run / "report.html").read_text().endswith("</html>\n")


def test_the_last_evaluation_is_a_matrix_and_a_reliability_diagram() -> None:
    classes = ClassCounts(
        number=2,
        present=2,
        right=7,
        largest=6,
        recall=0.7,
        each=(ClassCount(0, 6, 5, 4, 0.5), ClassCount(1, 4, 5, 3, 0.6)),
        confusions=(Confusion(0, 1, 2), Confusion(1, 0, 1)),
        reliability=(ReliabilityBin(0, 0.0, 0), ReliabilityBin(10, 8.0, 7)),
    )
    events = (Event(9, 0.0, PassMeasured("cross_entropy", 10, classes=classes)),)
    page = written(run_of({LOSS: {"": [1.0] * 60}}, events=events))
    (matrix,) = (drawn["data"] for drawn in drawings(page) if drawn["kind"] == "matrix")
    assert matrix["values"] == [4, 2, 1, 3]
    reliability = drawing(page, "Reliability on unnamed data")
    assert [len(series["values"]) for series in reliability["series"][1:]] == [2]


def test_the_time_of_phases_is_shown() -> None:
    waits = {"train_loader": [0.01] * 60, "val_loader": [0.5] * 60}
    page = written(run_of({LOSS: {"": [1.0] * 60}, TIME_DATA_WAIT: waits}))
    items = drawing(page, "Time of the phases")["items"]
    assert [round(item["value"]) for item in items] == [10, 500]
