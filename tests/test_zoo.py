"""The corpus itself: every specimen can be made, and its truth is in the catalogue's words."""

import pytest

from bench.accuracy import Result, judge, render
from holter.diagnosis.engine import all_rules
from zoo.recording import recording, script_of
from zoo.regimes import Regime
from zoo.specimens import WORKLOADS, Specimen, corpus

specimens = pytest.mark.parametrize("specimen", corpus(), ids=lambda each: each.name)


@specimens
def test_script_compiles_and_draws_from_its_seed(specimen: Specimen) -> None:
    compile(script_of(specimen, 0), specimen.name, "exec")
    assert script_of(specimen, 1) != script_of(specimen, 2)


@specimens
def test_truth_is_in_the_words_of_the_catalogue(specimen: Specimen) -> None:
    assert specimen.why
    if specimen.healthy:
        assert (specimen.cause, specimen.accepts, specimen.level) == ("", (), None)
    else:
        assert specimen.edits
        assert specimen.cause in all_rules()
        assert set(specimen.accepts) <= set(all_rules()) - {specimen.cause}
        assert specimen.level is not None
        assert specimen.by


def test_there_is_enough_of_everything() -> None:
    faults = [each for each in corpus() if not each.healthy]
    odd = [each for each in corpus() if each.healthy and each.edits]
    assert len([*WORKLOADS.glob("*.py")]) >= 10
    assert len(faults) >= 60
    assert len(odd) >= 40
    assert len({each.cause for each in faults}) >= 40


def test_an_edit_that_does_not_fit_is_told() -> None:
    with pytest.raises(ValueError, match="0 times in the workload"):
        Specimen("x", "tabular_mlp", (("no such line", ""),), "").script  # noqa: B018


def test_a_fault_and_a_healthy_run_are_judged() -> None:
    chosen = {each.name: each for each in corpus()}
    results: list[Result] = []
    for name in ("tabular-softmax-in-model", "tabular_mlp"):
        specimen = chosen[name]
        results.append(judge(specimen, 0, recording(specimen), delay=True))
    fault, sound = results
    assert (fault.verdict, fault.leading) == ("right", "doubled-softmax")
    assert fault.seen is not None
    assert fault.seen <= 50
    assert (sound.verdict, sound.findings) == ("clear", ())
    page = render(results, chosen, Regime.WHOLE)
    assert "right 100.0% (1 of 1)" in page
    assert "| tabular-softmax-in-model |" in page
