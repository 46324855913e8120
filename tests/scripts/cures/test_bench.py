"""The run that doctor makes of the unchanged script holds what `holter run` records of it."""

from pathlib import Path

import pytest

from holter import Run
from holter.record.events import CodePattern, CodeRead, ExperimentMade, FigurePrinted
from holter.scripts.cures.bench import ScriptBench
from holter.scripts.cures.trial import Command

SCRIPT = """\
import torch
from torch import nn

torch.manual_seed(0)
rows, labels = torch.randn(256, 8), torch.randint(3, (256,))
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(4):
    for place in range(0, 256, 32):
        loss = nn.functional.cross_entropy(
            model(rows[place : place + 32]), labels[place : place + 32]
        )
        optimizer.zero_grad
        loss.backward()
        optimizer.step()
    print(f"accuracy {(model(rows).argmax(1) == labels).float().mean():.3f}")
"""


def test_it_holds_figures_source_and_examination(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SCRIPT)
    with ScriptBench(Command("train.py"), tmp_path / "run") as bench:
        bench.record()
    run = Run.load(tmp_path / "run")
    assert run.steps == 32
    (figure,) = [event.what for event in run.events_of(FigurePrinted)]
    assert figure.name == "accuracy"
    assert len(figure.values) == 4
    assert [event.what.lines for event in run.events_of(CodeRead)] == [SCRIPT.count("\n")]
    assert any(".zero_grad" in event.what.code for event in run.events_of(CodePattern))
    made = {event.what.experiment for event in run.events_of(ExperimentMade)}
    assert {"sample-mixing", "input-use"} <= made
