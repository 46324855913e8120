"""`holter show`: the live dashboard in the browser."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from holter.record.errors import HolterError
from holter.record.notices import tell

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from holter.dashboard.library import Library

DEFAULT_PORT = 8770

EPILOG = """\
examples:
  holter show                          all runs in ./holter-runs
  holter show holter-runs/train-1      one run, also while it is recorded
  holter show runs-of-monday archive   all runs below several folders
  holter show --port 8123 --no-browser
  holter show --host 0.0.0.0           reachable from other machines; the address holds a token

On another machine, through an SSH tunnel:
  ssh -L 8770:localhost:8770 HOST holter show --no-browser --port 8770

The dashboard reads run folders and writes nothing. Stop it with Ctrl-C.
"""


def add(subparsers: "_SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "show",
        help="show runs in the browser, live",
        description="Serve a dashboard over running and finished runs: outcome and diagnosis of"
        " each, its\ncurves as they grow, comparisons, alerts, and the next experiment.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "runs",
        nargs="*",
        type=Path,
        metavar="RUN|FOLDER",
        help="runs, or folders that hold runs (default: ./holter-runs)",
    )
    add_serving(parser)


def add_serving(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say where to serve."""
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on (default: 127.0.0.1, this machine only); any other needs the"
        " token in the printed address",
    )
    parser.add_argument(
        "--port",
        type=_port,
        default=DEFAULT_PORT,
        help="port (default: 8770, or a free one if that is in use)",
    )
    parser.add_argument(
        "--token", action="store_true", help="require the token on this machine too"
    )
    parser.add_argument(
        "--no-browser", action="store_true", help="print the address, open no browser"
    )


def execute(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    from holter.dashboard.library import Library
    from holter.record.folders import RUNS

    library = Library(args.runs or [RUNS])
    return serve(args, library, "/")


def serve(args: argparse.Namespace, library: "Library", page: str) -> int:
    """Serve the dashboard, open `page`, and wait for Ctrl-C."""
    import webbrowser

    from holter.dashboard.access import Access
    from holter.dashboard.server import Server
    from holter.dashboard.site import Dashboard

    site = Dashboard(library)
    access = Access.for_host(args.host, token=args.token)
    try:
        server = Server(site, access, args.port)
    except OSError as error:
        if args.port != DEFAULT_PORT:
            raise HolterError(
                f"Cannot listen on {args.host}:{args.port}: {error.strerror}."
            ) from error
        server = Server(site, access)
    address = server.address(page)
    tell(f"serving {address} (Ctrl-C stops it)")
    if not args.no_browser:
        webbrowser.open(address)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
        site.close()
    return 0


def _port(given: str) -> int:
    if not given.isdecimal() or int(given) >= 2**16:
        raise argparse.ArgumentTypeError(f"{given!r} is not a port: give a number from 0 to 65535")
    return int(given)
