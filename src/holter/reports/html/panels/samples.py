"""The first samples of the data, as text, where the run stores them."""

from holter.record.events import SampleShown
from holter.reports.html._markup import element
from holter.reports.html._view import Panel, View

TITLE = "Samples"
_COLUMNS = ("split", "index", "inputs", "targets")


def panel(view: View) -> Panel | None:
    """Return the stored samples as a table."""
    samples = [event.what for event in view.run.events_of(SampleShown)]
    if not samples:
        return None
    head = element("tr", *(element("th", column, scope="col") for column in _COLUMNS))
    rows = [
        element(
            "tr",
            element("td", sample.split),
            element("td", f"{sample.index:,}", class_="number"),
            element("td", element("code", sample.inputs)),
            element("td", element("code", sample.targets)),
        )
        for sample in samples
    ]
    body = element("table", element("thead", head), element("tbody", *rows))
    return Panel(below=element("div", body, class_="scroller"))
