"""The addresses of the dashboard, and what answers each of them."""

import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import Any

from holter.dashboard import documents, pages
from holter.dashboard.library import Entry, Library
from holter.dashboard.playground import options, schedules, tree
from holter.dashboard.playground.simulator import Simulator
from holter.dashboard.server import Answer, Request
from holter.record import Run
from holter.record.errors import HolterError

_MOST_COMPARED = 12
PLAYGROUND = ("gallery", "gradients", "activations", "weights", "rates", "schedule", "tree")


class Dashboard:
    """Runs, comparisons, rules and the playground."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._simulator = Simulator()

    def __call__(self, request: Request) -> Answer | None:
        """Answer a request, or return None where there is nothing at the address."""
        first, *rest = request.parts or ("",)
        match first, rest:
            case "assets", [name]:
                found = pages.asset(name)
                return None if found is None else Answer(*found)
            case "api", _:
                return self._data(request, rest)
            case "rules", []:
                return _html(pages.rule_list())
            case "rules", [name]:
                page = pages.rule_page(name)
                return None if page is None else _html(page)
            case "playground", []:
                return _playground("gallery")
            case "playground", [part] if part in PLAYGROUND:
                return _playground(part)
            case "", []:
                return _html(pages.page("Runs", script="runs.js"))
            case "runs", [_]:
                return _html(pages.run_page())
            case "compare", []:
                return _html(pages.page("Compare", script="compare.js"))
        return None

    def close(self) -> None:
        """Stop checking runs and training networks."""
        self._simulator.close()
        self._library.close()

    def _data(self, request: Request, parts: list[str]) -> Answer | None:
        match parts:
            case ["playground", part]:
                return self._play(part, request)
            case ["runs"]:
                return self._list()
            case ["alerts"]:
                return self._alerts()
            case ["compare"]:
                return self._compare(request)
            case ["runs", identifier, what]:
                entry = self._library.entry(identifier)
                return None if entry is None else self._run(entry, what, request)
        return None

    def _list(self) -> Answer:
        rows = [
            documents.row(entry, self._library.known(entry)) for entry in self._library.entries()
        ]
        return Answer.of(
            {
                "folders": [str(folder) for folder in self._library.folders],
                "runs": rows,
            }
        )

    def _alerts(self) -> Answer:
        for entry in self._library.entries():
            self._library.known(entry)  # has those checked that have grown
        return Answer.of([documents.alert(each) for each in self._library.alerts()])

    def _run(self, entry: Entry, what: str, request: Request) -> Answer | None:
        if what != "report":
            return None
        checked = self._library.checked(entry)
        version = f"{entry.version}-{checked.version}"
        if request.unless == version:
            return Answer.unchanged()
        if checked.summary.error:
            raise HolterError(checked.summary.error)
        return Answer.of(documents.report(entry, _load(entry), checked), version=version)

    def _compare(self, request: Request) -> Answer:
        wanted = request.query.get("runs", "").split(",")[:_MOST_COMPARED]
        entries = {entry.id: entry for entry in self._library.entries()}
        chosen = [entries[each] for each in wanted if each in entries]
        rows = [documents.row(entry, self._library.known(entry)) for entry in chosen]
        version = hashlib.sha256(repr(rows).encode()).hexdigest()[:16]
        if request.unless == version:
            return Answer.unchanged()
        runs = [(entry, _load(entry)) for entry in chosen]
        compared = documents.comparison(runs, request.query.get("signal", "loss"))
        return Answer.of({**compared, "runs": rows}, version=version)

    def _play(self, part: str, request: Request) -> Answer | None:
        match part:
            case "gallery":
                return Answer(_gallery())
            case "tree":
                return Answer.of(tree.document())
            case "schedule":
                chosen = options.read(options.SCHEDULE, request.query)
                return Answer.of(schedules.schedule(chosen))
            case "network" | "rates":
                chosen = options.read(options.NETWORK, request.query)
                return Answer.of(self._simulator.ask(part, chosen))
            case "options":
                return Answer.of(
                    {
                        "network": [each.fields() for each in options.NETWORK],
                        "schedule": [each.fields() for each in options.SCHEDULE],
                    }
                )
        return None


def _load(entry: Entry) -> Run:
    return Run.load(entry.path)


def _html(page: bytes) -> Answer:
    return Answer(page, "text/html")


def _playground(part: str) -> Answer:
    return _html(pages.page(f"Playground: {part}", script="playground.js", current="/playground"))


@cache
def _gallery() -> bytes:
    text = files("holter.dashboard.playground").joinpath("gallery.json").read_text(encoding="utf-8")
    pictures: list[dict[str, Any]] = json.loads(text)
    return json.dumps(pictures, separators=(",", ":")).encode()
