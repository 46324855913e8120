"""How `bench.cures` judges what was proposed for a script."""

from bench.cures import Judgement, asked, is_right, render, sampled
from zoo.specimens import Specimen

FAULT = Specimen("no-zero-grad", "tabular_mlp", (), "never cleared", "uncleared-gradients")
SOUND = Specimen("sound", "tabular_mlp", (), "the workload as it is")
CLEARED, SLOWER = "gradients cleared after each step", "learning rate x 0.1"


def test_faults_that_no_change_removes_are_not_asked() -> None:
    causes = {specimen.cause for specimen in asked()}
    assert {"uncleared-gradients", "huge-updates", "tiny-updates", "unreached-parameters"} <= causes
    assert not {"singular-operations", "kept-graphs", "overfitting"} & causes
    assert "" in causes  # healthy scripts


def test_a_change_is_right_that_implies_the_cause_or_one_as_good() -> None:
    assert is_right(FAULT, CLEARED)
    assert not is_right(FAULT, SLOWER)
    fast = Specimen("fast", "tabular_mlp", (), "", "oscillating-loss", ("huge-updates",))
    assert is_right(fast, SLOWER)
    assert not is_right(fast, "learning rate x 10")


def test_verdicts() -> None:
    def verdict(specimen: Specimen, named: str = "", *others: str, bad: bool = True) -> str:
        return Judgement(specimen, "", named, others, bad=bad).verdict

    assert verdict(FAULT, CLEARED, SLOWER) == "smallest"
    assert verdict(FAULT, SLOWER, CLEARED) == "listed"
    assert verdict(FAULT, SLOWER) == "wrong"
    assert verdict(FAULT) == "none"
    assert verdict(FAULT, bad=False) == "learned"
    assert verdict(SOUND) == "clear"
    assert verdict(SOUND, SLOWER) == "proposed"


def test_a_sample_is_the_same_for_the_same_seed() -> None:
    chosen = sampled(asked(), 6, 1)
    assert [specimen.healthy for specimen in chosen] == [False] * 6 + [True] * 3
    assert chosen == sampled(asked(), 6, 1)
    assert chosen != sampled(asked(), 6, 2)


def test_the_page_counts_shares_and_names_misses() -> None:
    page = render(
        [
            Judgement(FAULT, "learned nothing", CLEARED, bad=True),
            Judgement(FAULT, "stalled", SLOWER, bad=True),
            Judgement(FAULT, "learned", bad=False),
            Judgement(SOUND, "learned"),
        ]
    )
    assert "| the right change is named | 1 (33 %) |" in page
    assert "| of those with something to cure | 50 % |" in page
    assert "| no-zero-grad | uncleared-gradients | wrong | learning rate x 0.1 |" in page
    assert "| of these: a change is proposed | 0 |" in page
