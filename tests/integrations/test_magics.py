"""The magics in IPython's own shell."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holter.record import notices

pytest.importorskip("IPython")
pytest.importorskip("torch")

TRAINING = """%%holter --out {out}
for step in range(60):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
"""
MODEL = """
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr={rate})
x = torch.randn(64, 4)
y = (x[:, 0] > 0).long()
"""


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    from IPython.core.interactiveshell import InteractiveShell

    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.chdir(tmp_path)
    shell = InteractiveShell.instance()
    shell.history_manager.enabled = False
    assert shell.run_cell("%load_ext holter").success
    yield shell
    InteractiveShell.clear_instance()


def test_a_cell_is_watched_and_checked(
    shell: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shell.run_cell(MODEL.format(rate=0.5)).success  # the model is older than the watch
    assert shell.run_cell(TRAINING.format(out=tmp_path / "run")).success
    assert "holter: learned. loss " in capsys.readouterr().out
    assert shell.user_ns["step"] == 59
    view = shell.run_cell(f"%holter {tmp_path / 'run'}").result
    assert view.run.steps == 60
    assert not view.checkup.findings
    assert view._repr_html_().startswith("<div style=")
    assert "<b>holter: learned." in view._repr_html_()


def test_an_error_in_a_cell_stays_the_error_of_the_cell(
    shell: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_cell(MODEL.format(rate=0.5))
    shell.run_cell(TRAINING.format(out=tmp_path / "run") + "    raise OSError('the disk is full')")
    said = capsys.readouterr().out
    assert "OSError" in said
    assert "the disk is full" in said
    view = shell.run_cell("%holter " + str(tmp_path / "run")).result
    assert view.run.meta.status == "failed"


def test_an_experiment(
    shell: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notices, "_RARELY", 0.0)
    shell.run_cell(MODEL.format(rate=0.5))
    shell.run_cell(
        "import holter\n"
        "setup = holter.Setup.of(model, optimizer, nn.functional.cross_entropy, [(x, y)])"
    )
    view = shell.run_cell("%holter_try overfit-batch setup steps=100").result
    assert "holter: experiment 1/1: overfit-batch" in capsys.readouterr().err  # its progress
    assert view.checkup.findings == ()
    assert any(verdict.rule == "unfittable-batch" for verdict in view.checkup.clear)
    assert shell.run_cell("%holter_try overfit-batch model").result is None
    assert "not a holter.Setup" in capsys.readouterr().out


def test_what_is_missing_is_one_sentence(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert shell.run_cell("%holter").result is None
    assert capsys.readouterr().out.startswith("holter: There is no run in")
