"""The checks of a preflight, each with its answer."""

from holter.diagnosis.checklist import Status, rows
from holter.reports.html._markup import element, with_code
from holter.reports.html._view import Panel, View

TITLE = "Preflight"
_KINDS = {
    Status.ERROR: "error",
    Status.FAIL: "error",
    Status.WARN: "warning",
    Status.PASS: "good",
    Status.NOT_APPLICABLE: "muted",
}


def panel(view: View) -> Panel | None:
    """Return the table of checks of an experiment run."""
    if not view.run.is_experiment:
        return None
    body = [
        element(
            "tr",
            element(
                "td", element("span", row.status.value, class_="tag", data_kind=_KINDS[row.status])
            ),
            element("td", element("strong", row.check.name)),
            element("td", row.check.question),
            element("td", with_code(row.says)),
        )
        for row in rows(view.run, view.checkup)
    ]
    table = element("table", element("tbody", *body), class_="checks")
    return Panel(below=element("div", table, class_="scroller"))
