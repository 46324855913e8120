"""The IPython extension: `%load_ext holter`, then `%%holter` above a cell that trains."""

import html
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.core.magic import Magics, line_cell_magic, line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import display

from holter.diagnosis.engine import Checkup, check
from holter.imports import open_run
from holter.record import Run, environment
from holter.record.errors import NEEDS_TORCH, HolterError
from holter.record.folders import new_folder, newest_run
from holter.reports import text

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_BOX = (
    "border:1px solid currentColor;border-radius:4px;padding:0.6em 1em;white-space:pre-wrap;"
    "font-family:monospace;line-height:1.35"
)


class CheckupView:
    """A checkup as a notebook shows it; `run` and `checkup` are there to go on with."""

    def __init__(self, run: Run, *, whole: bool = False) -> None:
        self.run = run
        self.checkup: Checkup = check(run)
        self._whole = whole

    def __repr__(self) -> str:
        return text.render(self.run, self.checkup, whole=self._whole).rstrip()

    def _repr_html_(self) -> str:
        first, _, rest = repr(self).partition("\n")
        return f'<div style="{_BOX}"><b>{html.escape(first)}</b>\n{html.escape(rest)}</div>'


@magics_class
class HolterMagics(Magics):
    """The magics `%holter`, `%%holter` and `%holter_try`."""

    @magic_arguments()
    @argument("path", nargs="?", help="run or log to check (default: the newest run)")
    @argument("--out", help="folder of the new run (default: a new one in holter-runs)")
    @argument("--all", action="store_true", help="show everything that was measured")
    @line_cell_magic
    def holter(self, line: str, cell: str | None = None) -> CheckupView | None:
        """Check a run or a log; with a cell, watch the training in the cell and check it."""
        args = parse_argstring(self.holter, line)
        try:
            if cell is None:
                return CheckupView(open_run(args.path or newest_run()), whole=args.all)
            folder = _recorded(self.shell, cell, args.out)
            display(CheckupView(Run.load(folder), whole=args.all))
        except HolterError as error:
            print(f"holter: {error}")  # noqa: T201  (the output of a cell)
        return None

    @magic_arguments()
    @argument("experiment", help="name of an experiment; `holter try` lists them")
    @argument("setup", help="variable or expression that is a holter.Setup")
    @argument("options", nargs="*", help="options of the experiment: NAME=VALUE")
    @line_magic
    def holter_try(self, line: str) -> CheckupView | None:
        """Run an experiment on a setup, with its progress, and show what it found."""
        args = parse_argstring(self.holter_try, line)
        try:
            return CheckupView(_tried(self.shell, args.experiment, args.setup, args.options))
        except HolterError as error:
            print(f"holter: {error}")  # noqa: T201
        return None


def load_ipython_extension(shell: "InteractiveShell") -> None:
    """Register the magics; IPython calls it on `%load_ext holter`."""
    shell.register_magics(HolterMagics)


def _recorded(shell: Any, cell: str, out: str | None) -> Path:
    """Run a cell as it is, and record what it trains."""
    try:
        from holter.scripts.discovery import Discovery
        from holter.watching.recorder import Recorder
        from holter.watching.watch import Watch
    except ModuleNotFoundError as error:
        raise HolterError(NEEDS_TORCH) from error
    folder = Path(out) if out is not None else new_folder("notebook")
    recorder = Recorder(folder, rank=0, environment=environment.describe())
    watch = Watch(recorder, announce=False)
    Discovery(watch)
    done = None
    try:
        done = shell.run_cell(cell)
    finally:
        raised = None if done is None else done.error_before_exec or done.error_in_exec
        watch.close(error=raised)
    return folder


def _tried(shell: Any, name: str, variable: str, assignments: list[str]) -> Run:
    from holter.lab.experiments import named_experiment
    from holter.lab.running import run
    from holter.lab.setup import Setup

    setup = shell.ev(variable)
    if not isinstance(setup, Setup):
        raise HolterError(f"{variable} is a {type(setup).__name__}, not a holter.Setup.")
    defaults = named_experiment(name).options
    options = {}
    for assignment in assignments:
        option, _, value = assignment.partition("=")
        if option not in defaults:
            raise HolterError(f"{name} has no option {option!r}; it has {', '.join(defaults)}.")
        try:
            options[option] = type(defaults[option])(value)
        except ValueError:
            raise HolterError(
                f"{assignment}: {value!r} is not of type {type(defaults[option]).__name__}."
            ) from None
    return run(name, setup, quiet=False, **options)
