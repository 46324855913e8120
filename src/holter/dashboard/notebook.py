"""`holter.show(run)`: the report of a run, or the live dashboard, inside a notebook."""

from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from holter.dashboard.access import Access
from holter.dashboard.library import Library
from holter.dashboard.server import Server
from holter.dashboard.site import Dashboard
from holter.diagnosis.engine import check
from holter.record import Run
from holter.reports import html


@dataclass(frozen=True, slots=True)
class Shown:
    """A page inside a notebook: the page itself, or the address that serves it."""

    height: int
    page: str = field(default="", repr=False)
    address: str = ""
    server: Server | None = field(default=None, repr=False)

    def close(self) -> None:
        """Stop serving."""
        if self.server is not None:
            self.server.stop()

    def _repr_html_(self) -> str:
        style = f'style="width:100%;height:{self.height}px;border:0"'
        if self.address:
            return f'<iframe src="{escape(self.address)}" {style}></iframe>'
        # Its own origin: the scripts of the report reach nothing of the notebook.
        return f'<iframe sandbox="allow-scripts" srcdoc="{escape(self.page)}" {style}></iframe>'


def show(run: Run | str | Path, *, live: bool = False, height: int = 800) -> Shown:
    """Show a run in a notebook: its report as it is now, or with `live` a page that follows it.

    A live page is served on this machine only; `run` may then be a folder of runs as well. The
    report needs no server, so that it also works where the notebook runs elsewhere.
    """
    if not live:
        read = run.reload() if isinstance(run, Run) else Run.load(run)
        return Shown(height, page=html.render(read, check(read)))
    path = run.path if isinstance(run, Run) else Path(run)
    if path is None:
        raise ValueError("a run that is held in memory cannot be followed; leave out `live`")
    library = Library([path])
    server = Server(Dashboard(library), Access.for_host("127.0.0.1", framed=True))
    server.start()
    entries = library.entries()
    page = (
        f"/runs/{entries[0].id}" if [entry.path for entry in entries] == [path.resolve()] else "/"
    )
    return Shown(height, address=server.address(page), server=server)
