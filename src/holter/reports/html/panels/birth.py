"""The birth of a NaN: the operations around it, and the line of the script that made it."""

from holter.diagnosis.facts.replays import replayed
from holter.record.births import Birth, Operand
from holter.reports._numbers import number
from holter.reports.html._markup import element, joined
from holter.reports.html._view import Drawing, Panel, View

TITLE = "Birth of a NaN"
_BEFORE, _AFTER = 3, 3  # operations that are drawn


def panel(view: View) -> Panel | None:
    """Return the operations that led to the first value that is not finite."""
    replay = replayed(view.run)
    if replay is None or replay.birth is None:
        return None
    birth = replay.birth
    where = " · ".join(filter(None, (birth.where, birth.module and f"module {birth.module}")))
    source = joined(
        element("p", where, class_="where"),
        element("pre", element("code", birth.line, class_="guilty-line"), class_="code"),
    )
    return Panel((_graph(birth),), birth.says, source if birth.line or where else joined())


def _graph(birth: Birth) -> Drawing:
    """Draw what made the operands, the operation, and what it was passed on to."""
    nodes: list[dict[str, str]] = []
    edges: list[list[str]] = []
    before = list(reversed(birth.made_by[:_BEFORE]))
    for place, operation in enumerate(before):
        nodes.append({"id": f"before-{place}", "name": operation})
        if place:
            edges.append([f"before-{place - 1}", f"before-{place}"])
    for place, operand in enumerate(birth.operands):
        nodes.append({"id": f"operand-{place}", "name": operand.name, "detail": _range(operand)})
        edges.append([f"operand-{place}", "birth"])
    if before and birth.operands:
        edges.append([f"before-{len(before) - 1}", "operand-0"])
    detail = f"{birth.count:,} of {birth.of:,} elements, {birth.phase}"
    nodes.append({"id": "birth", "name": birth.operation, "detail": detail})
    for place, operation in enumerate(birth.went_into[:_AFTER]):
        nodes.append({"id": f"after-{place}", "name": operation, "kind": "spoiled"})
        edges.append(["birth" if place == 0 else f"after-{place - 1}", f"after-{place}"])
    label = "Operations around the first value that is not finite"
    note = "the last operations before it, its operands, and the first that it was passed on to"
    data = {"nodes": nodes, "edges": edges, "guilty": "birth", "label": label}
    return Drawing("graph", data, label, note, is_wide=True)


def _range(operand: Operand) -> str:
    shape = " x ".join(map(str, operand.shape)) or "number"
    return f"{shape}, {number(operand.low)} to {number(operand.high)}"
