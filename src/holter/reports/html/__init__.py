"""The report as one HTML file that opens from disk: cause first, then every curve behind it."""

from dataclasses import dataclass

from holter.diagnosis.differential import diagnose
from holter.diagnosis.engine import Checkup
from holter.record import Run
from holter.reports._card import on_card
from holter.reports.html._findings import leading_card, other_card
from holter.reports.html._markup import Html, element, joined, with_code
from holter.reports.html._page import Figures, page
from holter.reports.html._summary import environment, foot, hero, rule_lists, run_name
from holter.reports.html._view import Panel, View
from holter.reports.html.panels import Titled, all_panels


@dataclass(frozen=True, slots=True)
class Content:
    """What a page shows of a run: the file that opens from disk, or a page of the dashboard."""

    name: str
    links: tuple[tuple[str, str], ...]  # identifier and title of each section
    main: Html
    figures: Figures


def render(run: Run, checkup: Checkup) -> str:
    """Return the whole page."""
    content = content_of(run, checkup)
    body = joined(_bar(content), content.main)
    return page(f"{content.name} · holter", body, content.figures, steps=run.steps)


def content_of(run: Run, checkup: Checkup) -> Content:
    """Return the sections of the page, and the data of their charts."""
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
    links = [(titled.name, titled.title) for titled in shown]
    links += [("rules", "Other rules"), ("environment", "Environment")]
    if view.diagnosis.leading is not None:
        links.insert(0, ("diagnosis", "Diagnosis"))
    return Content(run_name(view), tuple(links), main, figures)


def _bar(content: Content) -> Html:
    links = (element("a", title, href=f"#{name}") for name, title in content.links)
    return element(
        "nav",
        element("span", "holter", class_="brand"),
        element("span", content.name, class_="run"),
        element("div", *links),
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
        element("p", with_code(panel.intro), class_="intro") if panel.intro else joined(),
        charts if panel.drawings else joined(),
        element("div", panel.below, class_="card") if panel.below else joined(),
    )


def _titled(name: str, title: str, *children: Html) -> Html:
    heading = element("h2", title, id=f"{name}-title")
    return element("section", heading, *children, id=name, aria_labelledby=f"{name}-title")
