"""What every rule must satisfy, whoever wrote it."""

import inspect
import json
import re
from functools import cache

import pytest
import torch

from bench.accuracy import TABLES
from holter import Run, check, diagnose
from holter.diagnosis.causes import CAUSES
from holter.diagnosis.engine import Checkup, all_rules
from holter.diagnosis.families import FAMILIES
from holter.diagnosis.rule import HEADINGS, NO_DAMAGE, Rule
from holter.lab.experiments import all_experiments
from holter.record.signals import (
    CATALOGUE,
    CURE_LOSS,
    MEMORY_RETRIES,
    REPLAY_LOSS,
    TIME_SYNC,
    Per,
)
from zoo.recording import recording
from zoo.regimes import Regime
from zoo.specimens import CASES, Specimen

rules = pytest.mark.parametrize("rule", all_rules().values(), ids=lambda rule: rule.name)


def depth(rule: Rule) -> tuple[pytest.MarkDecorator, ...]:
    """Twins and odd cases of rules in preview or with an experiment are for the exhaustive runs.

    Those of the other rules are examined by every rule, these included.
    """
    needs_a_trial = any(signal.per is Per.TRIAL for signal in rule.needs)
    return (pytest.mark.exhaustive,) if rule.preview or needs_a_trial else ()


rules_with_twins = pytest.mark.parametrize(
    "rule",
    [pytest.param(rule, id=rule.name, marks=depth(rule)) for rule in all_rules().values()],
)


@cache
def checkup_of(rule: str, case: str) -> Checkup:
    """The checkup of a case, recorded as a user would record it."""
    of_a_gpu = {TIME_SYNC, MEMORY_RETRIES} & set(all_rules()[rule].needs)
    if of_a_gpu and not torch.cuda.is_available():
        pytest.skip("its cases train on a GPU")
    specimen = Specimen(f"{rule}-{case}", f"{rule}/{case}", (), "a case")
    return check(Run.load(recording(specimen, experiment=experiment_for(all_rules()[rule]))))


def experiment_for(rule: Rule) -> str | None:
    """What a user tries to hear of a rule: nothing, preflight, or an experiment of its own."""
    needed = {signal for signal in rule.needs if signal.per is Per.TRIAL}
    if REPLAY_LOSS in needed:
        return "replay"
    if CURE_LOSS in needed:
        return "cures"
    makers = [each for each in all_experiments().values() if needed <= set(each.emits)]
    if not needed:
        return None
    return "preflight" if any(each.preflight for each in makers) else makers[0].name


@cache
def exceptions_of_the_zoo() -> set[str]:
    rows = json.loads(TABLES[Regime.WHOLE].read_text())
    return {name for row in rows for name in row.get("exceptions", ())}


@rules
def test_file_name_function_and_rule_are_one_word(rule: Rule) -> None:
    module = inspect.getmodule(rule.function)
    assert module is not None
    assert module.__name__ == f"holter.diagnosis.rules.{rule.function.__name__}"
    assert rule.name == rule.function.__name__.replace("_", "-")
    assert module.__doc__ is not None
    assert module.__doc__.strip() == rule.title


@rules
def test_page_has_all_headings_in_order_and_none_is_empty(rule: Rule) -> None:
    assert re.findall(r"^## (.+)$", rule.doc, re.M) == list(HEADINGS)
    assert all(rule.section(heading) for heading in HEADINGS)


@rules
def test_what_it_does_is_short(rule: Rule) -> None:
    assert len(re.findall(r"[.!?](?=\s|$)", rule.section("What it does"))) <= 3


@rules
def test_the_example_is_a_bad_line_and_a_good_one(rule: Rule) -> None:
    fence, bad, good, end = rule.section("Example").splitlines()
    assert (fence, end) == ("```python", "```")
    assert bad.rstrip().endswith("# bad")
    assert good.rstrip().endswith("# good")


@rules
def test_page_is_one_sentence_first(rule: Rule) -> None:
    assert rule.title.endswith(".")
    assert rule.doc.splitlines()[1] == ""


@rules
def test_every_option_has_a_default_and_a_description(rule: Rule) -> None:
    assert all(default is not inspect.Parameter.empty for default in rule.options.values())
    assert all(rule.option_docs.values())


@rules
def test_every_exception_has_a_sentence_and_a_name_of_its_own(rule: Rule) -> None:
    names = [each.name for each in rule.exceptions]
    assert len(set(names)) == len(names)
    assert NO_DAMAGE not in names
    assert all(each.because.endswith(".") for each in rule.exceptions)


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        pytest.param(rule, each.name, marks=depth(rule))
        for rule in all_rules().values()
        for each in rule.exceptions
    ],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_every_exception_has_a_specimen_that_needs_it(rule: Rule, name: str) -> None:
    case = f"odd_{name.replace('-', '_')}"
    if (CASES / rule.name / f"{case}.py").exists():
        checkup = checkup_of(rule.name, case)
        assert name in {each.exception for each in checkup.normal if each.rule == rule.name}
        assert rule.name not in {each.rule for each in checkup.findings}
    else:  # a specimen of the zoo, as `python -m bench.accuracy --write` counted it
        assert f"{rule.name}/{name}" in exceptions_of_the_zoo(), (
            f"add cases/{rule.name}/{case}.py, or count a specimen with bench.accuracy --write"
        )


@rules
def test_says_how_to_confirm(rule: Rule) -> None:
    assert 1 <= len(rule.experiments) <= 2


@rules
def test_needs_exist(rule: Rule) -> None:
    # These are about runs that may have no signals.
    without = (
        *("unapplied-gradients", "out-of-memory", "missing-rank", "hung-rank"),
        *("nonfinite-variables", "uncalled-methods"),
    )
    assert rule.needs or rule.name in without
    assert all(CATALOGUE[signal.name] is signal for signal in rule.needs)


def test_causes_and_families_name_rules_that_exist() -> None:
    rules = set(all_rules())
    assert {rule for family in FAMILIES.values() for rule in family} <= rules
    assert {cause for causes, _ in CAUSES for cause in causes} <= rules
    assert {name for _, effects in CAUSES for name in effects} <= rules | set(FAMILIES)
    assert {name for name, rule in all_rules().items() if rule.symptom} <= {
        rule for family in FAMILIES.values() for rule in family
    }


@rules
def test_sick_case_is_found_and_leads(rule: Rule) -> None:
    leading = diagnose(checkup_of(rule.name, "sick")).leading
    assert leading is not None
    assert leading.rule == rule.name
    assert leading.evidence
    assert leading.fix


@rules_with_twins
def test_healthy_twin_is_clear_of_every_rule(rule: Rule) -> None:
    checkup = checkup_of(rule.name, "healthy")
    assert checkup.findings == ()
    assert rule.name in {each.rule for each in checkup.clear}
    assert not [each for each in checkup.not_examined if "failed" in each.because]


def test_every_case_belongs_to_a_rule() -> None:
    assert {folder.name for folder in CASES.iterdir() if folder.is_dir()} == set(all_rules())
