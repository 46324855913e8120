"""Runs specimens with a peer attached, one process each, and keeps what it said."""

import contextlib
import hashlib
import importlib.util
import json
import multiprocessing
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import version
from multiprocessing.context import ForkServerContext
from pathlib import Path

from bench.peers.peer import Alarm
from zoo.recording import LIMIT, ROOT, script_of
from zoo.specimens import Specimen

CACHE = ROOT / ".cache" / "peers"
ATTACHED = {"torchmortem": "torchmortem", "torch-audit": "torch_audit"}  # and their modules


@dataclass(frozen=True, slots=True)
class Heard:
    """What a peer said of a run; `error` where the script did not survive it."""

    alarms: tuple[Alarm, ...]
    error: str = ""


def installed(peer: str) -> bool:
    """Whether a peer can be imported here."""
    return importlib.util.find_spec(ATTACHED[peer]) is not None


def listen(
    peer: str, specimens: Iterable[Specimen], seeds: Iterable[int]
) -> Iterator[tuple[Specimen, int, Heard]]:
    """What a peer says of each specimen with each seed, one script at a time."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["torch", ATTACHED[peer], "bench.peers.attaching"])
    seeds = tuple(seeds)
    for specimen in specimens:
        for seed in seeds:
            yield specimen, seed, _hear(peer, specimen, seed, processes)


def _hear(peer: str, specimen: Specimen, seed: int, processes: ForkServerContext) -> Heard:
    script = script_of(specimen, seed)
    key = hashlib.sha256(f"{_attachment(peer)}\0{script}".encode()).hexdigest()[:12]
    folder = CACHE / peer / f"{specimen.name}-{seed}-{key}"
    kept = folder / "heard.json"
    if not kept.exists():
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / specimen.path.name
        path.write_text(script)
        process = processes.Process(target=_run, args=(peer, path, kept))
        process.start()
        process.join(LIMIT)
        if process.is_alive():
            process.kill()
            process.join()
        if not kept.exists():
            _keep(kept, Heard((), f"ended with {process.exitcode}"))
    said = json.loads(kept.read_text())
    return Heard(tuple(Alarm(**each) for each in said["alarms"]), said["error"])


def _run(peer: str, script: Path, kept: Path) -> None:
    """Run the script in this process, with its output in a file."""
    from bench.peers.attaching import run_with

    attach = import_module(f"bench.peers.{ATTACHED[peer]}").Monitor
    with (script.parent / "output.txt").open("w") as output, contextlib.chdir(script.parent):
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
        try:
            heard = Heard(tuple(run_with(script, attach)))
        except Exception as error:  # whatever it is, the peer's user would see it too
            heard = Heard((), f"{type(error).__name__}: {error}")
        sys.stdout.flush()
    _keep(kept, heard)


def _keep(kept: Path, heard: Heard) -> None:
    kept.write_text(json.dumps(asdict(heard)) + "\n")


@cache
def _attachment(peer: str) -> str:
    """A digest of how a peer is attached, and its version."""
    digest = hashlib.sha256(version(peer).encode())
    for name in ("attaching", ATTACHED[peer]):
        source = Path(__file__).with_name(f"{name}.py").read_text()
        digest.update(source.partition("class Monitor")[2].encode())  # what alarms mean may change
    return digest.hexdigest()
