"""The report as one HTML file that opens from disk: cause first, then every curve behind it."""

from holter.diagnosis.differential import diagnose
from holter.diagnosis.engine import Checkup
from holter.record import Run
from holter.reports._card import on_card
from holter.reports.html._findings import leading_card, other_card
from holter.reports.html._markup import Html, element, joined
from holter.reports.html._page import Figures, page
from holter.reports.html._summary import environment, foot, hero, rule_lists, run_name
from holter.reports.html._view import Panel, View
from holter.reports.html.panels import Titled, all_panels


def render(run: Run, checkup: Checkup) -> str:
    """Return the whole page."""
    view = View(run, checkup, diagnose(checkup))
    figures = Figures()
    panels = all_panels(view)
    shown = [titled for titled in panels if titled.panel is not None]
    missing = [titled.title for titled in panels if titled.panel is None]
    named = on_card(view.diagnosis) | {finding.rule for finding in checkup.findings}
    main = element(
        "main",
        hero(view),
        *_diagnosis(view, figures),
        *(_section(titled, figures) for titled in shown),
        _titled("rules", "Other rules", rule_lists(view, named)),
        _titled("environment", "Environment", element("div", environment(view), class_="card")),
        foot(missing),
    )
    return page(
        f"{run_name(view)} · holter", joined(_bar(view, shown), main), figures, steps=run.steps
    )


def _bar(view: View, shown: list[Titled]) -> Html:
    links = [("rules", "Other rules"), ("environment", "Environment")]
    links = [(titled.name, titled.title) for titled in shown] + links
    if view.diagnosis.leading is not None:
        links.insert(0, ("diagnosis", "Diagnosis"))
    return element(
        "nav",
        element("span", "holter", class_="brand"),
        element("span", run_name(view), class_="run"),
        element("div", *(element("a", title, href=f"#{name}") for name, title in links)),
        element("button", "Theme", type="button", id="theme", title="light or dark"),
        aria_label="sections",
    )


def _diagnosis(view: View, figures: Figures) -> list[Html]:
    if view.diagnosis.leading is None:
        return []
    others = [other_card(view, finding, figures) for finding in view.diagnosis.others]
    also = [element("h3", "Also found"), *others] if others else []
    return [_titled("diagnosis", "Diagnosis", leading_card(view, figures), *also)]


def _section(titled: Titled, figures: Figures) -> Html:
    panel = titled.panel
    assert isinstance(panel, Panel)
    charts = element("div", *map(figures.figure, panel.drawings), class_="grid")
    return _titled(
        titled.name,
        titled.title,
        element("p", panel.intro, class_="intro") if panel.intro else joined(),
        charts if panel.drawings else joined(),
        element("div", panel.below, class_="card") if panel.below else joined(),
    )


def _titled(name: str, title: str, *children: Html) -> Html:
    heading = element("h2", title, id=f"{name}-title")
    return element("section", heading, *children, id=name, aria_labelledby=f"{name}-title")
