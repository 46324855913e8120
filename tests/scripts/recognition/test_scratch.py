"""What a script writes while it is examined stays in a scratch folder."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from launched import environment

SAVING = Path(__file__).parent / "saving.py"

SPAWNING = """
import sys
import torch
import torch.multiprocessing as mp


def save(rank):
    torch.save({"rank": rank}, f"rank-{rank}.pt")
    with open("log.txt", "a") as file:
        file.write("more")


if __name__ == "__main__":
    mp.spawn(save, nprocs=1)
    assert torch.load("rank-0.pt") == {"rank": 0}
    assert open("log.txt").read() == "first\\nmore"
    print("both seen", file=sys.stderr)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of somebody who has trained before."""
    here = tmp_path / "project"
    for name, text in {
        "results/old.txt": "old",
        "log.txt": "first\n",
        "notes.md": "mine",
        "stale.txt": "stale",
        "folder/inner/file.txt": "inner",
        "data/a.txt": "a",
        "keep.txt": "keep",
        "history.json": "[]",
        "elsewhere/aim.txt": "aim",
    }.items():
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_text(text)
    (here / "linked.txt").symlink_to("elsewhere/aim.txt")
    (here / "checkpoint").mkdir()
    torch.save(torch.nn.Linear(4, 2).state_dict(), here / "checkpoint" / "best.pth")
    return here


def contents(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        if "holter-runs" not in path.parts and "__pycache__" not in path.parts:
            status = path.lstat()
            own = path.read_bytes() if path.is_file() else None
            found[str(path.relative_to(folder))] = (own, status.st_mode, status.st_mtime_ns)
    return found


def preflight(folder: Path, script: str, temporary: Path) -> subprocess.CompletedProcess[str]:
    temporary.mkdir()
    return subprocess.run(
        [sys.executable, "-m", "holter", "try", "overfit-batch", script],
        cwd=folder,
        env=environment(TMPDIR=str(temporary)),
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )


def test_a_folder_is_afterwards_as_it_was(folder: Path, tmp_path: Path) -> None:
    shutil.copy(SAVING, folder)
    before = contents(folder)
    done = preflight(folder, "saving.py", tmp_path / "temporary")
    assert done.returncode == 0, done.stderr
    assert "AssertionError" not in done.stderr
    assert contents(folder) == before
    assert (folder / "holter-runs").is_dir()
    assert not any((tmp_path / "temporary").glob("holter-*"))


def test_the_script_itself_writes_all_that(folder: Path) -> None:
    """So that the test above can fail."""
    before = contents(folder)
    subprocess.run([sys.executable, SAVING], cwd=folder, env=environment(), check=True)
    changed = {name for name, each in contents(folder).items() if before.get(name) != each}
    assert {"log.txt", "notes.md", "checkpoint/best.pth", "atomic.txt", "runs.db"} <= changed


def test_processes_that_the_script_spawns_write_there_too(folder: Path, tmp_path: Path) -> None:
    (folder / "spawning.py").write_text(SPAWNING)
    before = contents(folder)
    done = preflight(folder, "spawning.py", tmp_path / "temporary")
    assert "both seen" in done.stderr, done.stderr
    assert contents(folder) == before


def test_a_script_in_the_folder_of_temporary_files(recognised: Any, tmp_path: Path) -> None:
    """Files that modules make for themselves are none of the user's, wherever they are."""
    import tempfile

    source = """
import os, tempfile
tempfile.tempdir = os.getcwd()
with tempfile.NamedTemporaryFile() as file:
    pass
for x, y in train_loader:
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.save(model, "model.pt")
"""
    before, opened, listed = tempfile.tempdir, open, os.listdir
    try:
        recognised(source, steps=50)
    finally:
        tempfile.tempdir = before
    assert not (tmp_path / "model.pt").exists()
    assert (open, os.listdir) == (opened, listed)
