"""What is worth knowing of the machine, the code and the moment in which a run was made."""

import hashlib
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from holter._version import __version__
from holter.record.meta import Environment, Git, Machine

_DIFF = 64 << 10  # characters of uncommitted changes that are kept
_PACKAGES = ("torch", "numpy", "lightning", "transformers", "accelerate", "triton")
_VARIABLES = (
    "CUDA_VISIBLE_DEVICES",
    "CUBLAS_WORKSPACE_CONFIG",
    "LOCAL_WORLD_SIZE",
    "MKL_NUM_THREADS",
    "OMP_NUM_THREADS",
    "PYTHONHASHSEED",
    "PYTORCH_CUDA_ALLOC_CONF",
    "RANK",
    "SLURM_JOB_ID",
    "TORCH_FR_DUMP_TEMP_FILE",
    "TORCH_NCCL_DEBUG_INFO_TEMP_FILE",
    "WORLD_SIZE",
)


def describe() -> Environment:
    """Return command line, versions, machine and git commit of this process."""
    versions = {name: found for name in _PACKAGES if (found := _version(name))}
    return Environment(
        command=(sys.argv[0] or sys.executable, *sys.argv[1:]),
        script_digest=_digest(Path(sys.argv[0])) if sys.argv[0] else None,
        folder=str(Path.cwd()),
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        python=platform.python_version(),
        versions={"holter": __version__, **versions},
        machine=Machine(platform.node(), platform.platform(), platform.machine(), os.cpu_count()),
        variables={name: os.environ[name] for name in _VARIABLES if name in os.environ},
        git=_git(),
    )


def _digest(script: Path) -> str | None:
    try:
        return hashlib.sha256(script.read_bytes()).hexdigest()
    except OSError:
        return None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _git() -> Git | None:
    """Commit of the working directory, and the changes to it that are not committed."""
    commit = _ask_git("rev-parse", "HEAD")
    if not commit:
        return None
    dirty = bool(_ask_git("status", "--porcelain", "-uno"))
    changes = _ask_git("diff", "HEAD", "--no-color", "--no-ext-diff") if dirty else ""
    return Git(commit, dirty=dirty, diff=(changes or "")[:_DIFF])


def changed_between(folder: str, a: str, b: str) -> list[str]:
    """Return what `git diff --stat` says of two commits; nothing where they are not there."""
    stat = _ask_git("-C", folder, "diff", "--stat", "--no-color", a, b)
    return stat.splitlines() if stat else []


def _ask_git(*arguments: str) -> str | None:
    try:
        answer = subprocess.run(  # noqa: S603  (fixed arguments)
            ["git", *arguments],  # noqa: S607  (whichever git the user has)
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None
