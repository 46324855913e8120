"""`holter rules` and `holter explain`, over every rule there is."""

import json

import pytest

from holter._cli import main
from holter.diagnosis.engine import all_rules
from holter.diagnosis.rule import HEADINGS


@pytest.fixture(autouse=True)
def plain(here: object) -> None:
    """No colour, whatever the environment says."""


def test_the_table_has_every_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules"]) == 0
    shown = capsys.readouterr().out
    for rule in all_rules().values():
        assert f"\n  {rule.name} " in shown
    assert max(map(len, shown.splitlines())) <= 100


def test_the_table_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "--json"]) == 0
    listed = {each["name"]: each for each in json.loads(capsys.readouterr().out)}
    assert set(listed) == set(all_rules())
    loss = listed["nonfinite-loss"]
    assert (loss["severity"], loss["level"], loss["needs"]) == ("error", "numerics", ["loss"])


@pytest.mark.parametrize("name", all_rules())
def test_the_page_of_every_rule(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", name]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"{name}  (")
    rule = all_rules()[name]
    headings = [heading for heading in HEADINGS if rule.section(heading)]
    assert [line for line in shown.splitlines() if line in HEADINGS] == headings
    words = " ".join(shown.split())
    for option, meaning in rule.option_docs.items():
        assert f"{option} {rule.options[option]} {meaning}".strip() in words
    for exception in rule.exceptions:
        assert f"{exception.name} {exception.because}" in words
    assert main(["explain", name, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["page"] == rule.doc
    assert [each["name"] for each in told["options"]] == list(rule.options)
    assert [each["name"] for each in told["exceptions"]] == [e.name for e in rule.exceptions]


def test_an_unknown_rule_gets_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "nonfinite-los"]) == 2
    assert "did you mean 'nonfinite-loss'?" in capsys.readouterr().err
