"""The GPU suite: its table is whole, and a machine without CUDA gets one sentence."""

import subprocess
import sys

import pytest
import torch

from bench.gpu.__main__ import misses, row
from bench.gpu.running import SCRIPTS, Result
from bench.gpu.table import SPECIMENS
from holter.diagnosis.engine import all_rules


def test_the_table_names_scripts_and_rules_that_exist() -> None:
    assert len({specimen.name for specimen in SPECIMENS}) == len(SPECIMENS) >= 28
    for specimen in SPECIMENS:
        assert (SCRIPTS / f"{specimen.script}.py").exists()
        assert set(specimen.accepts) <= set(all_rules())
        assert bool(specimen.truth) == bool(specimen.accepts)


def test_every_script_has_a_healthy_specimen() -> None:
    scripts = {specimen.script for specimen in SPECIMENS if specimen.healthy}
    assert scripts == {path.stem for path in SCRIPTS.glob("*.py")} - {"common"}


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_cuda_it_says_so() -> None:
    command = [sys.executable, "-m", "bench.gpu"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stdout.count("\n") == 1
    assert "no CUDA device" in ended.stdout


def test_a_miss_is_struck_out_and_explained() -> None:
    fault = next(specimen for specimen in SPECIMENS if not specimen.healthy)
    missed = Result(fault, output="differs", true_steps=5, steps=4, losses=3, bare_seconds=1.0)
    assert missed.verdict == "missed"
    assert "~~missed~~ | ~~differs~~ | ~~4~~ | ~~3~~" in row(missed)
    (said,) = [line for line in misses([missed]) if line.startswith("- ")]
    assert fault.truth in said
    assert "differs" in said
    assert "4 of 5 steps" in said
    named = Result(fault, output="identical", leading=fault.accepts[0])
    assert named.verdict == "named"
    healthy = next(specimen for specimen in SPECIMENS if specimen.healthy)
    assert Result(healthy, findings=("a",), alarms=("a",)).verdict == "alarm"
    assert Result(healthy, findings=("a",)).verdict == "note"
