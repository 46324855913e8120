"""`holter demo`: a broken training, diagnosed in one command."""

from pathlib import Path

from launched import HOLTER, python

import holter

SCRIPT = Path(holter.__file__).parent / "scripts" / "demo_training.py"


def test_the_demo_names_what_is_wrong(here: Path) -> None:
    ended = python(*HOLTER, "demo", cwd=here)
    assert ended.code == 0, ended.err
    said = ended.out.decode()
    assert "epoch 4" in said
    assert "\nholter: learned nothing. " in said
    assert "\nERROR  " in said
    assert "parameters-outside-model · certain" in said
    (folder,) = (here / "holter-runs").iterdir()
    run = holter.Run.load(folder)
    diagnosis = holter.diagnose(holter.check(run))
    assert diagnosis.leading is not None
    assert (diagnosis.leading.rule, diagnosis.known) == ("parameters-outside-model", True)
    assert run.steps == 200


def test_the_demo_shows_its_script(here: Path) -> None:
    ended = python(*HOLTER, "demo", "--show", cwd=here)
    assert ended.code == 0, ended.err
    assert ended.out.decode() == SCRIPT.read_text()
    assert list(here.iterdir()) == []
