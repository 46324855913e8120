"""The options of `holter run`: where it records, what it reports, and what fails."""

import json
from pathlib import Path

import pytest
from launched import CASES, Ended, environment, holter_run

import holter
from holter._cli import main
from holter.record.signals import LOSS

SICK, HEALTHY = (CASES / "uncleared-gradients" / f"{name}.py" for name in ("sick", "healthy"))
TINY = """\
import sys
import torch
print("training", flush=True)
net = torch.nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(5):
    opt.zero_grad()
    loss = (net(torch.randn(8, 3)) ** 2).mean()
    loss.backward()
    opt.step()
sys.exit(int(sys.argv[1]) if sys.argv[1:] else 0)
"""


@pytest.fixture
def tiny(here: Path) -> Path:
    (here / "tiny.py").write_text(TINY)
    return here


def test_a_broken_training_fails(here: Path) -> None:
    ended = holter_run(SICK, cwd=here)
    assert ended.code == 1
    assert b"ERROR" not in ended.out
    assert "\nERROR  " in ended.err
    assert "uncleared-gradients · " in ended.err
    (run,) = (here / "holter-runs").iterdir()
    assert run.name.startswith("sick-")
    assert main(["check", str(run), "--fail-on", "error"]) == 1
    assert main(["check", str(run), "--fail-on", "never"]) == 0


def test_fail_on_never_leaves_the_exit_code_to_the_script(here: Path) -> None:
    options = ("--fail-on", "never", "--format", "json", "--output", "report.json")
    ended = holter_run(*options, "--out", "run", SICK, cwd=here)
    assert ended.code == 0
    assert ended.out.decode().startswith("epoch 0: loss")
    assert "report written to report.json" in ended.err
    assert "uncleared-gradients" not in ended.err
    report = json.loads((here / "report.json").read_text())
    assert report["diagnosis"]["leading"]["rule"] == "uncleared-gradients"


def test_a_healthy_training_passes(here: Path) -> None:
    ended = holter_run("--fail-on", "info", "--format", "json", HEALTHY, cwd=here)
    assert ended.code == 0
    started, _, report = ended.err.partition("\n")
    assert started.startswith("holter: recording to holter-runs/healthy-")
    assert json.loads(report)["findings"] == []


def test_no_check_only_records(tiny: Path) -> None:
    ended = holter_run("--no-check", "--out", "run", "tiny.py", "4", cwd=tiny)
    assert ended == Ended(4, b"training\n", "holter: recording to run\n")
    assert holter.Run.load(tiny / "run").steps == 5


def test_a_run_is_not_overwritten_but_resumed(tiny: Path) -> None:
    first = holter_run("--out", "run", "tiny.py", cwd=tiny)
    assert first.code == 0, first.err
    before = _losses(tiny / "run")
    assert len(before) == 5

    refused = holter_run("--out", "run", "tiny.py", cwd=tiny)
    assert (refused.code, refused.out) == (2, b""), refused.err  # before the training, not after
    assert refused.err.startswith("holter: run already holds a run;")
    assert refused.err.count("\n") == 1
    assert _losses(tiny / "run") == before

    resumed = holter_run("--out", "run", "--resume", "tiny.py", cwd=tiny)
    assert (resumed.code, resumed.out) == (0, first.out), resumed.err
    assert _losses(tiny / "run")[:5] == before
    assert len(_losses(tiny / "run")) == 10
    meta = json.loads((tiny / "run" / "meta.json").read_text())
    assert (meta["status"], meta["steps"]) == ("finished", 10)


def test_a_folder_that_cannot_be_written_stops_nothing(tiny: Path) -> None:
    (tiny / "file").write_text("kept")
    temporary = tiny / "tmp"
    temporary.mkdir()
    ended = holter_run(
        "--out", "file/run", "tiny.py", "4", cwd=tiny, env=environment(TMPDIR=str(temporary))
    )
    assert (ended.code, ended.out) == (4, b"training\n"), ended.err
    assert ended.err.count("cannot write to file/run (Not a directory)") == 1
    assert "Traceback" not in ended.err
    assert (tiny / "file").read_text() == "kept"


def test_a_wrong_option_is_refused_before_the_training(tiny: Path) -> None:
    for options in (("--set", "flat-loss.nonsense=1"), ("--select", "no-such-rule")):
        ended = holter_run(*options, "--out", "run", "tiny.py", cwd=tiny)
        assert (ended.code, ended.out) == (2, b""), ended.err
        assert ended.err.startswith("holter: ")
        assert not (tiny / "run").exists()


def test_a_report_that_cannot_be_written_is_one_sentence_and_the_run_is_kept(tiny: Path) -> None:
    ended = holter_run("--out", "run", "--output", "no/report", "tiny.py", cwd=tiny)
    assert ended.code == 2
    assert ended.err.splitlines()[1:] == [
        "holter: Cannot write no/report: No such file or directory."
    ]
    assert len(_losses(tiny / "run")) == 5


def _losses(path: Path) -> list[float]:
    return holter.Run.load(path)[LOSS][""].values.tolist()


@pytest.mark.parametrize("share", ["x", "0", "2", "nan"])
def test_a_budget_that_is_no_share_is_one_sentence(
    share: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", "--budget", share, "train.py"])
    assert ended.value.code == 2
    assert f"'{share}' is not a share between 0 and 1" in capsys.readouterr().err
