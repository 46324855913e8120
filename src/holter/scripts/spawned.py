"""Processes that a script starts: each that trains is recorded, and becomes a rank of the run."""

import importlib.util
import multiprocessing
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holter.record.errors import HolterError
from holter.record.journal import read_meta, write_meta
from holter.record.meta import Environment, Meta
from holter.record.reader import Run
from holter.record.signals import CATALOGUE
from holter.record.writer import Row, Writer
from holter.scripts.running import AfterTorch

if TYPE_CHECKING:
    from holter.watching.taps import Tap
    from holter.watching.watch import Watch

_NOT_TRAINING = ("multiprocessing", "concurrent", "torch")  # packages with workers of their own
_STARTS_TRAINING = "torch.multiprocessing"


@dataclass(frozen=True, slots=True)
class Recording:
    """How the processes of a run are recorded."""

    folder: Path  # of the run, absolute
    environment: Environment
    options: Mapping[str, Any]  # of a Watch


def tap_processes(recording: Recording, made: Callable[[], None]) -> list["Tap"]:
    """Have processes recorded that are started with `multiprocessing.Process`, if they train.

    `made` is called when a script makes one.
    """
    from holter.watching.taps import Tap

    count = 0

    def around(original: Callable[..., None]) -> Callable[..., None]:
        def begun(
            self: BaseProcess, group: None = None, target: Any = None, *args: Any, **kwargs: Any
        ) -> None:
            nonlocal count
            if target is not None and _may_train(target):
                target = Recorded(target, recording, count)
                count += 1
                made()
            original(self, group, target, *args, **kwargs)

        return begun

    return [Tap(BaseProcess, "__init__", around)]


def _may_train(target: Any) -> bool:
    module = getattr(target, "__module__", None) or ""
    return module.startswith(_STARTS_TRAINING) or module.partition(".")[0] not in _NOT_TRAINING


class Recorded:
    """The target of a process, recorded from the first optimizer or backward in it on."""

    def __init__(self, target: Callable[..., Any], recording: Recording, number: int) -> None:
        self._target, self._recording, self._number = target, recording, number

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the target as the process would without holter."""
        lazy = _Lazy(self._recording, self._number)
        error = None
        try:
            return self._target(*args, **kwargs)
        except BaseException as raised:
            error = _cause(raised)
            raise
        finally:
            lazy.close(error)


def _cause(raised: BaseException) -> BaseException:
    """Return what ended a process: torch.multiprocessing exits after it has written that down."""
    cause = raised.__context__
    return cause if isinstance(raised, SystemExit) and isinstance(cause, Exception) else raised


class _Lazy:
    """A watch that begins when a process begins to train."""

    def __init__(self, recording: Recording, number: int) -> None:
        self._recording, self._number = recording, number
        self._taps: list[Tap] = []
        self._watch: Watch | None = None
        self._after_torch = AfterTorch(self._arm)
        if "torch" in sys.modules:
            self._arm()
        elif importlib.util.find_spec("torch") is not None:
            sys.meta_path.insert(0, self._after_torch)

    def _arm(self) -> None:
        import torch
        from torch.optim import Optimizer

        from holter.watching.taps import Tap

        def backward(original: Callable[..., Any]) -> Callable[..., Any]:
            def began(*args: Any, **kwargs: Any) -> Any:
                self._begin()
                return (torch.autograd.backward if self._watch else original)(*args, **kwargs)

            return began

        def join(original: Callable[..., Any]) -> Callable[..., Any]:
            def joined(optimizer: Optimizer, group: Any) -> Any:
                result = original(optimizer, group)
                self._begin()
                return result

            return joined

        self._taps = [
            Tap(torch.autograd, "backward", backward),
            Tap(Optimizer, "add_param_group", join),
        ]

    def _begin(self) -> None:
        taps, self._taps = self._taps, []
        if not taps:
            return
        for tap in taps:
            tap.remove()
        try:
            self._watch = _watch(self._recording, self._number)
        except Exception as error:
            from holter.record.notices import tell

            tell(f"worker {self._number} is not recorded ({error!r}); it keeps running.")

    def close(self, error: BaseException | None) -> None:
        if self._after_torch in sys.meta_path:
            sys.meta_path.remove(self._after_torch)
        for tap in self._taps:
            tap.remove()
        if self._watch is not None:
            self._watch.close(error=error)


def _watch(recording: Recording, number: int) -> "Watch":
    from holter.scripts.discovery import Discovery
    from holter.watching.recorder import Recorder
    from holter.watching.watch import Watch

    folder = recording.folder / f"worker-{number}"
    recorder = Recorder(folder, rank=0, environment=recording.environment)
    watch = Watch(recorder, announce=False, **recording.options)
    Discovery(watch).catch_up()
    return watch


@dataclass(frozen=True, slots=True)
class Workers:
    """Recordings of the processes that a script has started, in the order it made them."""

    folders: tuple[Path, ...]
    are_running: bool = False

    @classmethod
    def of(cls, run: Path) -> "Workers":
        """Return those in the folder of a run that trained; remove the others."""
        running = [child for child in multiprocessing.active_children() if not child.daemon]
        trained = []
        for folder in sorted(run.glob("worker-*"), key=lambda path: int(path.name[7:])):
            if _steps(folder) or running:
                trained.append(folder)
            else:
                shutil.rmtree(folder, ignore_errors=True)
        return cls(tuple(trained), bool(trained and running))

    @property
    def note(self) -> str:
        """Say where the recordings are."""
        where = ", ".join(map(str, self.folders))
        still = "; they were still running when the script ended" if self.are_running else ""
        return f"Processes started by the script were also recorded, in {where}{still}."

    def promote(self, run: Path) -> None:
        """Make each of them a rank of the run, whose own process recorded nothing."""
        notes = Meta.of(read_meta(run)).notes
        if len(self.folders) > 1:
            others = f"for another: holter check {run} --rank 1"
            notes += (f"{len(self.folders)} processes trained. This is the first; {others}",)
        shutil.rmtree(run / "rank-0", ignore_errors=True)
        for rank, folder in enumerate(self.folders):
            (folder / "rank-0").rename(run / f"rank-{rank}")
            meta = Meta.of(read_meta(folder))
            if rank:
                write_meta(run / f"rank-{rank}", meta.to_json())
            else:
                write_meta(run, replace(meta, notes=(*notes, *meta.notes)).to_json())
            for capture in sorted(folder.glob("captures/*")):
                (run / "captures").mkdir(exist_ok=True)
                name = f"{capture.name}-rank-{rank}" if rank else capture.name
                capture.rename(run / "captures" / name)
            shutil.rmtree(folder, ignore_errors=True)


def append_evaluation(run: Path, rows: Sequence[Row]) -> None:
    """Add what another process evaluated after the training to the last step of a run."""
    last = Run.load(run).steps - 1
    writer = Writer(run, status=Meta.of(read_meta(run)).status, resume=True)
    for name, owners, values in rows:
        writer.write(CATALOGUE[name].stream, last, [(name, owners, values)])
    writer.close()


def _steps(folder: Path) -> int:
    try:
        return Run.load(folder).steps
    except HolterError:
        return 0
