"""The head and the foot of the page: how the run went in numbers, lists of rules, environment."""

from holter._version import __version__
from holter.diagnosis.facts.outcome import OutcomeState
from holter.diagnosis.signal_words import in_words
from holter.record.signals import CATALOGUE
from holter.reports._facts import by_rule, clear_rules, cost, ending, steps_read
from holter.reports._numbers import count, number, percent
from holter.reports._outcome import headline
from holter.reports.html._markup import Html, element, joined, with_code
from holter.reports.html._tables import pairs
from holter.reports.html._view import View

_MOST_MODELS = 2  # in the tiles


def run_name(view: View) -> str:
    """Return the name of the run's folder, or of its script."""
    if view.run.path is not None:
        return view.run.path.name
    command = view.run.meta.environment.command
    return command[0] if command else "run"


def hero(view: View) -> Html:
    """Return the outcome in a sentence, and its numbers as tiles."""
    line = headline(view.run, view.checkup)
    outcome = view.checkup.outcome
    kind = "error" if outcome.bad else "good"
    if outcome.state in (OutcomeState.UNKNOWN, OutcomeState.STALLED, OutcomeState.FALLING):
        kind = "unknown"
    if outcome.state is OutcomeState.OVERFITS:
        kind = "warning"
    extra = [*filter(None, [ending(view.run)]), *view.checkup.failures]
    tiles = [_tile(name, value, detail) for name, value, detail in _numbers(view)]
    return element(
        "header",
        element("p", " ".join(view.run.meta.environment.command), class_="command"),
        element("h1", line.state[:1].upper() + line.state[1:], data_kind=kind),
        element("p", line.says, class_="says") if line.says else joined(),
        *(element("p", sentence, class_="says caution") for sentence in extra),
        element("dl", *tiles, class_="tiles"),
        class_="hero",
        data_kind=kind,
    )


def _numbers(view: View) -> list[tuple[str, str, str]]:
    run, outcome = view.run, view.checkup.outcome
    tiles = []
    if outcome.last is not None:
        constant = outcome.constant
        detail = "" if outcome.first is None else f"from {number(outcome.first)}"
        tiles.append(("training loss", number(outcome.last), detail))
        if constant is not None:
            gain = outcome.gain
            detail = "" if gain is None else f"the loss is {_beside(gain)}"
            tiles.append(("best constant prediction", number(constant), detail))
    if outcome.validation is not None:
        tiles.append(("validation loss", number(outcome.validation), ""))
    for name, share in (
        ("training accuracy", outcome.accuracy),
        ("validation accuracy", outcome.validation_accuracy),
    ):
        if share is not None:
            chance = outcome.chance_accuracy
            detail = "" if chance is None else f"guessing {percent(chance)}"
            tiles.append((name, percent(share), detail))
    tiles.append(("steps", f"{run.steps:,}", ""))
    if run.meta.duration is not None:
        tiles.append(("duration", _duration(run.meta.duration), cost(run).says))
    tiles += [
        ("model", model.class_name, count(model.parameters, "parameter"))
        for model in run.meta.model[:_MOST_MODELS]
    ]
    return tiles


def _beside(gain: float) -> str:
    return f"{percent(abs(gain))} {'below' if gain >= 0 else 'above'}"


def _tile(name: str, value: str, detail: str) -> Html:
    return element(
        "div",
        element("dt", name),
        element("dd", value),
        element("dd", detail, class_="detail") if detail else joined(),
        class_="tile",
    )


def _duration(seconds: float) -> str:
    if not 0 <= seconds < float("inf"):
        return "unknown"
    if seconds < 120:
        return f"{seconds:.3g} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"


def rule_lists(view: View, named: set[str]) -> Html:
    """Return normal, clear and not examined rules; those named above are left out."""
    checkup = view.checkup
    lists = (
        ("Odd but normal", by_rule(checkup.normal)),
        ("Clear", clear_rules(checkup)),
        ("Not examined", by_rule(checkup.not_examined)),
    )
    shown = []
    for label, reasons in lists:
        rest = {rule: says for rule, says in reasons.items() if rule not in named}
        if rest:
            head = element("summary", f"{label} ", element("span", str(len(rest)), class_="count"))
            shown.append(element("details", head, pairs(list(rest.items())), class_="card"))
    return joined(*shown)


def environment(view: View) -> Html:
    """Return command, versions, machine and commit."""
    run, told = view.run, view.run.meta.environment
    git = told.git
    rows = {
        "run": "" if run.path is None else str(run.path),
        "command": " ".join(told.command),
        "folder": told.folder or "",
        "started": told.started or "",
        "status": run.meta.status or "",
        "seed": "" if run.meta.seed is None else str(run.meta.seed),
        "rank": f"{run.rank} of {len(run.ranks)}" if len(run.ranks) > 1 else "",
        "python": told.python or "",
        "packages": ", ".join(f"{name} {version}" for name, version in told.versions.items()),
        "machine": ", ".join(filter(None, (told.machine.host, told.machine.system))),
        "cores": "" if told.machine.cores is None else str(told.machine.cores),
        "commit": "" if git is None else git.commit + (" with changes" if git.dirty else ""),
        "optimizers": ", ".join(f"{one.label} ({one.class_name})" for one in run.meta.optimizers),
        "variables": ", ".join(f"{name}={value}" for name, value in told.variables.items()),
    }
    given = [(name, value) for name, value in rows.items() if value]
    read = [(f"{steps:,} steps", _signals(names)) for steps, names in steps_read(run)]
    notes = element("ul", *(element("li", with_code(note)) for note in run.meta.notes))
    return joined(
        pairs(given),
        element("h3", "Not recorded") if run.meta.notes else joined(),
        notes if run.meta.notes else joined(),
        element("details", element("summary", "How often each signal was read"), pairs(read)),
    )


def _signals(names: list[str]) -> str:
    return ", ".join(in_words(CATALOGUE[name]) for name in names if name in CATALOGUE)


def foot(missing: list[str]) -> Html:
    """Return which panels are absent, and what made the page."""
    absent = f"Not recorded in this run, and therefore not drawn: {', '.join(missing)}."
    return element(
        "footer",
        element("p", absent) if missing else joined(),
        element("p", f"Made by holter {__version__}. This file needs no network."),
    )
