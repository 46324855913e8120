"""`holter run`: run an unmodified script and watch the models and optimizers it creates."""

import hashlib
import importlib.util
import os
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holter.record import Run, environment
from holter.record.errors import NEEDS_TORCH, HolterError
from holter.record.folders import new_folder, require_free
from holter.record.meta import Environment
from holter.record.notices import tell
from holter.scripts import terminal_title
from holter.scripts.observing import Observation
from holter.scripts.running import AfterTorch, find_module, find_script, report_end
from holter.scripts.seeding import shifted_seeds
from holter.scripts.spawned import Recording, Workers, append_evaluation, tap_processes

if TYPE_CHECKING:
    from holter.watching.blackbox.box import OnNonfinite
    from holter.watching.recorder import Recorder
    from holter.watching.taps import Tap
    from holter.watching.watch import Watch


@dataclass(frozen=True, slots=True)
class ScriptEnd:
    """The end of a script; `path` is None if it never imported torch."""

    exit_code: int
    path: Path | None
    steps: int = 0
    interrupted: bool = False


def launch(
    script: str,
    arguments: Sequence[str] = (),
    *,
    as_module: bool = False,
    out: Path | None = None,
    resume: bool = False,
    budget: float | None = 0.01,
    black_box: bool = True,
    on_nonfinite: "OnNonfinite" = "record",
    capture_at: int | None = None,
    reseed: int | None = None,
    silence: float | None = None,
    status: bool = False,
    samples: bool = True,
    afterwards: bool = False,
) -> ScriptEnd:
    """Run a script as `python script arguments` would, recording what it trains.

    Exit code, output and traceback are the script's own. Torch is imported only when the script
    imports it, so that environment variables set by the script take effect. `reseed` shifts the
    seeds that the script sets. With `status`, the title of the terminal shows steps, loss and
    alerts. With `afterwards`, the model and the data sets are examined when the script has ended.
    """
    if importlib.util.find_spec("torch") is None:
        raise HolterError(NEEDS_TORCH)
    found = find_module(script) if as_module else find_script(script)
    if out is not None and not resume:
        require_free(out, _rank())
    began: list[Observation] = []
    started = time.perf_counter()
    taps: list[Tap] = []
    options: dict[str, Any] = {
        "budget": budget,
        "black_box": black_box,
        "on_nonfinite": on_nonfinite,
        "capture_at": capture_at,
        "silence": silence,
        "samples": samples,
    }

    def begin() -> None:
        described = replace(
            environment.describe(),
            command=(found.argument, *arguments),
            module=script if as_module else None,
            script_digest=hashlib.sha256(found.source).hexdigest(),
        )
        recorder = _recorder(found.name, out, described, resume=resume)
        rank = _rank()
        observation = Observation(
            found, recorder, afterwards=afterwards, announce=rank == 0, rank=rank, **options
        )
        began.append(observation)
        if status and rank == 0 and terminal_title.is_wanted():
            terminal_title.start(recorder.path)
        if int(os.environ.get("WORLD_SIZE", "1")) == 1:  # else each process is a rank already
            folder = recorder.path.absolute()  # a process may change its working directory
            taps.extend(
                tap_processes(
                    Recording(folder, described, options),
                    observation.watch.other_processes.note_start,
                )
            )

    with nullcontext() if reseed is None else shifted_seeds(reseed) as seed_torch:

        def after_torch() -> None:
            if seed_torch is not None:
                seed_torch()
            begin()

        waiting = AfterTorch(after_torch)
        if "torch" in sys.modules:
            after_torch()
        else:
            sys.meta_path.insert(0, waiting)
        error = found.run(arguments)
        if waiting in sys.meta_path:
            sys.meta_path.remove(waiting)
    for tap in taps:
        tap.remove()
    exit_code, interrupted = report_end(error), isinstance(error, KeyboardInterrupt)
    if not began:
        if not isinstance(error, SyntaxError):
            tell(f"{script} did not import torch; nothing was recorded.")
        return ScriptEnd(exit_code, None, interrupted=interrupted)
    (observation,) = began
    observation.conclude()
    steps = _close(observation.watch, error)
    if steps and exit_code == 0:
        observation.examine(time.perf_counter() - started)
    return ScriptEnd(exit_code, observation.watch.path, steps, interrupted)


def _close(watch: "Watch", error: BaseException | None) -> int:
    """End the recording; return the steps of the process that it is about."""
    workers, trained = Workers.of(watch.path), watch.has_trained
    if workers.folders and (trained or workers.are_running):
        watch.note(workers.note)
    elif not workers.folders and not trained and not _failed(error):
        watch.note(_why_nothing(watch))
    is_theirs = bool(workers.folders) and not (trained or workers.are_running)
    evaluated = watch.other_processes.evaluated_after() if is_theirs else []
    watch.close(error=error)
    if not is_theirs:
        return watch.steps
    workers.promote(watch.path)
    if evaluated:  # by this process, after the others had trained
        append_evaluation(watch.path, evaluated)
    return Run.load(watch.path).steps


def _failed(error: BaseException | None) -> bool:
    """Whether an error, or an exit as that for wrong arguments, is why nothing was trained."""
    if isinstance(error, SystemExit):
        return error.code not in (None, 0)
    return isinstance(error, Exception)


def _why_nothing(watch: "Watch") -> str:
    if watch.backwards:
        return (
            f"backward() ran {watch.backwards} times, but no optimizer stepped, and no tensor that"
            " received gradients changed between two calls."
        )
    return (
        "this process called neither backward() nor torch.autograd.grad for gradients of weights."
        " Training in processes not started with torch.multiprocessing.spawn or"
        " multiprocessing.Process is not recorded; call holter.watch there."
    )


def _rank() -> int:
    return int(os.environ.get("RANK", "0"))


def _recorder(name: str, out: Path | None, described: Environment, *, resume: bool) -> "Recorder":
    from holter.watching.recorder import Recorder

    folder = out or new_folder(name)
    return Recorder(folder, rank=_rank(), environment=described, resume=resume)
