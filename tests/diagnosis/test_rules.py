"""The rule engine: choosing, configuring and applying rules."""

import sys
from dataclasses import replace
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Annotated

import pytest

from holter.diagnosis import engine as rules
from holter.diagnosis.engine import Checkup, all_rules, check, chosen_rules, named_rule
from holter.diagnosis.rule import rule
from holter.record.errors import HolterError
from holter.record.findings import Confidence, Evidence, Level, Severity
from holter.record.signals import AMP_SCALE, LOSS
from synthetic import run_of

HEALTHY = run_of({LOSS: {"": [1.0, 0.9, 0.8]}})


@rule(severity=Severity.WARNING, level=Level.DATA, needs=(LOSS,))
def made_up(facts, *, limit: Annotated[float, "highest loss"] = 0.5):
    """A loss is above a limit."""
    highest = float(facts.run[LOSS][""].values.max())
    if highest > limit:
        yield made_up.finding(
            f"{highest:g} > {limit:g}",
            confidence=Confidence.HINT,
            onset=0,
            evidence=(Evidence(LOSS, (0, 2), "all"),),
            fix="none",
        )
    else:
        yield made_up.normal("low")


@pytest.fixture
def only(monkeypatch):
    def use(*chosen):
        monkeypatch.setattr(rules, "all_rules", lambda: {each.name: each for each in chosen})

    return use


def test_a_function_gives_the_rule_its_name_options_and_page() -> None:
    assert made_up.name == "made-up"
    assert made_up.options == {"limit": 0.5}
    assert made_up.option_docs == {"limit": "highest loss"}
    assert made_up.title == "A loss is above a limit."


def test_found_normal_and_clear(only) -> None:
    only(made_up)
    found = check(HEALTHY)
    assert [each.rule for each in found.findings] == ["made-up"]
    assert not found.clear
    calm = check(HEALTHY, options={"made-up": {"limit": 2.0}})
    assert not calm.findings
    assert [each.summary for each in calm.normal] == ["low"]
    assert [each.rule for each in calm.clear] == ["made-up"]


def test_a_missing_signal_is_not_examined_and_named() -> None:
    checkup = check(run_of({AMP_SCALE: {"": [1.0]}}), select=["nonfinite-loss"])
    (verdict,) = checkup.not_examined
    assert "no loss" in verdict.because
    assert not checkup.clear


def test_a_rule_that_fails_is_not_a_rule_that_is_clear(only) -> None:
    @rule(severity=Severity.ERROR, level=Level.DATA, needs=(LOSS,))
    def breaks(run):
        """It breaks."""
        yield breaks.clear("no")
        raise ZeroDivisionError("oops")

    only(breaks)
    checkup = check(HEALTHY)
    assert not checkup.clear
    assert "ZeroDivisionError" in checkup.not_examined[0].because


def test_findings_come_most_severe_most_certain_and_earliest_first(only) -> None:
    @rule(severity=Severity.ERROR, level=Level.DATA, needs=(LOSS,))
    def many(run):
        """It says much."""
        for severity, confidence, onset in (
            (Severity.WARNING, Confidence.CERTAIN, 0),
            (Severity.ERROR, Confidence.HINT, 0),
            (Severity.ERROR, Confidence.CERTAIN, 5),
            (Severity.ERROR, Confidence.CERTAIN, 2),
        ):
            yield many.finding(
                "x", confidence=confidence, onset=onset, evidence=(), fix="", severity=severity
            )

    only(many)
    order = [(f.severity, f.confidence, f.onset) for f in check(HEALTHY).findings]
    assert order == [
        (Severity.ERROR, Confidence.CERTAIN, 2),
        (Severity.ERROR, Confidence.CERTAIN, 5),
        (Severity.ERROR, Confidence.HINT, 0),
        (Severity.WARNING, Confidence.CERTAIN, 0),
    ]


def test_select_and_ignore_take_patterns() -> None:
    names = {each.name for each in chosen_rules(["nonfinite-*", "flat-loss"], ["nonfinite-[b-s]*"])}
    assert names == {"nonfinite-variables", "nonfinite-weights", "flat-loss"}


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda: check(HEALTHY, select=["nonfinit-loss"]), "nonfinite-loss"),
        (lambda: check(HEALTHY, ignore=["quux"]), "holter rules"),
        (lambda: check(HEALTHY, options={"flat-los": {}}), "flat-loss"),
        (lambda: check(HEALTHY, options={"flat-loss": {"min_step": 3}}), "min_steps"),
        (lambda: named_rule("flatloss"), "flat-loss"),
    ],
)
def test_a_typo_gets_the_nearest_name(call, hint) -> None:
    with pytest.raises(HolterError, match=hint):
        call()


def test_preview_rules_never_fail_a_check() -> None:
    flat = run_of({LOSS: {"": [2.0] * 300}})
    (found,) = check(flat, select=["flat-loss"]).findings
    assert Checkup((found,)).at_least(Severity.INFO) == (found,)
    checkup = Checkup((replace(found, preview=True),))
    assert checkup.at_least(Severity.INFO) == ()


def test_rules_of_other_packages_come_by_entry_point(monkeypatch, capsys) -> None:
    plugin = ModuleType("plugin")
    plugin.made_up = made_up
    plugin.not_a_rule = print
    monkeypatch.setitem(sys.modules, "plugin", plugin)
    entries = [
        EntryPoint("made-up", "plugin:made_up", "holter.rules"),
        EntryPoint("not-a-rule", "plugin:not_a_rule", "holter.rules"),
        EntryPoint("gone", "plugin:gone", "holter.rules"),
    ]
    monkeypatch.setattr(rules, "entry_points", lambda group: entries)
    all_rules.cache_clear()
    try:
        found = all_rules()
    finally:
        all_rules.cache_clear()
    assert found["made-up"] is made_up
    assert "nonfinite-loss" in found
    told = capsys.readouterr().err
    assert "not-a-rule" not in found
    assert "plugin:not_a_rule" in told
    assert "gone" in told
