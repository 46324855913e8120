"""Tables of results as HTML."""

from holter.reports._numbers import number
from holter.reports.experiments import Cell, ResultTable
from holter.reports.html._markup import Html, element, joined, with_code


def table(results: ResultTable) -> Html:
    """Return title, rows and notes; columns without any value are left out."""
    kept = [
        n for n in range(len(results.columns)) if any(row[n] is not None for row in results.rows)
    ]
    head = element("tr", *(element("th", results.columns[n], scope="col") for n in kept))
    rows = [element("tr", *(_cell(row[n]) for n in kept)) for row in results.rows]
    whole = element("table", element("thead", head), element("tbody", *rows))
    return element(
        "section",
        element("h3", results.title),
        element("div", whole, class_="scroller") if rows else joined(),
        *(element("p", with_code(note), class_="note") for note in results.notes),
        class_="results",
    )


def pairs(rows: list[tuple[str, str]]) -> Html:
    """Return names beside what is said of them."""
    return element(
        "dl",
        *(
            element("div", element("dt", name), element("dd", with_code(says)))
            for name, says in rows
        ),
        class_="pairs",
    )


def _cell(value: Cell) -> Html:
    if value is None or isinstance(value, str):
        return element("td", value or "")
    return element("td", number(value), class_="number")
