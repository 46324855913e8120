"""Where tasks run: the options that several commands share, and the workers that they name."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from holter._cli.values import positive_whole
from holter.record.errors import HolterError

if TYPE_CHECKING:
    from holter.scripts.sweeps.tasks import Workers


def add_workers(group: "argparse._ArgumentGroup", what: str) -> None:
    """Add the options that say where tasks run; `what` is a task in the plural."""
    group.add_argument(
        "-j",
        "--jobs",
        type=positive_whole,
        metavar="N",
        help=f"{what} at a time on this machine (default: 1, or one for each of --devices)",
    )
    group.add_argument(
        "--devices", metavar="N,...", help="GPUs of this machine; each process sees one of them"
    )
    group.add_argument(
        "--on", choices=("local", "ray"), default="local", help="where to run (default: local)"
    )
    group.add_argument("--address", help="ray: address of the cluster (default: RAY_ADDRESS, auto)")
    group.add_argument(
        "--cpus", type=float, default=1.0, help="ray: CPUs of a process (default: 1)"
    )
    group.add_argument(
        "--gpus", type=float, default=0.0, help="ray: GPUs of a process (default: 0)"
    )


def is_handed_out(args: argparse.Namespace) -> bool:
    """Whether the options ask for several processes or for a cluster."""
    return args.on != "local" or args.devices is not None or (args.jobs or 1) > 1


def require_one_process(args: argparse.Namespace, why: str) -> None:
    """Refuse options that ask for several processes or for a cluster."""
    if is_handed_out(args):
        given = "--on ray" if args.on == "ray" else "--devices" if args.devices else "-j"
        raise HolterError(f"{given}: {why}")


@contextmanager
def workers_of(args: argparse.Namespace, output: Path) -> Iterator["Workers"]:
    """Connect to the workers that the options name; tasks write below `output`."""
    if args.on == "ray":
        from holter.scripts.sweeps.cluster import RayWorkers

        with RayWorkers(output, address=args.address, cpus=args.cpus, gpus=args.gpus) as ray:
            yield ray
        return
    from holter.scripts.sweeps.local import Processes

    devices = [device for device in (args.devices or "").split(",") if device]
    yield Processes(args.jobs or max(len(devices), 1), devices)
