"""The options of `holter try`."""

import argparse
from pathlib import Path

from holter._cli.options import add_checking
from holter._cli.script_arguments import add_script_arguments
from holter._cli.values import positive, positive_whole
from holter._cli.workers import add_workers

STEPS, SECONDS = 150, 20.0  # of a script before an experiment
EVALUATED_SECONDS = 300.0  # of a script whose trained model is evaluated

EPILOG = """\
examples:
  holter try                                   list the experiments
  holter try preflight train.py --epochs 3     all quick checks, on an unmodified script
  holter try overfit-batch train.py            can the model memorise one batch?
  holter try lr-range package.module:setup     on a setup that a function returns
  holter try preflight --only overfit,padding train.py
  holter try overfit-batch --option samples=4 train.py
  holter try preflight --format json train.py
  holter try evaluate --worst 20 train.py      on which validation samples is the model wrong?
  holter try replay RUN                        replay a captured failure: its origin and its cure
  holter try replay RUN --export repro.py --synthetic
  holter try cures train.py                    which change makes a failed training learn?
  holter try cures RUN                         the same on a recorded run, or continue
  holter try cures --on ray train.py           trials on a Ray cluster
  holter try lr-range --repeats 8 -j 4 train.py

The script runs unmodified up to its first training steps (--steps, --seconds) and stops there. It
reads its data and may download files or start other programs; files that it writes, renames or
removes go to a scratch folder, which is deleted at the end; your own files do not change. Not
redirected: temporary files, ~/.cache, programs that the script starts, and libraries that write
files from native code, such as HDF5.

holter extracts the training step and runs experiments on a copy. If the step cannot be extracted,
holter names the statement that prevents it; pass a setup function instead:

  def setup():
      return holter.Setup.of(model, optimizer, torch.nn.CrossEntropyLoss(), train_loader)

Every experiment restores weights, optimizer state, random number generators and module modes.

exit codes:
  0  no check failed (preflight), no finding at or above --fail-on (other experiments)
  1  at least one FAIL (preflight), or finding at or above --fail-on; preview rules do not count
  2  usage error, a training step that cannot be extracted, or a check that failed inside holter
"""


def parser_of(*, script: bool) -> argparse.ArgumentParser:
    """Return the parser; what follows a script is the script's, what follows a run is not."""
    parser = argparse.ArgumentParser(
        prog="holter try",
        description="Run an experiment on a training script and report the result.",
        epilog=EPILOG,
        usage="holter try [EXPERIMENT] [options] [-m] SCRIPT [script arguments ...]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "target",
        nargs="?",
        metavar="SCRIPT",
        help="a script, or module:function that returns a setup",
    )
    if script:
        add_script_arguments(parser)
    else:
        parser.set_defaults(arguments=[])
    parser.add_argument("-m", dest="as_module", action="store_true", help="SCRIPT is a module name")
    trial = parser.add_argument_group("experiment")
    trial.add_argument(
        "--trust",
        action="store_true",
        help="replay, cures: execute the script that recorded RUN even if it has changed or is"
        " outside this project",
    )
    trial.add_argument(
        "--only",
        action="append",
        metavar="CHECK,...",
        help="preflight: run only these checks or experiments",
    )
    trial.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="[EXPERIMENT.]NAME=VALUE",
        help="set an option of the experiment; `holter try` lists them",
    )
    trial.add_argument(
        "--repeats",
        type=positive_whole,
        metavar="N",
        help="lr-range: number of sweeps (default: 3)",
    )
    trial.add_argument(
        "--steps",
        type=int,
        help=f"training steps to record before the experiment (default: {STEPS}; evaluate: all)",
    )
    trial.add_argument(
        "--seconds",
        type=float,
        help="stop recording the script after this many seconds (default: 20; evaluate: 300)",
    )
    trial.add_argument(
        "--out", type=Path, metavar="RUN", help="folder of the run (default: in ./holter-runs)"
    )
    trial.add_argument(
        "--plot",
        type=Path,
        metavar="FILE.png",
        help="write a plot of the result (lr-range, sharpness)",
    )
    trial.add_argument(
        "--samples",
        type=positive_whole,
        metavar="N",
        help="data, preflight: store N samples of each split as text and show them (default:"
        " none are stored)",
    )
    evaluation = parser.add_argument_group("evaluate", "options of `holter try evaluate`")
    evaluation.add_argument(
        "--slice",
        metavar="FEATURE",
        help="group samples by label, length, brightness or the index of an input column (default:"
        " the grouping that explains most of the error)",
    )
    evaluation.add_argument(
        "--worst",
        type=positive_whole,
        metavar="N",
        help="number of samples with the largest losses to list (default: 10)",
    )
    evaluation.add_argument(
        "--labels",
        action="store_true",
        help="also look for likely label errors, in training samples by 5 additional trainings"
        " (needs cleanlab; `--option folds=0`: validation only)",
    )
    failure = parser.add_argument_group("replay", "options of `holter try replay RUN`")
    failure.add_argument(
        "--capture",
        metavar="STEP",
        help="step of the capture to replay (default: the first failure)",
    )
    failure.add_argument(
        "--setup",
        metavar="MODULE:FUNCTION",
        help="a function that returns the setup, if the script cannot run again",
    )
    failure.add_argument(
        "--rerun",
        action="store_true",
        help="run the script up to the failure, to record the inputs of each step (default without"
        " a data loader, and after a short run that was not reproduced)",
    )
    failure.add_argument(
        "--whole",
        action="store_true",
        help="run the whole script again for each answer, instead of its extracted step (default"
        " after a short run whose step does not reproduce the failure)",
    )
    failure.add_argument("--origin", action="store_true", help=argparse.SUPPRESS)  # of a birth
    failure.add_argument("--numbers", action="store_true", help=argparse.SUPPRESS)  # are held
    failure.add_argument(
        "--no-ladder",
        action="store_true",
        help="only reproduce the failure and find its origin; try no interventions",
    )
    failure.add_argument(
        "--export",
        metavar="FILE.py",
        help="write a standalone script that reproduces the failure; the weights and the batch of"
        " that step are written next to it",
    )
    failure.add_argument(
        "--synthetic",
        action="store_true",
        help="--export with random weights and a random batch, if they fail as well",
    )
    cures = parser.add_argument_group("cures", "options of `holter try cures`")
    cures.add_argument(
        "--minutes",
        type=positive,
        metavar="M",
        help="time for the run and all trials (default: ten times the script's own, and at least"
        " 90 s)",
    )
    workers = parser.add_argument_group(
        "workers",
        "where the trials of cures, the sweeps of lr-range and the changes of replay run",
    )
    add_workers(workers, "processes")
    workers.add_argument("--share", metavar="NUMBER/OF", help=argparse.SUPPRESS)  # of the trials
    workers.add_argument(
        "--elsewhere",
        type=Path,
        metavar="FOLDER",
        help=argparse.SUPPRESS,  # holds the shares that other processes have made
    )
    add_checking(parser)
    return parser
