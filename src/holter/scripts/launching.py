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
from holter.scripts.discovery import Discovery
from holter.scripts.running import AfterTorch, Script, find_module, find_script, report_end
from holter.scripts.seeding import shifted_seeds
from holter.scripts.spawned import Recording, Workers, tap_processes

if TYPE_CHECKING:
    from holter.scripts.figures import Figures
    from holter.scripts.keepsake import Keepsake
    from holter.scripts.printing import Printing
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
    began: list[Watch] = []
    kept: list[Keepsake] = []
    started = time.perf_counter()
    taps: list[Tap] = []
    printed: list[tuple[Printing, Figures, Recorder]] = []
    options = {
        "budget": budget,
        "black_box": black_box,
        "on_nonfinite": on_nonfinite,
        "capture_at": capture_at,
        "silence": silence,
        "samples": samples,
    }

    def begin() -> None:
        from holter.scripts.figures import Figures
        from holter.scripts.printed import logging_metrics
        from holter.scripts.printing import Printing

        described = replace(
            environment.describe(),
            command=(found.argument, *arguments),
            module=script if as_module else None,
            script_digest=hashlib.sha256(found.source).hexdigest(),
        )
        recorder = _recorder(found.name, out, described, resume=resume)
        began.append(_begin(recorder, kept if afterwards else None, **options))
        figures = Figures(lambda: recorder.steps)
        hearers = (figures.hear, logging_metrics(lambda metrics: began[0].log(**metrics)))
        printed.append((Printing(*hearers), figures, recorder))
        if status and _rank() == 0 and terminal_title.is_wanted():
            terminal_title.start(recorder.path)
        if int(os.environ.get("WORLD_SIZE", "1")) == 1:  # else each process is a rank already
            folder = recorder.path.absolute()  # a process may change its working directory
            taps.extend(tap_processes(Recording(folder, described, options)))

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
    for printing, figures, recorder in printed:
        printing.stop()
        _conclude(figures, found, recorder)
    steps = _close(began[0], error)
    if kept and steps and exit_code == 0:
        _examine(began[0], kept[0], time.perf_counter() - started)
    return ScriptEnd(exit_code, began[0].path, steps, interrupted)


def _close(watch: "Watch", error: BaseException | None) -> int:
    """End the recording; return the steps of the process that it is about."""
    workers, trained = Workers.of(watch.path), watch.has_trained
    if workers.folders and (trained or workers.are_running):
        watch.note(workers.note)
    elif not workers.folders and not trained and not isinstance(error, Exception):
        watch.note(_why_nothing(watch))
    watch.close(error=error)
    if trained or workers.are_running or not workers.folders:
        return watch.steps
    workers.promote(watch.path)
    return Run.load(watch.path).steps


def _examine(watch: "Watch", keepsake: "Keepsake", seconds: float) -> None:
    """Examine what the script leaves, unless others take part in its training."""
    from holter.scripts.afterwards import examine, is_alone

    if not is_alone():
        return
    try:
        examine(watch, keepsake, watch.path, seconds=seconds)
    except KeyboardInterrupt:  # the report is about what is known
        pass
    except Exception as error:
        tell(f"model and data could not be examined afterwards ({type(error).__name__}: {error})")


def _conclude(figures: "Figures", script: Script, recorder: "Recorder") -> None:
    """Record the numbers that the script has printed, and what its source shows."""
    from holter.scripts.reading import events

    for series in figures.series():
        recorder.event(series)
    try:
        for event in events(script):
            recorder.event(event)
    except Exception as error:  # of no importance to the training
        tell(f"the source could not be read for patterns ({type(error).__name__}: {error})")


def _why_nothing(watch: "Watch") -> str:
    if watch.backwards:
        return (
            f"backward() ran {watch.backwards} times, but no optimizer stepped, and no tensor that"
            " received gradients changed between two calls."
        )
    return (
        "neither backward() nor torch.autograd.grad was called for the gradients of weights in this"
        " process. Training in processes that are not started with torch.multiprocessing.spawn or"
        " multiprocessing.Process is not recorded; call holter.watch there."
    )


def _rank() -> int:
    return int(os.environ.get("RANK", "0"))


def _recorder(name: str, out: Path | None, described: Environment, *, resume: bool) -> "Recorder":
    from holter.watching.recorder import Recorder

    folder = out or new_folder(name)
    return Recorder(folder, rank=_rank(), environment=described, resume=resume)


def _begin(recorder: "Recorder", kept: "list[Keepsake] | None", **options: Any) -> "Watch":
    from holter.watching.collectors import all_collectors
    from holter.watching.watch import Watch

    rank, collectors = _rank(), all_collectors()
    if kept is not None:
        from holter.scripts.keepsake import Keepsake

        kept.append(Keepsake())
        collectors += [*kept, *kept[0].rows.collectors]
    watch = Watch(recorder, collectors=collectors, announce=rank == 0, rank=rank, **options)
    for each in kept or ():
        watch.hear_loaders(each.loader_begins)
    Discovery(watch)
    return watch
