"""Recognition: a setup from an unmodified script, by running it up to its first training steps."""

import contextlib
import importlib.util
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holter.record.errors import NEEDS_TORCH, HolterError
from holter.record.folders import RUNS, new_folder, require_free
from holter.record.notices import tell
from holter.scripts.recognition.declining import (
    NotRecognisedError,
    WayOut,
    declined,
    first_line,
)
from holter.scripts.recognition.leaving import Leave, Left, leave_process
from holter.scripts.recognition.redirecting import redirected
from holter.scripts.recognition.scratch import Scratch
from holter.scripts.running import (
    INTERRUPTED,
    AfterTorch,
    Script,
    find_module,
    find_script,
    report_end,
)

if TYPE_CHECKING:
    from holter.lab.setup import Setup
    from holter.scripts.recognition.session import Session

__all__ = ["NotRecognisedError", "Recognised", "recognise"]


@dataclass(frozen=True, slots=True)
class Recognised:
    """The training of a script, ready for experiments."""

    setup: "Setup"
    path: Path  # the run: the script's first steps
    exact: bool  # whether a replayed step gave the script's own loss bit for bit
    notes: tuple[str, ...]  # what was assumed, and what could not be seen
    drawn: Mapping[int, Sequence[Any]] = field(default_factory=dict)  # what a step was given


def recognise(
    script: str,
    arguments: Sequence[str] = (),
    *,
    as_module: bool = False,
    steps: int | None = 60,
    seconds: float = 20.0,
    out: Path | None = None,
    last: int | None = None,
    then: Callable[[Recognised], int],
    writes: Sequence[Path | None] = (),
    otherwise: Callable[[NotRecognisedError], int] | None = None,
    leave: Leave = leave_process,
) -> int:
    """Run a script up to `steps` training steps (None: all) or `seconds`, then hand over.

    Files that the script writes go to a scratch folder, which is deleted at the end; those that
    `then` writes are named by `writes`.

    `then` is called while the script is paused in its loop, with all objects alive, and its models
    as they were before the first step. The first batches are kept, or the `last` ones.
    Afterwards nothing of the script runs any more: `leave` ends the process with the exit code of
    `then`, or of `otherwise` if the step cannot be extracted. What the script prints goes to
    standard error.
    """
    if importlib.util.find_spec("torch") is None:
        raise HolterError(NEEDS_TORCH)
    found = find_module(script) if as_module else find_script(script)
    if out is not None:
        require_free(out, 0)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise HolterError("A script is examined in a single process: start it without a launcher.")
    path = (out or new_folder(found.name)).absolute()  # wherever the script goes from here
    own = [path, RUNS.absolute(), *(each for each in writes if each is not None)]
    scratch = Scratch.over(Path.cwd(), Path(found.folder), free=own)
    began: list[Session] = []
    stdout = sys.stdout

    def hand_over(session: "Session") -> int:
        try:
            with contextlib.redirect_stdout(stdout):
                return _hand_over(session, script, path, then, otherwise)
        finally:
            scratch.remove()

    def begin() -> None:
        import torch

        from holter.scripts.recognition.session import Session

        redirect_torch(torch)

        def pause(session: Session) -> None:
            leave(lambda: hand_over(session))

        limits: dict[str, Any] = {"steps": steps, "seconds": seconds, "last": last}
        began.append(Session(path, pause=pause, **limits))

    limit = "to its end" if steps is None else f"for up to {steps} training steps"
    tell(
        f"running {script} {limit} or {seconds:g} s;"
        " files that it writes go to a scratch folder and are deleted"
    )
    with redirected(scratch) as redirect_torch:
        error = _run(found, arguments, begin)
        if isinstance(error, Left):
            return error.outcome()
        if isinstance(error, KeyboardInterrupt):
            tell(f"interrupted while {script} was running; no experiment was run")
            for session in began:
                session.close()
                session.watch.close(error=error)
            scratch.remove()
            return INTERRUPTED
        report_end(error)
        try:
            _require_training(script, began, error)
        finally:
            if not began or began[0].closed:
                scratch.remove()
        try:
            leave(lambda: hand_over(began[0]))
        except Left as left:
            return left.outcome()


def _run(
    found: Script, arguments: Sequence[str], begin: Callable[[], None]
) -> BaseException | None:
    """Run the script, and call `begin` as soon as torch is imported."""
    waiting = AfterTorch(begin)
    if "torch" in sys.modules:
        begin()
    else:
        sys.meta_path.insert(0, waiting)
    with contextlib.redirect_stdout(sys.stderr):
        error = found.run(arguments)
    if waiting in sys.meta_path:
        sys.meta_path.remove(waiting)
    return error


def _hand_over(
    session: "Session",
    script: str,
    path: Path,
    then: Callable[[Recognised], int],
    otherwise: Callable[[NotRecognisedError], int] | None,
) -> int:
    from holter.scripts.recognition.assembling import assemble
    from holter.scripts.recognition.contexts import as_in_training

    with as_in_training(session.autocast):
        try:
            with contextlib.redirect_stdout(sys.stderr):
                found = assemble(session)
        except NotRecognisedError as error:
            if otherwise is None:
                raise
            return otherwise(error)
        except HolterError:
            raise
        except Exception as error:
            refusal = declined(f"{script} could not be analysed: {first_line(error)}.")
            if otherwise is None:
                raise refusal from error
            return otherwise(refusal)
        return then(Recognised(found.setup, _near(path), found.exact, found.notes, found.drawn))


def _require_training(script: str, began: "Sequence[Session]", error: BaseException | None) -> None:
    """A script may break while it trains, but not before."""
    if not began and not isinstance(error, Exception):
        raise declined(
            f"{script} never imported torch: there is no training to examine.", WayOut.NO_TRAINING
        )
    if not isinstance(error, Exception) or (began and began[0].start.kept):
        return
    for session in began:
        session.close()
        session.watch.close(error=error)
    raise HolterError(f"{script} ended with {type(error).__name__} before its first training step.")


def _near(path: Path) -> Path:
    """A path as a person would type it here."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
