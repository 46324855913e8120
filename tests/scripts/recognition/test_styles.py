"""Scripts in the style of public projects: their training step is extracted, or the reason fits."""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from launched import environment

STYLES = sorted((Path(__file__).parent / "styles").glob("*.py"))
LIBRARIES = ("accelerate", "gymnasium", "keras", "lightning", "transformers")
DECLINED = {"hogwild": ("trains in 2 other processes", "Train in the main process")}


def preflight(script: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Extract the step of a script, and run no experiment on it."""
    shutil.copy(script, folder)
    return subprocess.run(
        [sys.executable, "-m", "holter", "try", "preflight", "--only", "finite", script.name],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


# Styles that others of the list, or preflight on the real scripts, show in every test run.
ALIKE = frozenset(
    (
        *("accelerate_nlp", "dcgan", "gcn", "hf_classifier", "lightning_module", "mingpt", "mnist"),
        *("nanogpt", "noam", "reinforce", "super_resolution", "timm_train", "vae"),
        *("accelerate_cv", "cifar", "hf_own_loss", "imagenet", "keras_train_step", "siamese"),
    )
)


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(
            script,
            id=script.stem,
            marks=[pytest.mark.exhaustive] if script.stem in ALIKE else [],
        )
        for script in STYLES
    ],
)
def test_the_step_is_extracted_and_nothing_is_written(script: Path, tmp_path: Path) -> None:
    text = script.read_text()
    for library in LIBRARIES:
        if re.search(rf"^(import|from) {library}\b", text, re.M):
            pytest.importorskip(library) if library != "keras" else _require(library)
    done = preflight(script, tmp_path)
    if script.stem in DECLINED:
        assert done.returncode == 2
        assert all(part in done.stderr for part in DECLINED[script.stem]), done.stderr
    else:
        assert "on the training step" in done.stderr, done.stderr
    assert {path.name for path in tmp_path.iterdir()} <= {script.name, "holter-runs", "__pycache__"}


def _require(library: str) -> None:
    if importlib.util.find_spec(library) is None:  # its import needs a setting first
        pytest.skip(f"{library} is not installed")
