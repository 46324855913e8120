"""Records specimens through `holter run` or `holter try`, and keeps the recordings."""

import contextlib
import hashlib
import multiprocessing
import os
import pkgutil
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from multiprocessing.context import ForkServerContext
from pathlib import Path

from holter.diagnosis import rules
from zoo.regimes import Regime, begin, stretched
from zoo.sources import digest_of
from zoo.specimens import Specimen

ROOT = Path(__file__).parent.parent
CACHE = ROOT / ".cache" / "zoo"

LIMIT = 300  # seconds that one script may take
# Ranks that are forked from a process with threads stand still once in a long while.
_TRIES = 2
_PRELOADED = [
    *("torch", "torch._dynamo"),  # the latter takes longest: the first optimizer imports it
    *("holter._cli", "holter.scripts.launching", "holter.watching.watch"),
    *("holter.diagnosis.engine", "holter.lab.running", "holter.scripts.recognition"),
    "holter.scripts.afterwards",
    *(f"{rules.__name__}.{each.name}" for each in pkgutil.iter_modules(rules.__path__)),
]

_REGIMES = (Regime.STRETCHED, Regime.SAMPLED)

Recorded = tuple[Specimen, int, Path]  # the specimen, the seed, and the run


def recordings(
    specimens: Iterable[Specimen],
    seeds: Iterable[int],
    *,
    workers: int = 2,
    experiment: str | None = None,
    regime: Regime = Regime.WHOLE,
) -> Iterator[Recorded]:
    """The run of each specimen with each seed; those that are not kept yet are recorded first.

    With an `experiment` it is the run that `holter try` makes of it, else that of `holter run`.
    """
    how = experiment or (None if regime is Regime.WHOLE else str(regime))
    kept, missing = [], []
    seeds = tuple(seeds)
    for specimen in specimens:
        for seed in seeds:
            folder = folder_of(specimen, seed, how)
            (kept if (folder / "done").exists() else missing).append((specimen, seed, folder))
    for specimen, seed, folder in kept:
        yield specimen, seed, folder / "run"
    # A process of its own for each, forked from one that has imported all that takes long.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(_PRELOADED)
    with ThreadPoolExecutor(workers) as pool:
        for done in as_completed(
            pool.submit(_record_apart, each, how, processes) for each in missing
        ):
            yield done.result()


def kept(
    specimens: Iterable[Specimen],
    seeds: Iterable[int],
    folder: Path,
    *,
    regime: Regime = Regime.WHOLE,
) -> Iterator[Recorded]:
    """The recordings in `folder`, whichever version of holter made them."""
    how = None if regime is Regime.WHOLE else str(regime)
    seeds = tuple(seeds)
    for specimen in specimens:
        for seed in seeds:
            for path in folder.glob(f"{_name(specimen, seed, how)}-????????????"):
                if (path / "done").exists():
                    yield specimen, seed, path / "run"


def recording(specimen: Specimen, seed: int = 0, *, experiment: str | None = None) -> Path:
    """The run of one specimen."""
    ((_, _, path),) = recordings([specimen], [seed], workers=1, experiment=experiment)
    return path


def folder_of(specimen: Specimen, seed: int, how: str | None = None) -> Path:
    """Where the recording of a specimen is kept: another one when script or recorder change.

    `how` is the experiment that made it, or the regime; None for a run that is read whole.
    """
    script = script_of(specimen, seed, how)
    recorder = digest_of(None if how in _REGIMES else how)
    key = hashlib.sha256(f"{recorder}\0{script}".encode()).hexdigest()[:12]
    return CACHE / f"{_name(specimen, seed, how)}-{key}"


def _name(specimen: Specimen, seed: int, how: str | None) -> str:
    return "-".join(filter(None, (how, specimen.name, str(seed))))


def script_of(specimen: Specimen, seed: int, how: str | None = None) -> str:
    """The specimen's script, drawing its random numbers from `seed`."""
    text = stretched(specimen, specimen.script) if how in _REGIMES else specimen.script
    for fixed in ("torch.manual_seed(0)", 'parser.add_argument("--seed", type=int, default=0)'):
        text = text.replace(fixed, fixed.replace("0)", f"{seed})"))
    return text


def _record_apart(wanted: Recorded, how: str | None, processes: ForkServerContext) -> Recorded:
    specimen, seed, folder = wanted
    if how == "doctor":
        _examine(specimen, seed, folder)
        return specimen, seed, folder / "run"
    for _ in range(_TRIES):
        process = processes.Process(target=_record, args=(*wanted, how))
        process.start()
        process.join(LIMIT)
        if not process.is_alive():
            break
        process.kill()
    else:
        raise RuntimeError(f"{specimen.name} with seed {seed} took more than {LIMIT} s")
    if how not in (None, *_REGIMES) and process.exitcode in (0, 1) and (folder / "run").exists():
        (folder / "done").touch()  # a script that is tried ends without coming back
    if not (folder / "done").exists():
        raise RuntimeError(f"{specimen.name} with seed {seed} failed: see {folder}/output.txt")
    return specimen, seed, folder / "run"


def _examine(specimen: Specimen, seed: int, folder: Path) -> None:
    """Run `holter doctor` as a user does: its time is a multiple of that of the whole process."""
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / specimen.path.name
    script.write_text(script_of(specimen, seed, "doctor"))
    command = [sys.executable, "-m", "holter", "doctor", "--out", "run", script.name]
    with (folder / "output.txt").open("w") as output:
        subprocess.run(  # noqa: S603
            command, cwd=folder, stdout=output, stderr=subprocess.STDOUT, check=False, timeout=LIMIT
        )
    if not (folder / "run").exists():
        raise RuntimeError(f"{specimen.name} with seed {seed} failed: see {folder}/output.txt")
    (folder / "done").touch()


def _record(specimen: Specimen, seed: int, folder: Path, how: str | None) -> None:
    """Run one command of holter on the script in this process, with its output in a file."""
    from holter._cli import main

    experiment = None if how in _REGIMES else how
    begin(Regime(how) if how in _REGIMES else Regime.WHOLE)
    multiprocessing.set_start_method("fork", force=True)  # as it is where a script starts alone
    for old in CACHE.glob(f"{_name(specimen, seed, how)}-????????????"):
        shutil.rmtree(old)
    folder.mkdir(parents=True)
    script = folder / specimen.path.name
    script.write_text(script_of(specimen, seed, how))
    run = folder / "run"
    with (folder / "output.txt").open("w") as output, contextlib.chdir(folder):
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
        if experiment == "replay":  # of what failed, or else of a step that did not
            main(["run", "--no-check", "--capture-at", "40", "--out", str(run), str(script)])
            main(["try", "replay", str(run)])
        elif experiment is not None:
            main(["try", experiment, "--out", str(run), str(script)])
        elif "holter.watch(" in script.read_text():  # it records itself, to the folder `run`
            runpy.run_path(str(script), run_name="__main__")
        else:
            main(["run", "--no-check", "--out", str(run), str(script)])
    if run.exists():
        (folder / "done").touch()
