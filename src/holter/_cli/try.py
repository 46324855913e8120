"""`holter try`: an active test of a training; preflight is all the quick ones."""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holter._cli.options import add_checking, check_and_report, settings_of
from holter.record.errors import NEEDS_TORCH, HolterError
from holter.record.events import ExperimentsChosen
from holter.record.notices import tell

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from holter.lab.experiments import Experiment
    from holter.lab.setup import Setup
    from holter.record import Run

PREFLIGHT, REPLAY = "preflight", "replay"

EPILOG = """\
examples:
  holter try                                   the list of experiments
  holter try preflight train.py --epochs 3     every quick check, on an unmodified script
  holter try overfit-batch train.py            can the model learn one batch by heart?
  holter try lr-range package.module:setup     on what a function of yours returns
  holter try preflight --only overfit,padding train.py
  holter try overfit-batch --option samples=4 train.py
  holter try preflight --format json train.py
  holter try replay RUN                        a captured failure: its birth, and what cures it

A script is run up to its first training steps, and ends there: its training step is recognised and
repeated on the side. Where it cannot be, the statement is named, and a function does instead:

  def setup():
      return holter.Setup.of(model, optimizer, torch.nn.CrossEntropyLoss(), train_loader)

Whatever an experiment does, weights, optimizer, random numbers and modes are as before afterwards.

exit codes:
  0  nothing of stable rules at or above --fail-on
  1  something was found
  2  wrong use, an error, or a script that cannot be repeated
"""


def add(subparsers: "_SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser; what follows the experiment is parsed when it is known."""
    parser = subparsers.add_parser(
        "try",
        help="an active test: preflight, overfit-batch, lr-range, ...",
        add_help=False,
        prefix_chars="\0",  # options are left to the parser below: they may follow the experiment
    )
    parser.add_argument("words", nargs="*")


def _parse(words: Sequence[str]) -> argparse.Namespace:
    named = bool(words) and not words[0].startswith("-")
    args = _parser().parse_args(words[1:] if named else words)
    args.experiment = words[0] if named else None
    return args


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="holter try",
        description="Makes an experiment with a training, and says what it shows.",
        epilog=EPILOG,
        usage="holter try [EXPERIMENT] [options] [-m] SCRIPT [arguments of the script ...]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "target", nargs="?", metavar="SCRIPT", help="a script, or module:function giving a setup"
    )
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.add_argument("-m", dest="as_module", action="store_true", help="SCRIPT names a module")
    trial = parser.add_argument_group("experiment")
    trial.add_argument(
        "--only",
        action="append",
        metavar="CHECK,...",
        help="of preflight: only these checks, or experiments",
    )
    trial.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="[EXPERIMENT.]NAME=VALUE",
        help="set an option of the experiment; the list shows them",
    )
    trial.add_argument(
        "--steps", type=int, default=150, help="training steps to record first (default: 150)"
    )
    trial.add_argument(
        "--seconds",
        type=float,
        default=20.0,
        help="time after which a script is taken as it is (default: 20)",
    )
    trial.add_argument(
        "--out", type=Path, metavar="RUN", help="folder of the run (default: in ./holter-runs)"
    )
    trial.add_argument("--plot", type=Path, metavar="FILE.png", help="draw what was measured")
    trial.add_argument("--json", action="store_true", help="short for --format json")
    failure = parser.add_argument_group("replay", "`holter try replay RUN`: of a captured failure")
    failure.add_argument(
        "--capture", metavar="STEP", help="which capture of the run (default: the first failure)"
    )
    failure.add_argument(
        "--on", metavar="MODULE:FUNCTION", help="the training, where its script cannot be run again"
    )
    failure.add_argument(
        "--no-ladder", action="store_true", help="only reproduce it and find its birth"
    )
    failure.add_argument(
        "--export", metavar="FILE.py", help="write a script that shows the failure by itself"
    )
    add_checking(parser)
    return parser


def execute(args: argparse.Namespace) -> int:
    """Make the experiment, then check the run it wrote."""
    import importlib.util

    args = _parse(args.words)
    if args.json:
        args.format = "json"
    if importlib.util.find_spec("torch") is None:
        raise HolterError(NEEDS_TORCH)
    if args.experiment is None:
        return _list(as_json=args.format == "json")
    if args.experiment == REPLAY:
        return _replay(args)
    if args.experiment != PREFLIGHT:
        from holter.lab.experiments import named_experiment

        named_experiment(args.experiment)
    if args.target is None:
        raise HolterError(
            f"Say what to try it on: `holter try {args.experiment} train.py`, or module:function."
        )
    options, chosen = _options(args), _chosen(args)
    settings = settings_of(args)
    if args.format == "text" and args.experiment == PREFLIGHT:
        args.format = "checklist"
    from holter.lab.functions import is_function, setup_from
    from holter.record import Run

    def report(path: Path) -> int:
        run = Run.load(path)
        if args.plot is not None:
            _plot(args.experiment, run, args.plot)
        return check_and_report(run, args, settings)

    if is_function(args.target):
        _require_nothing_after(args)
        return report(_on_function(args, setup_from(args.target), chosen, options))
    from holter.scripts.recognition import Recognised, recognise

    def then(found: Recognised) -> int:
        for note in found.notes:
            tell(note)
        _conduct(chosen, found.setup, found.path, options)
        return report(found.path)

    return recognise(
        args.target,
        args.arguments,
        as_module=args.as_module,
        steps=args.steps,
        seconds=args.seconds,
        out=args.out,
        then=then,
    )


def _require_nothing_after(args: argparse.Namespace) -> None:
    if args.arguments:
        raise HolterError(f"{args.arguments[0]} stands after {args.target}: options go before it.")


def _plot(experiment: str, run: "Run", path: Path) -> None:
    import importlib.util

    name = f"holter.reports.plots.{experiment.replace('-', '_')}"
    if importlib.util.find_spec(name) is None:
        raise HolterError(f"There is no picture of {experiment}; lr-range and sharpness have one.")
    importlib.import_module(name).draw(run, path)
    tell(f"drawn to {path}")


def _replay(args: argparse.Namespace) -> int:
    from holter._cli import replaying
    from holter.record import Run

    _require_nothing_after(args)
    settings = settings_of(args)
    return replaying.execute(args, lambda path: check_and_report(Run.load(path), args, settings))


def _on_function(
    args: argparse.Namespace,
    setup: "Setup",
    chosen: "Sequence[Experiment]",
    options: Mapping[str, Any],
) -> Path:
    from holter.lab.recording import record_first_steps
    from holter.record.folders import new_folder, require_free

    path: Path = args.out or new_folder(args.experiment)
    require_free(path, 0)
    record_first_steps(setup, path, args.steps)
    _conduct(chosen, setup, path, options)
    return path


def _conduct(
    chosen: "Sequence[Experiment]", setup: "Setup", path: Path, options: Mapping[str, Any]
) -> None:
    import time

    from holter.lab.lab import Lab
    from holter.lab.running import conduct
    from holter.lab.state import kept

    with kept(setup):
        try:
            batches = [next(setup.endless()) for _ in range(setup.accumulation)]
            began = time.perf_counter()
            setup.step(*batches)
        except Exception as error:
            raise HolterError(
                f"The training step cannot be made: {type(error).__name__}: {error}."
            ) from error
        pace = time.perf_counter() - began
    source = f" of {setup.source}" if setup.source else ""
    many = chosen[0].name if len(chosen) == 1 else f"{len(chosen)} experiments"
    tell(f"{many} on the step{source}, which takes {1e3 * pace:.3g} ms")
    with Lab(path, quiet=False) as lab:
        lab.event(ExperimentsChosen(tuple(each.name for each in chosen)))
        conduct(chosen, setup, lab, options)


def _chosen(args: argparse.Namespace) -> "list[Experiment]":
    from holter.diagnosis.checklist import CHECKS
    from holter.diagnosis.engine import all_rules
    from holter.lab.experiments import all_experiments, named_experiment

    if args.experiment != PREFLIGHT:
        return [named_experiment(args.experiment)]
    quick = [each for each in all_experiments().values() if each.preflight]
    wanted = [part.strip() for each in args.only or () for part in each.split(",")]
    if not wanted:
        return quick
    checks = {check.name: check for check in CHECKS}
    known = {each.name: each for each in quick}
    if unknown := [each for each in wanted if each not in checks and each not in known]:
        every = list(dict.fromkeys([*checks, *known]))
        near = get_close_matches(unknown[0], every, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(every)}."
        raise HolterError(f"There is no check {unknown[0]!r}; {hint}")
    rules = {rule for name in wanted if name in checks for rule in checks[name].rules}
    needed = {signal for rule in rules if rule in all_rules() for signal in all_rules()[rule].needs}
    args.select = [",".join(sorted(rules & set(all_rules())))] if rules else args.select
    return [each for each in quick if each.name in wanted or set(each.emits) & needed]


def _options(args: argparse.Namespace) -> dict[str, dict[str, Any]]:
    from holter.lab.experiments import named_experiment

    found: dict[str, dict[str, Any]] = {}
    for text in args.option:
        target, equals, value = text.partition("=")
        owner, dot, name = target.strip().rpartition(".")
        if not dot:
            owner = args.experiment
        if not equals or not name or owner == PREFLIGHT:
            raise HolterError(f"--option {text}: write NAME=VALUE, as in overfit-batch.samples=4.")
        known = named_experiment(owner).options
        name = name.replace("-", "_")
        if name not in known:
            raise HolterError(
                f"--option {text}: {owner} has no option {name!r};"
                f" it has {', '.join(known) or 'none'}."
            )
        found.setdefault(owner, {})[name] = _cast(text, value.strip(), known[name])
    return found


def _cast(text: str, value: str, default: object) -> object:
    words = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
    try:
        if isinstance(default, bool):
            return words[value.lower()]
        if isinstance(default, int):
            return int(value)
        if default is None or isinstance(default, float):
            return float(value)
    except (ValueError, KeyError):
        kind = "true or false" if isinstance(default, bool) else "a number"
        raise HolterError(f"--option {text}: {value!r} is not {kind}.") from None
    return value


def _list(*, as_json: bool) -> int:
    from holter._cli.terminal import text_width, wants_color
    from holter.lab.experiments import all_experiments
    from holter.reports._lines import Line, hanging, painted

    experiments = all_experiments().values()
    if as_json:
        fields = [
            {"name": e.name, "title": e.title, "preflight": e.preflight, "options": e.options}
            for e in experiments
        ]
        print(json.dumps(fields, indent=2))
        return 0
    width = text_width(sys.stdout)
    lines: list[Line] = []
    for name, does in (
        (PREFLIGHT, "all checks marked + below, in one table"),
        (REPLAY, "a failure that was captured in a run: where it was born, and what cures it"),
    ):
        lines += hanging(does, width=width, lead=((f"  {name:<18}", "bold"),))
    for each in experiments:
        mark = "+" if each.preflight else " "
        lead: Line = ((f"{mark} {each.name:<18}", "bold"),)
        lines += hanging(each.title, width=width, lead=lead)
        if each.options:
            told = ", ".join(f"{name}={value}" for name, value in each.options.items())
            lines += hanging(told, width=width, lead=((" " * 20, ""),), style="dim")
    lines.append((("holter try EXPERIMENT SCRIPT; `holter try --help` tells more", "dim"),))
    sys.stdout.write(painted(lines, color=wants_color(sys.stdout)))
    return 0
