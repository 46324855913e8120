"""The package as a whole: what importing it costs, and what works without torch."""

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import holter
from holter import Run
from holter.record import Writer

WITHOUT_TORCH = """
import importlib.abc, sys
class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
sys.meta_path.insert(0, Absent())
"""


def python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )


def test_importing_holter_imports_neither_torch_nor_numpy() -> None:
    code = "import sys, holter; print({'torch', 'numpy', 'rich'} & set(sys.modules))"
    assert python(code).stdout == "set()\n"


def test_every_public_name_is_there() -> None:
    assert sorted(holter.__all__) == list(holter.__all__)
    assert set(holter.__all__) <= set(dir(holter))
    for name in holter.__all__:
        assert getattr(holter, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'wach'"):
        _ = holter.wach


@pytest.mark.parametrize("name", ["Run", "check", "Finding", "diagnose", "rule"])
def test_reading_works_without_torch(name: str) -> None:
    done = python(WITHOUT_TORCH + f"import holter; print(holter.{name}.__name__)")
    assert done.stdout == f"{name}\n", done.stderr


def test_watching_without_torch_gives_one_sentence_with_the_extra() -> None:
    done = python(
        WITHOUT_TORCH + "import holter\ntry: holter.watch\n"
        "except holter.HolterError as error: print(error)"
    )
    assert "holter[torch]" in done.stdout
    assert done.stdout.count("\n") == 1


def test_holter_run_without_torch_gives_one_sentence(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import torch\n")
    code = WITHOUT_TORCH.replace("raise Module", "return None\n            raise Module") + (
        "import importlib.util, sys\n"
        "find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda n, p=None: None if n == 'torch' else find(n, p)\n"
        "from holter._cli import main; sys.exit(main(sys.argv[1:]))"
    )
    done = python(code, "run", str(script))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "holter[torch]" in done.stderr


def test_checking_never_imports_torch(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "run")
    import numpy as np

    for step in range(5):
        writer.write("steps", step, [("loss", ("",), np.array([1.0], np.float32))])
    writer.update_meta(status="finished")
    writer.close()
    code = (
        "import sys; from holter._cli import main; code = main(sys.argv[1:])\n"
        "assert 'torch' not in sys.modules; sys.exit(code)"
    )
    done = python(code, "check", str(tmp_path / "run"), "--format", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["run"]["steps"] == Run.load(tmp_path / "run").steps == 5


@pytest.mark.parametrize("form", ["json", "sarif"])
def test_a_source_tree_that_is_not_installed_reports_its_version(tmp_path: Path, form: str) -> None:
    """`python -m holter` beside a copy of the source, where no metadata of holter is found."""
    source = Path(holter.__file__).parent
    skipped = shutil.ignore_patterns("__pycache__")
    shutil.copytree(source, tmp_path / "src" / "holter", ignore=skipped)
    for package in ("numpy", "rich"):  # and what it needs, without what else is installed here
        (tmp_path / "src" / package).symlink_to(Path(find_spec(package).origin).parent)
    Writer(tmp_path / "run", status="finished").close()
    done = subprocess.run(
        [sys.executable, "-S", "-m", "holter", "check", str(tmp_path / "run"), "--format", form],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "src")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert holter.__version__ in done.stdout
