"""`holter try`: run an experiment on a training; `preflight` runs all quick ones."""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holter._cli.options import check_and_report, settings_of
from holter._cli.parsing import parse
from holter._cli.script_arguments import tell_passed_on
from holter._cli.shares import hand_out, is_shared, lab_of
from holter._cli.try_options import EVALUATED_SECONDS, SECONDS, STEPS, parser_of
from holter._cli.values import cast, is_function, is_run, kind
from holter._cli.workers import require_one_process
from holter.record.errors import NEEDS_TORCH, HolterError
from holter.record.events import ExperimentsChosen
from holter.record.notices import tell

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from holter.lab.experiments import Experiment
    from holter.lab.setup import Setup
    from holter.lab.writing import Lab
    from holter.record import Run

PREFLIGHT, REPLAY, CURES = "preflight", "replay", "cures"
EVALUATE, DATA, LR_RANGE = "evaluate", "data", "lr-range"


def add(subparsers: "_SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser; its own arguments are parsed in `execute`."""
    parser = subparsers.add_parser(
        "try",
        help="run an experiment: preflight, overfit-batch, lr-range, ...",
        add_help=False,
        prefix_chars="\0",  # leave options to the parser below: they may follow the experiment
    )
    parser.add_argument("words", nargs="*")


def _parse(words: Sequence[str]) -> argparse.Namespace:
    named = bool(words) and not words[0].startswith("-")
    rest = words[1:] if named else words
    experiment = words[0] if named else None
    args = parse(parser_of(script=True), rest)
    if args.target is not None and not _is_script(experiment, args):
        args = parse(parser_of(script=False), rest)
    args.experiment = experiment
    args.words = list(words[1:])  # for an experiment that starts itself again
    return args


def _is_script(experiment: str | None, args: argparse.Namespace) -> bool:
    """Whether what follows the target are its own arguments."""
    is_other = experiment == REPLAY or is_function(args.target) or is_run(args.target)
    return args.as_module or not is_other


def execute(args: argparse.Namespace) -> int:
    """Run the experiment, then check the run it recorded."""
    import importlib.util
    import time

    began = time.perf_counter()
    args = _parse(args.words)
    if importlib.util.find_spec("torch") is None:
        raise HolterError(NEEDS_TORCH)
    if args.experiment is None:
        return _list(as_json=args.format == "json")
    if args.experiment == REPLAY:
        return _replay(args)
    if args.target is not None and args.share is None and args.elsewhere is None:
        tell_passed_on(args.target, args, as_module=args.as_module)
    if args.experiment == CURES and args.target is not None:
        return _cures(args)
    if args.experiment not in (PREFLIGHT, CURES):
        from holter.lab.experiments import named_experiment

        named_experiment(args.experiment)
    if args.target is None:
        raise HolterError(
            f"Name a script: `holter try {args.experiment} train.py`, or module:function."
        )
    if args.experiment == LR_RANGE and is_shared(args):
        return _share_sweeps(args)
    if args.experiment != LR_RANGE:
        require_one_process(args, "only cures, lr-range and replay run on workers.")
    options, chosen = _options(args), _chosen(args)
    settings = settings_of(args)
    if args.format == "text" and args.experiment == PREFLIGHT:
        args.format = "checklist"
    from holter.lab.setup_functions import setup_from
    from holter.record import Run

    def report(path: Path) -> int:
        run = Run.load(path)
        if args.share is not None:
            return 0
        if args.plot is not None:
            _plot(args.experiment, run, args.plot)
        return check_and_report(run, args, settings)

    if is_function(args.target):
        return report(_on_function(args, setup_from(args.target), chosen, options, began))
    from holter.scripts.recognition import Recognised, recognise

    def then(recognised: Recognised) -> int:
        for note in recognised.notes:
            tell(note)
        _conduct(chosen, recognised.setup, lab_of(args, recognised.path), options, began)
        return report(recognised.path)

    is_whole = args.experiment == EVALUATE  # its trained model is evaluated
    steps, seconds = (None, EVALUATED_SECONDS) if is_whole else (STEPS, SECONDS)
    return recognise(
        args.target,
        args.arguments,
        as_module=args.as_module,
        steps=steps if args.steps is None else args.steps,
        seconds=seconds if args.seconds is None else args.seconds,
        out=args.out,
        then=then,
        writes=(args.plot, args.output),
    )


def _share_sweeps(args: argparse.Namespace) -> int:
    """Hand out the sweeps of a range test, one to a process, then put them together."""
    from holter.lab.experiments import named_experiment
    from holter.record.folders import new_folder, require_free

    options = _options(args).get(LR_RANGE, {})
    count = {**named_experiment(LR_RANGE).options, **options}["repeats"]
    folder: Path = args.out or new_folder(LR_RANGE)
    require_free(folder, 0)
    numbers = {"--steps": args.steps, "--seconds": args.seconds, "--repeats": count}
    words = [w for name, value in numbers.items() if value is not None for w in (name, str(value))]
    words += [word for option in args.option for word in ("--option", option)]
    words += ["-m"] if args.as_module else []
    return hand_out(args, folder, [*words, args.target, *args.arguments], count)


def _plot(experiment: str, run: "Run", path: Path) -> None:
    import importlib.util

    name = f"holter.reports.plots.{experiment.replace('-', '_')}"
    if importlib.util.find_spec(name) is None:
        raise HolterError(f"{experiment} has no plot; lr-range and sharpness have one.")
    importlib.import_module(name).draw(run, path)
    tell(f"plot written to {path}")


def _replay(args: argparse.Namespace) -> int:
    from holter._cli import replaying
    from holter.record import Run

    settings = settings_of(args)

    def report(path: Path) -> int:
        return 0 if args.share is not None else check_and_report(Run.load(path), args, settings)

    return replaying.execute(args, report)


def _cures(args: argparse.Namespace) -> int:
    from holter._cli import curing
    from holter.record import Run

    settings = settings_of(args)
    return curing.execute(args, lambda path: check_and_report(Run.load(path), args, settings))


def _on_function(
    args: argparse.Namespace,
    setup: "Setup",
    chosen: "Sequence[Experiment]",
    options: Mapping[str, Any],
    began: float,
) -> Path:
    from holter.lab.first_steps import record_first_steps
    from holter.record.folders import new_folder, require_free

    path: Path = args.out or new_folder(args.experiment)
    require_free(path, 0)
    record_first_steps(setup, path, STEPS if args.steps is None else args.steps)
    _conduct(chosen, setup, lab_of(args, path), options, began)
    return path


def _conduct(
    chosen: "Sequence[Experiment]",
    setup: "Setup",
    lab: "Lab",
    options: Mapping[str, Any],
    began: float,
) -> None:
    import time

    from holter.lab.running import conduct
    from holter.lab.state import kept

    with kept(setup):
        try:
            batches = [next(setup.endless()) for _ in range(setup.accumulation)]
            step_began = time.perf_counter()
            setup.step(*batches)
        except Exception as error:
            raise HolterError(
                f"The training step failed: {type(error).__name__}: {error}."
            ) from error
        pace = time.perf_counter() - step_began
    source = f" of {setup.source}" if setup.source else ""
    many = chosen[0].name if len(chosen) == 1 else f"{len(chosen)} experiments"
    tell(f"running {many} on the training step{source} ({1e3 * pace:.3g} ms per step)")
    with lab:
        names = tuple(experiment.name for experiment in chosen)
        lab.event(ExperimentsChosen(names, time.perf_counter() - began))
        conduct(chosen, setup, lab, options)


def _chosen(args: argparse.Namespace) -> "list[Experiment]":
    from holter.diagnosis.checklist import CHECKS
    from holter.diagnosis.engine import all_rules
    from holter.lab.experiments import all_experiments, named_experiment

    if args.experiment != PREFLIGHT:
        return [named_experiment(args.experiment)]
    quick = [experiment for experiment in all_experiments().values() if experiment.preflight]
    wanted = [name.strip() for text in args.only or () for name in text.split(",")]
    if not wanted:
        return quick
    checks = {check.name: check for check in CHECKS}
    experiments = {experiment.name: experiment for experiment in quick}
    if unknown := [name for name in wanted if name not in checks and name not in experiments]:
        every = list(dict.fromkeys([*checks, *experiments]))
        near = get_close_matches(unknown[0], every, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(every)}."
        raise HolterError(f"There is no check {unknown[0]!r}; {hint}")
    rules = {rule for name in wanted if name in checks for rule in checks[name].rules}
    needed = {signal for rule in rules if rule in all_rules() for signal in all_rules()[rule].needs}
    args.select = [",".join(sorted(rules & set(all_rules())))] if rules else args.select
    return [
        experiment
        for experiment in quick
        if experiment.name in wanted or set(experiment.emits) & needed
    ]


def _options(args: argparse.Namespace) -> dict[str, dict[str, Any]]:
    from holter.lab.experiments import named_experiment

    asked = {"slice": args.slice, "worst": args.worst, "labels": args.labels or None}
    given = {name: value for name, value in asked.items() if value is not None}
    if given and args.experiment != EVALUATE:
        raise HolterError(f"--{next(iter(given))} is an option of `holter try evaluate` only.")
    options: dict[str, dict[str, Any]] = {EVALUATE: given} if given else {}
    if args.repeats is not None:
        if args.experiment != LR_RANGE:
            raise HolterError("--repeats is an option of `holter try lr-range` only.")
        options[LR_RANGE] = {"repeats": args.repeats}
    if args.samples is not None:
        if args.experiment not in (PREFLIGHT, DATA):
            raise HolterError("--samples is an option of `holter try data` and preflight only.")
        options[DATA] = {"shown": args.samples}
    for text in args.option:
        target, equals, value = text.partition("=")
        owner, dot, name = target.strip().rpartition(".")
        if not dot:
            owner = args.experiment
        if not equals or not name or owner == PREFLIGHT:
            raise HolterError(
                f"--option {text}: write NAME=VALUE, for example overfit-batch.samples=4."
            )
        defaults = named_experiment(owner).options
        name = name.replace("-", "_")
        if name not in defaults:
            raise HolterError(
                f"--option {text}: {owner} has no option {name!r};"
                f" it has {', '.join(defaults) or 'none'}."
            )
        try:
            options.setdefault(owner, {})[name] = cast(value.strip(), defaults[name])
        except ValueError:
            raise HolterError(
                f"--option {text}: {value.strip()!r} is not {kind(defaults[name])}."
            ) from None
    return options


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
        (PREFLIGHT, "all experiments marked + below, as a checklist"),
        (REPLAY, "replay a captured failure: find its origin, and what cures it"),
        (CURES, "repeat a failed training under one change at a time: what restores learning?"),
    ):
        lines += hanging(does, width=width, lead=((f"  {name:<18}", "bold"),))
    for experiment in experiments:
        mark = "+" if experiment.preflight else " "
        lead: Line = ((f"{mark} {experiment.name:<18}", "bold"),)
        lines += hanging(experiment.title, width=width, lead=lead)
        if experiment.options:
            options = ", ".join(f"{name}={value}" for name, value in experiment.options.items())
            lines += hanging(options, width=width, lead=((" " * 20, ""),), style="dim")
    lines.append((("usage: holter try EXPERIMENT SCRIPT; details: holter try --help", "dim"),))
    sys.stdout.write(painted(lines, color=wants_color(sys.stdout)))
    return 0
