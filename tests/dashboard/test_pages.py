"""The pages of rules, the data of runs, and the commands of the next experiment."""

import math
import shlex
from html.parser import HTMLParser
from pathlib import Path

import pytest
from served import Serve
from shown_runs import write_run

from holter import Run, check, diagnose
from holter.dashboard.commands import next_commands
from holter.dashboard.markdown import to_html, with_code
from holter.dashboard.pages import rule_list, rule_page
from holter.diagnosis.engine import all_rules


class Seen(HTMLParser):
    """The elements and the text of a page."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(page.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name == "href"]

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("rule", all_rules().values(), ids=lambda rule: rule.name)
def test_every_rule_has_a_page_with_all_its_sections(rule: object) -> None:
    name: str = rule.name  # type: ignore[attr-defined]
    seen = Seen(rule_page(name) or b"")
    for heading in ("What it does", "Example", "What to do", "When it is wrong", "How to confirm"):
        assert heading in seen.text
    rules = [link for link in seen.links if link.startswith("/rules/")]
    assert all(link.removeprefix("/rules/") in all_rules() for link in rules)


def test_the_list_links_every_rule() -> None:
    links = Seen(rule_list()).links
    assert all(f"/rules/{name}" in links for name in all_rules())


def test_markdown_is_escaped() -> None:
    hostile = '<script>alert(1)</script> `<img src=x onerror="y">`\n\n```\n</code><b>\n```'
    shown = to_html(hostile)
    assert Seen(shown.encode()).tags == ["p", "code", "pre", "code"]
    assert "<script" not in shown
    assert with_code("a `b` flat-loss", frozenset({"flat-loss"})).endswith(
        '<a href="/rules/flat-loss">flat-loss</a>'
    )


def test_the_list_of_runs_is_json_without_nan(serve: Serve, tmp_path: Path) -> None:
    write_run(tmp_path / "broken", [1.0, math.inf, math.nan])
    served = serve(tmp_path)
    identifier = served.id_of("broken")
    report = served.get(f"/api/runs/{identifier}/report")
    assert report.status == 200
    row = report.json["run"]
    assert row["curve"]["values"] == [1.0, "Infinity", "NaN"]
    assert row["bad"]
    assert row["leading"]["rule"] == "nonfinite-loss"
    assert served.get("/api/runs").json["runs"][0]["state"] == row["state"]


def test_what_has_not_changed_is_not_sent_again(serve: Serve, tmp_path: Path) -> None:
    write_run(tmp_path / "run", [1.0, 0.9])
    served = serve(tmp_path)
    path = f"/api/runs/{served.id_of('run')}/report"
    version = served.get(path).headers["ETag"]
    assert served.get(path, If_None_Match=version).status == 304
    assert served.get(path, If_None_Match='"older"').status == 200


def test_runs_are_compared_by_any_signal_that_one_has(serve: Serve, tmp_path: Path) -> None:
    write_run(tmp_path / "a", [1.0] * 5_000, signals={"clip.norm": 3.0})
    write_run(tmp_path / "b", [2.0, 1.0])
    served = serve(tmp_path)
    runs = ",".join((served.id_of("a"), served.id_of("b"), "unknown"))
    losses = served.get(f"/api/compare?runs={runs}").json
    assert [series["name"] for series in losses["series"]] == ["a", "b"]
    assert len(losses["series"][0]["steps"]) <= 4_000
    assert {"loss", "clip.norm"} <= {signal["name"] for signal in losses["signals"]}
    norms = served.get(f"/api/compare?runs={runs}&signal=clip.norm").json
    assert [series["name"] for series in norms["series"]] == ["a"]
    assert served.get(f"/api/compare?runs={runs}&signal=nothing").json["series"] == []
    assert [row["name"] for row in norms["runs"]] == ["a", "b"]


def commands_of(path: Path) -> list[str]:
    run = Run.load(path)
    checkup = check(run)
    return [each.command for each in next_commands(run, diagnose(checkup), bad=checkup.outcome.bad)]


def test_commands_name_the_script_and_the_run(tmp_path: Path) -> None:
    command = ("my train.py", "--name", "a b; rm -rf")
    broken = write_run(tmp_path / "the run", [1.0, math.nan, math.nan], command=command)
    replay, doctor = commands_of(broken)
    assert shlex.split(replay) == ["holter", "try", "replay", str(broken)]
    assert shlex.split(doctor) == ["holter", "doctor", *command]
    healthy = write_run(tmp_path / "good", [2.0 * 0.98**step for step in range(100)])
    assert commands_of(healthy) == ["holter try preflight train.py"]
    unknown = write_run(tmp_path / "unknown", [2.3] * 200, command=())
    assert not any("train.py" in each for each in commands_of(unknown))
