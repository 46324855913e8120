"""The package as it is published: sdist and wheel, installed where nothing else of holter is."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
from pathlib import Path

import pytest

import holter

ROOT = Path(__file__).parents[1]
pytest.importorskip("hatchling", reason="hatchling builds the package")


def called(*words: str | Path, cwd: Path, **variables: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env={**kept, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def built(source: Path, kind: str, folder: Path) -> Path:
    """Build the sdist or the wheel of a source tree."""
    here = os.pathsep.join(filter(None, sys.path))  # where this process has hatchling from
    words = ("-m", "hatchling", "build", "--target", kind, "--directory", folder)
    called(sys.executable, *words, cwd=source, PYTHONPATH=here)
    (made,) = folder.iterdir()
    return made


def environment(folder: Path) -> Path:
    """Create an environment that has all packages of this one but holter; return its Python."""
    venv.create(folder, symlinks=os.name != "nt")
    packages = next(folder.rglob("site-packages"))
    (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


@pytest.mark.slow
def test_the_wheel_of_the_sdist_runs_the_demo_and_checks_it(tmp_path: Path) -> None:
    sdist = built(ROOT, "sdist", tmp_path / "sdist")
    assert sdist.name == f"holter-{holter.__version__}.tar.gz"
    with tarfile.open(sdist) as packed:
        packed.extractall(tmp_path / "source", filter="data")
    (source,) = (tmp_path / "source").iterdir()
    wheel = built(source, "wheel", tmp_path / "wheel")
    python = environment(tmp_path / "venv")
    install = ("install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check")
    called(sys.executable, "-m", "pip", "--python", python, *install, wheel, cwd=tmp_path)

    empty = tmp_path / "empty"
    empty.mkdir()
    home = called(python, "-c", "import holter; print(holter.__file__)", cwd=empty).strip()
    assert Path(home).is_relative_to(tmp_path / "venv")
    assert (Path(home).parent / "py.typed").exists()
    command = python.parent / ("holter.exe" if os.name == "nt" else "holter")
    assert called(command, "--version", cwd=empty).split()[-1] == holter.__version__
    assert "parameters-outside-model · certain" in called(
        command, "demo", cwd=empty, PYTHONIOENCODING="utf-8"
    )
    page = ("check", "--format", "html", "--fail-on", "never", "--output", "report.html")
    called(command, *page, cwd=empty)
    assert "parameters-outside-model" in (empty / "report.html").read_text(encoding="utf-8")
