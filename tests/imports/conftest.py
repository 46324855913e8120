"""Logs that the real tools write, made once."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three trainings, recorded by holter and logged by other tools."""
    for name in ("tensorboard", "wandb", "mlflow", "lightning", "transformers", "keras"):
        if find_spec(name) is None:  # not imported: they change this process
            pytest.skip(f"{name} is not installed")
    folder = tmp_path_factory.mktemp("logs")
    subprocess.run(
        [sys.executable, str(Path(__file__).with_name("write_logs.py")), str(folder)],
        check=True,
        timeout=280,
        capture_output=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    return folder
