"""`examples/` has a script for each framework, and each does what it says, from any folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
PRINTED = {
    "accelerate_loop.py": "learned: 0 findings",
    "ignite_loop.py": "holter: learned",
    "keras_callback.py": "holter: learned",
    "lightning_callback.py": "holter: learned",
    "trainer_callback.py": "nonfinite-inputs",
}


@pytest.mark.parametrize(
    "framework", ["accelerate", "ignite", "keras", "lightning", "transformers"]
)
def test_every_framework_has_an_example(framework: str) -> None:
    name = f"from holter.integrations.{framework} import "
    assert any(name in (EXAMPLES / example).read_text() for example in PRINTED)


@pytest.mark.exhaustive
@pytest.mark.parametrize("example", PRINTED)
def test_an_example_runs_from_an_empty_folder(example: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / example)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
    )
    assert done.returncode == 0, done.stderr
    assert PRINTED[example] in done.stdout + done.stderr
