"""`holter seeds`: run a script with several seeds, and compare variants beyond noise."""

import argparse
import shlex
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from holter._cli.script_arguments import PassedOn, tell_passed_on
from holter._cli.values import positive_whole
from holter._cli.workers import add_workers, workers_of
from holter.record.errors import HolterError
from holter.record.notices import tell

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from holter.diagnosis.comparing.seeds import Metric
    from holter.scripts.sweeps.plan import Sweep

EPILOG = """\
examples:
  holter seeds --n 5 -- python train.py --epochs 3
  holter seeds --n 5 --vary lr=0.1,0.3 -- python train.py --lr {lr}
  holter seeds --n 5 --against "python train.py --no-aug" -- python train.py
  holter seeds --n 8 -j 4 --metric val.accuracy --plot seeds.png -- python train.py
  holter seeds --n 8 --devices 0,1,2,3 -- python train.py       one GPU for each run
  holter seeds --n 20 --on ray -- python train.py               on a Ray cluster
  holter seeds --out SWEEP                                      continue a sweep, or show it again

`{seed}` in the command is replaced by the seed: `-- python train.py --seed {seed}`. Without it,
holter shifts the seeds that the script sets: the numbers passed to torch.manual_seed, random.seed,
numpy.random.seed and numpy.random.default_rng. Seed 0 leaves them unchanged. Seeds of a
torch.Generator, and seeds set in other processes, are not shifted.

Every run is an ordinary run in SWEEP/VARIANT/seed-N: `holter check`, `holter diff` and
`holter try cures` accept it. An interrupted sweep continues with the same command or with --out
SWEEP: finished runs are not repeated, lost ones start again. Ctrl-C keeps finished runs.

The first variant is the baseline. "Beyond noise" means that the interval of the difference of the
means (Welch's t, 95 %, corrected for the number of comparisons) excludes 0.

exit codes: 0 every run has a value, 1 some run has none, 2 usage error or failure.
"""


def add(subparsers: "_SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "seeds",
        help="run a script with several seeds: mean, intervals, whether A beats B beyond noise",
        description="Run a training script with several seeds, here or on a Ray cluster, and report"
        "\nmean, standard deviation and intervals, and whether a variant is better beyond noise.",
        epilog=EPILOG,
        usage="holter seeds [options] -- python SCRIPT [script arguments ...]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(advice="the command and its arguments follow `--`: -- python train.py")
    parser.add_argument(
        "words",
        nargs="*",
        action=PassedOn,
        metavar="COMMAND",
        help="python, a script, arguments",
    )
    runs = parser.add_argument_group("runs")
    runs.add_argument("--n", type=positive_whole, default=5, help="number of seeds (default: 5)")
    runs.add_argument(
        "--vary",
        action="append",
        default=[],
        metavar="NAME=VALUE,...",
        help="run one variant for each value of {NAME} in the command; may be repeated",
    )
    runs.add_argument("--against", metavar="COMMAND", help="another command to compare with")
    runs.add_argument(
        "--out", type=Path, metavar="SWEEP", help="folder (default: a new one in ./holter-runs)"
    )
    add_workers(runs, "runs")
    result = parser.add_argument_group("result")
    result.add_argument(
        "--metric",
        metavar="SIGNAL",
        help="signal to compare, for example val.accuracy (default: the validation loss, or else"
        " the training loss at the end)",
    )
    result.add_argument("--owner", help="owner of the signal, if there are several")
    result.add_argument(
        "--best",
        action="store_true",
        help="compare the best reading of each run instead of the last",
    )
    result.add_argument(
        "--higher", action="store_true", help="higher is better (default for accuracies)"
    )
    result.add_argument("--plot", type=Path, metavar="FILE.png", help="also write a plot")
    result.add_argument("--json", action="store_true", help="for programs")


def execute(args: argparse.Namespace) -> int:
    """Run what is missing of the sweep, then report it."""
    from holter.diagnosis.comparing.seeds import Metric

    metric = Metric.parse(args.metric, args.owner, best=args.best, higher=args.higher)
    sweep = _sweep(args)
    with sweep.locked():
        sweep.save()
        try:
            _run(args, sweep)
        except KeyboardInterrupt:
            done = _report(args, sweep, metric)[1]
            tell(f"interrupted; {done} runs are kept. Continue: holter seeds --out {sweep.folder}")
            raise
        complete, _ = _report(args, sweep, metric)
    tell(f"runs are in {sweep.folder}")
    return 0 if complete else 1


def _sweep(args: argparse.Namespace) -> "Sweep":
    from holter.record.folders import new_folder
    from holter.scripts.sweeps.plan import PLAN, Sweep, script_of, variants_of

    if not args.words:
        if args.out is None or not (args.out / PLAN).exists():
            raise HolterError("Give a command: `holter seeds --n 5 -- python train.py`.")
        return Sweep.load(args.out)
    variants = variants_of(args.words, _varied(args.vary), args.against)
    own = script_of(args.words)
    as_module = own[0] == "-m"
    tell_passed_on(own[int(as_module)], args, as_module=as_module)
    folder = args.out or new_folder("seeds")
    return Sweep(folder, variants, tuple(range(args.n)))


def _varied(given: Sequence[str]) -> dict[str, list[str]]:
    varied = {}
    for text in given:
        name, equals, values = text.partition("=")
        if not equals or not name.isidentifier() or not all(values.split(",")):
            raise HolterError(f"--vary {text}: write NAME=VALUE,VALUE, for example lr=0.1,0.3.")
        varied[name] = values.split(",")
    return varied


def _run(args: argparse.Namespace, sweep: "Sweep") -> None:
    """Run the jobs that are not finished."""
    from holter.scripts.sweeps.tasks import State, last_line

    tasks = [job.task for job in sweep.jobs]
    missing = [task for task in tasks if task.state() is not State.FINISHED]
    if not missing:
        return
    ended, began = len(tasks) - len(missing), time.monotonic()
    if ended:
        tell(f"{ended} of {len(tasks)} runs are finished already")
    with workers_of(args, sweep.folder) as workers, closing(workers.run(missing)) as running:
        for number, (task, state) in enumerate(running, ended + 1):
            taken = time.monotonic() - began
            why = "" if state is State.FINISHED else f": {last_line(task.log)}"
            tell(f"[{number}/{len(tasks)}] {task.name} {state}{why} ({taken:.0f} s)")


def _report(args: argparse.Namespace, sweep: "Sweep", metric: "Metric") -> tuple[bool, int]:
    """Print the sweep; return whether every run has a value, and how many have."""
    from holter._cli.terminal import text_width, wants_color
    from holter.diagnosis.comparing.seeds import report
    from holter.reports.comparisons import seeds

    commands = {variant.name: shlex.join(variant.words) for variant in sweep.variants}
    made = report(commands, sweep.runs(), metric)
    if args.plot is not None:
        from holter.reports.plots import seeds as plot

        plot.draw(made, args.plot)
        tell(f"plot written to {args.plot}")
    if args.json:
        sys.stdout.write(seeds.render_json(made))
    else:
        sys.stdout.write(
            seeds.render(made, width=text_width(sys.stdout), color=wants_color(sys.stdout))
        )
    values = sum(len(each.readings) - len(each.missing) for each in made.variants)
    return made.is_complete, values
