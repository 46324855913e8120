"""`holter doctor` on the scripts of `examples/` that stand for stories of users."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from launched import environment

EXAMPLES = Path(__file__).parents[3] / "examples"
# A flat loss, a spike at night, a model to trust: the cause, and whether a change confirms it.
STORIES = {
    "flat_loss.py": ("parameters-outside-model", "every parameter in the optimizer"),
    "night_spike.py": ("poisonous-batch", ""),
    "trusted_model.py": ("eval-mode-gap", ""),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("script", STORIES)
def test_the_cause_of_a_story_is_named(script: str, tmp_path: Path) -> None:
    rule, change = STORIES[script]
    done = subprocess.run(
        [sys.executable, "-m", "holter", "doctor", "--json", "--out", "run", EXAMPLES / script],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    leading = json.loads(done.stdout)["diagnosis"]["leading"]
    assert leading["rule"] == rule
    assert (leading["confirmed_by"] or "") == change
    assert leading["confidence"] in ("likely", "certain")
