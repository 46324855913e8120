"""The search for cures on a training whose answer to every change is known."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from holter import Run, check, diagnose
from holter.diagnosis.confirming import confirmed
from holter.diagnosis.engine import all_rules
from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.cures import Cures
from holter.diagnosis.facts.tried import Effect
from holter.diagnosis.rules.curable_failure import curable_failure
from holter.lab.cures.searching import CureTrial, Pace, Search
from holter.lab.writing import Lab
from holter.record import Writer
from holter.record.events import CureTried
from holter.record.findings import Confidence, Finding
from holter.record.signals import CURE_LOSS, LOSS, LR, TARGET_ENTROPY
from holter.record.trials import UNCHANGED

STEPS = 200
Curve = Callable[[int], float]  # of a step, the loss


def flat(_: int) -> float:
    return 2.3


def learned(step: int) -> float:
    return 2.3 * 0.98**step + 0.1


def record(
    path: Path, curve: Curve, steps: int = STEPS, *, seed: int = 0, predicts: bool = False
) -> None:
    noise = np.random.default_rng(seed).normal(0, 0.02, steps)
    values = np.array([curve(step) for step in range(steps)]) + noise
    with closing(Writer(path)) as writer:
        columns = {(LOSS, ""): values, (LR, "optimizer/0"): np.full(steps, 0.1)}
        if predicts:  # the best constant prediction is known
            columns[TARGET_ENTROPY, "cross_entropy"] = np.full(steps, 2.3)
        for (signal, owner), column in columns.items():
            table = column.astype(np.float32).reshape(-1, 1)
            writer.write_many(
                signal.stream, range(steps), [0.0] * steps, [(signal.name, (owner,))], table
            )
        writer.update_meta(status="finished", steps=steps)


class KnownBench:
    """Writes the curve that a change is known to give; changes without one alter nothing."""

    jobs = 1

    def __init__(self, path: Path, curves: dict[str, Curve], unchanged: Curve = flat) -> None:
        self._path, self._curves, self._unchanged = path, curves, unchanged
        self.made: list[CureTrial] = []

    def probe(self, trials: Sequence[str]) -> set[str]:
        return set(trials) & set(self._curves)

    def run(self, trials: Sequence[CureTrial], until: float) -> Iterator[CureTried]:
        for trial in trials:
            if time.monotonic() > until:
                return
            self.made.append(trial)
            curve = self._curves.get(trial.trial, self._unchanged)
            folder = f"cures/{len(self.made)}"
            record(self._path / folder, curve, trial.steps, seed=len(self.made))
            altered = int(trial.trial in self._curves)
            yield CureTried(trial.trial, trial.repeat, folder, trial.steps, 0.1, altered)


def searched(
    path: Path,
    curves: dict[str, Curve],
    *,
    unchanged: Curve = flat,
    seconds: float = 60.0,
    predicts: bool = False,
) -> tuple[Cures, KnownBench]:
    record(path, unchanged, predicts=predicts)
    bench = KnownBench(path, curves, unchanged)
    with Lab(path) as lab:
        Search(bench, lab, Pace(0.0, 0.01), seconds=seconds, tell=lambda _: None).search()
    cures = Facts(Run.load(path)).cures
    assert cures is not None
    return cures, bench


def test_a_training_that_learns_is_left_alone(tmp_path: Path) -> None:
    cures, bench = searched(tmp_path / "run", {}, unchanged=learned)
    assert bench.made == []
    assert not cures.tried
    assert "curable-failure" in {each.rule for each in check(Run.load(tmp_path / "run")).clear}


def test_the_smallest_of_several_cures_is_named(tmp_path: Path) -> None:
    cures, _ = searched(
        tmp_path / "run",
        {
            "learning rate x 0.01": learned,
            "gradients cleared after each step": learned,
            "reference optimizer": learned,
        },
    )
    assert cures.smallest is not None
    assert cures.smallest.name == "gradients cleared after each step"
    assert len(cures.smallest.ends) == 3
    finding = diagnose(check(Run.load(tmp_path / "run"))).leading
    assert finding is not None
    assert finding.rule == "uncleared-gradients"
    assert finding.confirmed_by == "gradients cleared after each step"
    assert str(finding.confidence) == "certain"


def test_one_lucky_seed_is_no_cure(tmp_path: Path) -> None:
    lucky = iter([True])  # the first time only

    def curve(step: int) -> float:
        nonlocal now
        if step == 0:
            now = next(lucky, False)
        return learned(step) if now else flat(step)

    now = False
    cures, _ = searched(tmp_path / "run", {"dropout off": curve, "weight decay 0": curve})
    assert cures.smallest is None
    assert "curable-failure" not in {
        each.rule for each in check(Run.load(tmp_path / "run")).findings
    }


def test_two_changes_that_help_are_tried_together(tmp_path: Path) -> None:
    def better(step: int) -> float:
        return 2.3 if step < 150 else 2.0  # lower, but no learning

    pair = "inputs standardised and learning rate x 0.1"
    cures, _ = searched(
        tmp_path / "run",
        {"inputs standardised": better, "learning rate x 0.1": better, pair: learned},
    )
    assert cures.tried["inputs standardised"].effect is not Effect.NONE
    if cures.tried["inputs standardised"].effect is Effect.HELPS:
        assert cures.smallest is not None
        assert cures.smallest.name == pair


def test_a_reference_that_learns_localises_the_fault(tmp_path: Path) -> None:
    cures, _ = searched(tmp_path / "run", {"reference model with the reference optimizer": learned})
    assert cures.smallest is None
    assert cures.localising is not None
    assert cures.localising.cause.part == "model"


def test_learnable_labels_that_are_learned_blame_the_data(tmp_path: Path) -> None:
    curves: dict[str, Curve] = {"labels computed from the inputs": learned}
    searched(tmp_path / "run", {**curves, "reference optimizer": flat})
    finding = diagnose(check(Run.load(tmp_path / "run"))).leading
    assert finding is not None
    assert finding.rule == "unrelated-labels"


def test_what_is_known_is_not_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "run"
    curves: dict[str, Curve] = {"dropout off": learned}
    _, first = searched(path, curves)
    bench = KnownBench(path, curves)
    with Lab(path) as lab:
        Search(bench, lab, Pace(0.0, 0.01), seconds=60, tell=lambda _: None).search()
    assert len(first.made) > 3
    assert bench.made == []


def test_without_time_nothing_is_concluded(tmp_path: Path) -> None:
    cures, bench = searched(tmp_path / "run", {"dropout off": learned}, seconds=0.0)
    assert bench.made == []
    assert "dropout off" in cures.untried
    assert UNCHANGED not in cures.tried


@pytest.mark.parametrize("level", [2.2, 2.6])
def test_differences_within_the_noise_are_none(tmp_path: Path, level: float) -> None:
    def near(_: int) -> float:
        return level

    cures, _ = searched(tmp_path / "run", {"dropout off": near})
    assert cures.tried["dropout off"].effect is (Effect.NONE if level < 2.3 else Effect.WORSE)


def suspected(rule: str, confidence: Confidence) -> Finding:
    known = all_rules()[rule]
    return known.finding("seen", confidence=confidence, onset=0, evidence=(), fix="")


def test_a_contradicted_cause_is_withdrawn_unless_it_is_certain(tmp_path: Path) -> None:
    curves: dict[str, Curve] = {
        "gradients cleared after each step": learned,
        "inputs standardised": flat,
        "learning rate x 0.1": flat,
    }
    searched(tmp_path / "run", curves)
    facts = Facts(Run.load(tmp_path / "run"))
    (concluded,) = curable_failure.function(facts)
    given = [
        suspected("unscaled-inputs", Confidence.LIKELY),
        suspected("huge-updates", Confidence.LIKELY),  # another factor might help
        suspected("uncleared-gradients", Confidence.HINT),
        concluded,
    ]
    after = confirmed(given, facts, all_rules())
    rules = {finding.rule: finding for finding in after.findings}
    assert set(rules) == {"huge-updates", "uncleared-gradients"}
    assert rules["uncleared-gradients"].confidence is Confidence.CERTAIN
    assert [clear.rule for clear in after.excluded] == ["unscaled-inputs"]
    certain = [suspected("unscaled-inputs", Confidence.CERTAIN), concluded]
    assert "unscaled-inputs" in {f.rule for f in confirmed(certain, facts, all_rules()).findings}


def test_a_finding_of_a_training_that_learned_is_confirmed_if_its_change_helps(
    tmp_path: Path,
) -> None:
    path = tmp_path / "run"
    record(path, learned_less)
    for repeat in (0, 1):
        record(path / f"cures/{repeat}", learned, seed=repeat)
        with Lab(path) as lab:
            name = "inputs standardised"
            lab.write(CURE_LOSS, [1.0], trial=name, first=repeat)
            lab.event(CureTried(name, repeat, f"cures/{repeat}", STEPS, 0.1, 5))
    facts = Facts(Run.load(path))
    given = [suspected("unscaled-inputs", Confidence.LIKELY)]
    (finding,) = confirmed(given, facts, all_rules()).findings
    assert finding.confidence is Confidence.CERTAIN
    assert finding.confirmed_by == "inputs standardised"


def learned_less(step: int) -> float:
    return 1.3 * 0.98**step + 1.0


def partly(step: int) -> float:
    return 0.9 * 0.98**step + 1.4


MODEL = "reference model with the reference optimizer"
TUNED: dict[str, Curve] = {f"learning rate x {factor}": partly for factor in ("0.1", "3", "10")}
TUNED["reference optimizer"] = partly


def leading(path: Path) -> Finding | None:
    return diagnose(check(Run.load(path))).leading


def test_a_reference_that_learns_far_more_than_a_weak_training_blames_the_model(
    tmp_path: Path,
) -> None:
    curves = {MODEL: learned, **TUNED}
    cures, bench = searched(tmp_path / "run", curves, unchanged=partly, predicts=True)
    assert cures.weak
    assert cures.improvement is not None
    assert len(cures.improvement.ends) == 3
    finding = leading(tmp_path / "run")
    assert finding is not None
    assert (finding.rule, finding.confidence) == ("weak-learning", Confidence.LIKELY)
    assert finding.summary.startswith("The model is at fault")
    assert finding.confirmed_by == MODEL
    assert {trial.trial for trial in bench.made} >= set(TUNED)


def test_a_change_that_makes_a_weak_training_learn_names_its_cause(tmp_path: Path) -> None:
    searched(tmp_path / "run", {"inputs standardised": learned, **TUNED}, unchanged=partly)
    finding = leading(tmp_path / "run")
    assert finding is not None
    assert finding.rule == "unscaled-inputs"
    assert finding.preview


def test_what_another_learning_rate_gives_as_well_is_no_cause(tmp_path: Path) -> None:
    curves = {MODEL: learned, "inputs standardised": learned, **TUNED}
    curves["learning rate x 10"] = learned
    cures, _ = searched(tmp_path / "run", curves, unchanged=partly, predicts=True)
    assert cures.tried["learning rate x 10"].effect is Effect.HELPS
    assert cures.improvement is None
    assert leading(tmp_path / "run") is None


@pytest.mark.parametrize("name", ["dropout off", "every parameter trained"])
def test_what_a_sound_training_does_on_purpose_is_not_tried(tmp_path: Path, name: str) -> None:
    cures, _ = searched(tmp_path / "run", {name: learned, **TUNED}, unchanged=partly)
    assert name not in cures.tried
    assert leading(tmp_path / "run") is None


def test_a_weak_training_that_a_change_helps_a_little_is_left_alone(tmp_path: Path) -> None:
    def better(step: int) -> float:
        return 1.2 * 0.98**step + 1.1

    curves = {MODEL: better, **TUNED}
    cures, bench = searched(tmp_path / "run", curves, unchanged=partly, predicts=True)
    assert cures.tried[MODEL].effect is Effect.HELPS
    assert not {trial.trial for trial in bench.made} & set(TUNED)
    assert leading(tmp_path / "run") is None


def test_a_loss_that_compares_no_predictions_gets_no_reference_model(tmp_path: Path) -> None:
    cures, _ = searched(tmp_path / "run", {MODEL: learned, **TUNED}, unchanged=partly)
    assert cures.weak
    assert MODEL not in cures.tried


def test_a_reference_model_that_is_not_validated_may_memorise(tmp_path: Path) -> None:
    def more(step: int) -> float:
        return 1.8 * 0.98**step + 0.5  # a third

    curves = {MODEL: more, **TUNED}
    searched(tmp_path / "half", curves, unchanged=partly, predicts=True)
    assert leading(tmp_path / "half") is None
    searched(tmp_path / "other", {"inputs standardised": more, **TUNED}, unchanged=partly)
    assert leading(tmp_path / "other") is not None


def test_labels_that_are_learned_no_better_than_shuffled_ones_are_named(tmp_path: Path) -> None:
    curves = {"labels shuffled": partly, **TUNED}
    cures, _ = searched(tmp_path / "run", curves, unchanged=partly, predicts=True)
    assert cures.concluded is cures.unrelated is not None
    finding = leading(tmp_path / "run")
    assert finding is not None
    assert (finding.rule, finding.confidence) == ("unrelated-labels", Confidence.HINT)
    assert finding.preview


def test_labels_that_are_learned_better_than_shuffled_ones_are_sound(tmp_path: Path) -> None:
    curves = {"labels shuffled": flat, **TUNED}
    cures, bench = searched(tmp_path / "run", curves, unchanged=partly, predicts=True)
    assert cures.tried["labels shuffled"].effect is Effect.WORSE
    assert [trial.repeat for trial in bench.made if trial.trial == "labels shuffled"] == [0]
    assert leading(tmp_path / "run") is None


def test_a_loss_without_a_term_is_compared_with_its_other_terms(tmp_path: Path) -> None:
    def rest(_: int) -> float:
        return 1.5

    def falling(step: int) -> float:
        return 1.4 * 0.98**step + 0.1

    name, reference = "loss without term 2", "reported loss without term 2"
    cures, bench = searched(tmp_path / "same", {name: rest, reference: rest})
    assert cures.tried[name].effect is Effect.NONE
    assert reference not in cures.tried
    made = [trial.trial for trial in bench.made]
    assert made.index(reference) < made.index(name)
    cures, _ = searched(tmp_path / "other", {name: falling, reference: rest})
    assert cures.smallest is not None
    assert cures.smallest.name == name
