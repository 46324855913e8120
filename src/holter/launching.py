"""`holter run`: runs an unmodified script and finds by itself what there is to watch."""

import gc
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import types
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from holter import environment
from holter.errors import NEEDS_TORCH, HolterError
from holter.notices import tell

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

    from holter.watching import Watch

_HERE = str(Path(__file__).parent)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a script ended; `path` is None where it never imported torch."""

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
    sample_every: int = 10,
) -> Outcome:
    """Run a script as `python script arguments` would, recording what it trains.

    Exit code, output and traceback are the script's own. Torch is not imported before the script
    imports it: what the script sets in its environment first still counts.
    """
    if importlib.util.find_spec("torch") is None:
        raise HolterError(NEEDS_TORCH)
    code, main = _module(script) if as_module else _script(script)
    name = script.rpartition(".")[2] if as_module else Path(script).stem
    began: list[Watch] = []

    def start() -> None:
        began.append(_begin(name, out, resume=resume, sample_every=sample_every))

    sys.argv = [main.__file__ or script, *arguments]
    sys.path[0] = str(Path.cwd()) if as_module else str(Path(script).resolve().parent)
    sys.modules["__main__"] = main
    waiting = _AfterTorch(start)
    if "torch" in sys.modules:
        start()
    else:
        sys.meta_path.insert(0, waiting)
    error: BaseException | None = None
    try:
        exec(code, main.__dict__)  # noqa: S102  (running the script is the point)
    except BaseException as raised:  # whatever ends a script, the run is closed
        error = raised
    finally:
        if waiting in sys.meta_path:
            sys.meta_path.remove(waiting)
    exit_code = _exit_code(error)
    if not began:
        tell(f"{script} never imported torch: there was nothing to record.")
        return Outcome(exit_code, None, interrupted=isinstance(error, KeyboardInterrupt))
    watch = began[0]
    if watch.steps == 0:
        watch.note(
            "No optimizer.step() was seen. Training in processes that the script starts itself is"
            " not seen: launch it with `torchrun -m holter run` instead."
        )
    watch.close(error=error)
    interrupted = isinstance(error, KeyboardInterrupt)
    return Outcome(exit_code, watch.path, watch.steps, interrupted)


def _begin(name: str, out: Path | None, *, resume: bool, sample_every: int) -> "Watch":
    from holter.recording import Recorder
    from holter.run.folders import new_folder
    from holter.watching import Watch

    rank = int(os.environ.get("RANK", "0"))
    recorder = Recorder(
        out or new_folder(name), rank=rank, meta=environment.describe(), resume=resume
    )
    watch = Watch(recorder, sample_every=sample_every, announce=rank == 0)
    Discovery(watch)
    return watch


class Discovery:
    """Finds the optimizers of a script, and the models they train, and puts a watch on them."""

    def __init__(self, watch: "Watch") -> None:
        self._watch = watch
        self._waiting: weakref.WeakSet[Optimizer] = weakref.WeakSet()
        self._unsettled: weakref.WeakSet[Optimizer] = weakref.WeakSet()
        watch.send(self)

    def optimizer_made(self, optimizer: "Optimizer") -> None:
        """Keep an optimizer in mind until there is something to train."""
        self._waiting.add(optimizer)

    def before_backward(self) -> None:
        """Watch all optimizers made so far, and the models that hold their parameters."""
        if not self._waiting:
            return
        optimizers = list(self._waiting)
        self._waiting.clear()
        self._unsettled.update(optimizers)
        self._watch.add(_holding(_parameters_of(optimizers), live_models()), optimizers)

    def before_step(self, optimizer: "Optimizer") -> None:
        """By now every optimizer is known, and who gets gradients can be seen."""
        if self._watch.roster.subject_of(optimizer) is None:
            self._waiting.add(optimizer)
        self.before_backward()
        if optimizer in self._unsettled:
            self._unsettled.discard(optimizer)
            self._look_for_the_trained_model(optimizer)

    def _look_for_the_trained_model(self, optimizer: "Optimizer") -> None:
        """If an optimizer's parameters are in no model or get no gradient, find who does get one.

        Then the model was made anew or replaced after the optimizer was built.
        """
        parameters = [each for group in optimizer.param_groups for each in group["params"]]
        inside = {id(p) for m in self._watch.roster.models for p in m.module.parameters()}
        astray = [p for p in parameters if id(p) not in inside and p.grad is None]
        if not astray and any(each.grad is not None for each in parameters):
            return
        trained = [
            module
            for module in live_models()
            if any(each.grad is not None for each in module.parameters())
            and not any(id(each) in inside for each in module.parameters())
        ]
        if trained:
            self._watch.add(trained, [])


def live_models() -> "list[nn.Module]":
    """Every module with parameters that is part of no other module."""
    from torch import nn

    # By type and not by isinstance: that would wake the proxies some libraries leave around.
    modules: list[nn.Module] = [
        each
        for each in gc.get_objects()
        if issubclass(type(each), nn.Module) and "_modules" in each.__dict__
    ]
    parts = {id(part) for module in modules for part in module.children()}
    whole = [each for each in modules if id(each) not in parts]
    return [each for each in whole if next(each.parameters(), None) is not None]


def _holding(parameters: set[int], modules: "Sequence[nn.Module]") -> "list[nn.Module]":
    """The fewest modules that hold all of `parameters` that any holds, the largest share first."""
    shares = [({id(p) for p in module.parameters()} & parameters, module) for module in modules]
    chosen: list[nn.Module] = []
    covered: set[int] = set()
    for share, module in sorted(shares, key=lambda each: -len(each[0])):
        if share - covered:
            chosen.append(module)
            covered |= share
    # In the order in which they were made, which is how a reader of the script knows them.
    return [module for module in modules if module in chosen]


def _parameters_of(optimizers: "Sequence[Optimizer]") -> set[int]:
    return {
        id(each)
        for optimizer in optimizers
        for group in optimizer.param_groups
        for each in group["params"]
    }


class _AfterTorch(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Calls `then` once, right after torch has been imported."""

    def __init__(self, then: Callable[[], None]) -> None:
        self._then = then

    def find_spec(
        self,
        fullname: str,
        path: object = None,  # noqa: ARG002  (the protocol's)
        target: object = None,  # noqa: ARG002
    ) -> importlib.machinery.ModuleSpec | None:
        """Take over the import of torch, and of nothing else."""
        if fullname != "torch" or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec("torch")
        if spec is None or spec.loader is None:
            return None
        self._loader = spec.loader
        spec.loader = self
        return spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        """Leave it to torch's own loader."""
        return self._loader.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        """Import torch as ever, then begin."""
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._then()


def _script(script: str) -> tuple[types.CodeType, types.ModuleType]:
    """A script's code, and the `__main__` it runs in."""
    path = Path(script)
    if path.is_dir():
        path /= "__main__.py"
    try:
        source = path.read_bytes()
    except OSError as error:
        raise HolterError(
            f"Cannot read {script} ({error.strerror}); usage: holter run train.py [arguments]."
        ) from error
    main = types.ModuleType("__main__")
    main.__file__ = script
    main.__dict__["__builtins__"] = __builtins__
    return _compiled(source, script), main


def _module(name: str) -> tuple[types.CodeType, types.ModuleType]:
    """The same for a module given by name, as with `python -m`."""
    sys.path.insert(0, str(Path.cwd()))
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except ImportError:
        spec = None
    finally:
        del sys.path[0]
    if (
        spec is None
        or spec.origin is None
        or not isinstance(spec.loader, importlib.abc.SourceLoader)
    ):
        raise HolterError(f"There is no module {name} to run from {Path.cwd()}.")
    main = types.ModuleType("__main__")
    main.__file__, main.__spec__, main.__package__ = spec.origin, spec, spec.parent
    main.__loader__ = spec.loader
    main.__dict__["__builtins__"] = __builtins__
    return _compiled(Path(spec.origin).read_bytes(), spec.origin), main


def _compiled(source: bytes, name: str) -> types.CodeType:
    try:
        return compile(source, name, "exec", dont_inherit=True)
    except SyntaxError as error:
        raise HolterError(
            f"{name} has a syntax error in line {error.lineno}: {error.msg}."
        ) from None


def _exit_code(error: BaseException | None) -> int:
    """Report how the script ended, as Python would; what the shell is to see."""
    if error is None:
        return 0
    if isinstance(error, SystemExit):
        if error.code is None or isinstance(error.code, int):
            return error.code or 0
        sys.stderr.write(f"{error.code}\n")
        return 1
    error.__traceback__ = _without_us(error.__traceback__)
    sys.stdout.flush()
    sys.excepthook(type(error), error, error.__traceback__)
    return 130 if isinstance(error, KeyboardInterrupt) else 1


def _without_us(trace: types.TracebackType | None) -> types.TracebackType | None:
    """The traceback without holter's own frames, which are no part of the script."""
    if trace is None:
        return None
    rest = _without_us(trace.tb_next)
    if trace.tb_frame.f_code.co_filename.startswith(_HERE):
        return rest
    trace.tb_next = rest
    return trace
