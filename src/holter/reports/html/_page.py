"""One HTML file with everything in it: styles, scripts and data; no request leaves the page."""

import base64
import hashlib

from holter._version import __version__
from holter.reports.html._assets import asset, joined_script
from holter.reports.html._markup import Html, element, joined
from holter.reports.html._packing import Pack, as_json
from holter.reports.html._view import Drawing


class Figures:
    """The drawings of a page: their data in one place, and an element for each."""

    def __init__(self) -> None:
        self._pack = Pack()
        self._drawings: list[object] = []

    def figure(self, drawing: Drawing) -> Html:
        """Return the element that the page's script draws in."""
        number = str(len(self._drawings))
        self._drawings.append({"kind": drawing.kind, "data": self._pack.spelled(drawing.data)})
        place = element("div", class_="drawing", data_drawing=number, data_kind=drawing.kind)
        note = element("p", drawing.note, class_="note") if drawing.note else joined()
        wide = "wide" if drawing.is_wide else ""
        if drawing.is_folded:
            figure = element("figure", place, note)
            return element(
                "details", element("summary", drawing.title), figure, class_=f"card {wide}"
            )
        return element("figure", element("figcaption", drawing.title), place, note, class_=wide)

    @property
    def drawings(self) -> str:
        """The kind and data of every drawing, as JSON that refers to `arrays`."""
        return as_json(self._drawings)

    @property
    def arrays(self) -> str:
        """The numbers of all drawings, compressed and as text."""
        return self._pack.data()

    def data(self) -> Html:
        """Return the data of all drawings, for the script."""
        return joined(
            element("script", Html(self.drawings), type="application/json", id="drawings"),
            element("script", Html(self.arrays), type="application/gzip", id="arrays"),
        )


def page(title: str, body: Html, figures: Figures, *, steps: int) -> str:
    """Return the whole document of a run with so many steps."""
    style = asset("charts.css") + asset("report.css")
    script = joined_script("report.js")
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)};"
        " base-uri 'none'; form-action 'none'"
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        element("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name_="generator", content=f"holter {__version__}"),
        element("title", title),
        element("style", Html(style)),
    )
    whole = element("body", body, figures.data(), element("script", Html(script), type="module"))
    return f'<!doctype html>\n<html lang="en" data-steps="{steps}">\n{head}\n{whole}\n</html>\n'


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
