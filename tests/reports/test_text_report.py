"""The text report, compared whole."""

import dataclasses
import re
from pathlib import Path

import pytest
from situations import FLAT, ODD, OUTSIDE, SITUATIONS, run

from holter.diagnosis.engine import Checkup
from holter.record.findings import Finding
from holter.reports import text

SCREENS = {
    "known": """\
holter: learned nothing. loss stayed at 2.3 for 300 steps

ERROR  The run has outside-optimizer                                 outside-optimizer · certain
  12 of 14 trainable parameters get gradients but are in no optimizer: features.0.weight,
  features.0.bias and 10 more
  gradient norm, features.0.weight: median 0.41, never applied
  gradient norm, features.0.bias: median 0.02, never applied
  also explains: flat-curve

fix    build the optimizer after the last layer was added: `torch.optim.SGD(model.parameters(),
       lr=0.1)`
prove  `print(len(list(model.parameters())), sum(len(g["params"]) for g in
       optimizer.param_groups))`
also   found: odd-norms
more   holter explain outside-optimizer · holter check --all

300 steps · holter took 0.2 s
""",
    "unknown": """\
holter: learned nothing. loss stayed at 2.3 for 300 steps

ERROR  cause unknown                                                         flat-curve · likely
  loss 2.30 at step 0, 2.30 at step 299
  loss: median of the first 30 steps 2.303, of the last 30 2.302
  ruled out: tiny-rate, zero-gradients
  not tested: same-batches, skipped-updates

next   Train on one batch only: a model that can learn drives its loss to the floor.
       Repeat the run with `lr` ten times as large.
more   holter explain flat-curve · holter check --all

300 steps · holter took 0.2 s
""",
    "preview": """\
holter: learned. loss 2.25 → 0.154

WARNING  The run has odd-norms                                        odd-norms · hint · preview
  gradient norm of classifier.weight is 40 times its median on 3 of 300 steps
  gradient norm, a_rather_long_optimizer_name: norm 8.2 at step 17 against a median of 0.2 over
  the 100 steps before; the loss of the same step is inside its normal range

fix    no change is needed as long as the gradients are clipped
prove  Look at it.
more   holter explain odd-norms · holter check --all

300 steps · holter took 0.2 s
""",
    "nothing": """\
holter: learned. loss 2.25 → 0.154
        300 steps, no problem found; holter took 0.2 s
details: holter check --all (1 odd but normal)
""",
    "nothing-examined": """\
holter: outcome unknown. loss 1 → 1; 1 of the 20 losses needed
        1 step, no rule could be applied; cost not measured
details: holter check --all
""",
    "no-steps": """\
holter: no training step was recorded. there is nothing to diagnose
details: holter check --all
""",
    "failed": """\
holter: broke at step 120. ValueError: bad
        121 steps; holter took 0.1 s
details: holter check --all
""",
    "interrupted": """\
holter: learned nothing. loss stayed at 2.3 for 300 steps
        the training was interrupted after 300 steps

ERROR  cause unknown                                                         flat-curve · likely
  loss 2.30 at step 0, 2.30 at step 299
  loss: median of the first 30 steps 2.303, of the last 30 2.302

next   Train on one batch only: a model that can learn drives its loss to the floor.
       Repeat the run with `lr` ten times as large.
more   holter explain flat-curve · holter check --all

300 steps · holter took 0.2 s
""",
    "running": """\
holter: learned. loss 2.25 → 0.154
        the recording is incomplete: the training is still running, or was killed
        300 steps, no problem found; holter took 0.2 s
details: holter check --all
""",
    "notes": """\
holter: learned. loss 2.25 → 0.154
        300 steps, no problem found; holter took 0.2 s
details: holter check --all (2 not recorded)
""",
}

EVERYTHING = """\
holter: learned nothing. loss stayed at 2.3 for 300 steps

ERROR  The run has outside-optimizer                                 outside-optimizer · certain
  12 of 14 trainable parameters get gradients but are in no optimizer: features.0.weight,
  features.0.bias and 10 more

  since         step 0, level: procedure
  evidence      gradient norm, features.0.weight, steps 0-299
                  median 0.41, never applied
                gradient norm, features.0.bias, steps 0-299
                  median 0.02, never applied
  explains      flat-curve: loss 2.30 at step 0, 2.30 at step 299
  ruled out     tiny-rate: lr 0.1 on all 300 steps
                zero-gradients: smallest total norm 0.2
  not examined  same-batches: no loader was seen
                skipped-updates: the training uses no GradScaler
  prove         `print(len(list(model.parameters())), sum(len(g["params"]) for g in
                optimizer.param_groups))`
  fix           build the optimizer after the last layer was added:
                `torch.optim.SGD(model.parameters(), lr=0.1)`

curves
  loss                2.3 x▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁ 2.3
  learning rate       0.1 ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁ 0.1

also found
  WARNING  odd-norms · hint · preview · since step 17
           gradient norm of classifier.weight is 40 times its median on 3 of 300 steps
           fix: no change is needed as long as the gradients are clipped

steps read
  300 of 300  loss, learning rate, watch time

300 steps, 3 findings, 2 rules clear, 2 not examined, holter took 0.2 s
"""

HEALTHY = """\
holter: learned. loss 2.25 → 0.154

curves
  loss                2.3 x█▇▇▆▆▆▅▅▅▄▄▄▄▃▃▃▃▃▃▂▂▂▂▂▂▂▂▂▂▁▁▁▁▁▁▁▁▁▁▁▁ 0.114
  learning rate       0.1 ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁ 0.1

odd but normal
  odd-norms  pre-clip norm 11,140 on one step of 300; update unchanged

clear
  tiny-rate       lr 0.1 on all 300 steps
  zero-gradients  smallest total norm 0.2

not examined
  no loader was seen: same-batches
  the training uses no GradScaler: skipped-updates

steps read
  300 of 300  loss, learning rate, watch time

300 steps, 0 findings, 2 rules clear, 2 not examined, holter took 0.2 s
"""


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_whole_screen(name: str) -> None:
    assert text.render(*SITUATIONS[name]) == SCREENS[name]


def test_everything() -> None:
    assert text.render(*SITUATIONS["known"], whole=True) == EVERYTHING
    assert text.render(*SITUATIONS["nothing"], whole=True) == HEALTHY


def test_color_adds_nothing_but_color() -> None:
    for situation in SITUATIONS.values():
        colored = text.render(*situation, color=True)
        assert "\x1b[" in colored
        bare = re.sub(r"\x1b\[[0-9;]*m", "", colored)
        assert [line.rstrip() for line in bare.splitlines()] == text.render(*situation).splitlines()


@pytest.mark.parametrize("width", [60, 80, 100])
def test_lines_keep_to_the_width(width: int) -> None:
    for name in ("unknown", "nothing", "failed", "notes"):
        for line in text.render(*SITUATIONS[name], width=width).splitlines():
            assert len(line) <= width, line


def test_a_long_name_is_never_cut() -> None:
    name = "model." + "layers." * 20 + "weight"
    finding = Finding(
        ODD.rule, ODD.severity, ODD.confidence, ODD.level, f"of {name}", 0, ODD.evidence, "none"
    )
    assert name in text.render(run(), Checkup((finding,)))


def test_many_findings_stay_on_the_screen() -> None:
    others = tuple(
        Finding("odd-norms", ODD.severity, ODD.confidence, ODD.level, f"number {n}", n, (), "")
        for n in range(40)
    )
    checkup = Checkup((OUTSIDE, FLAT, *others))
    assert "also   found: odd-norms\n" in text.render(run(), checkup)
    shown = text.render(run(), checkup, whole=True)
    assert "number 39" in shown
    assert "42 findings" in shown


def test_the_first_screen_has_25_lines_however_much_there_is_to_say() -> None:
    evidence = tuple(dataclasses.replace(ODD.evidence[0], says=f"{n} " * 60) for n in range(9))
    long = dataclasses.replace(
        FLAT, summary="word " * 60, evidence=evidence, fix="word " * 60, rule="outside-optimizer"
    )
    shown = text.render(run(status="interrupted"), Checkup((long, FLAT, ODD)))
    assert 18 <= len(shown.splitlines()) <= text.SCREEN
    assert all(len(text.render(*each).splitlines()) <= text.SCREEN for each in SITUATIONS.values())


def test_a_healthy_run_has_three_lines() -> None:
    assert len(text.render(*SITUATIONS["nothing"]).splitlines()) == 3


def test_control_characters_of_the_training_do_not_reach_the_terminal() -> None:
    shown = text.render(run(notes=["a\x1b[31mred\nnote\x07"]), Checkup(), whole=True)
    assert "red note" in shown
    assert "\x1b" not in shown
    assert "\x07" not in shown


def test_a_folder_and_its_ranks_are_named(tmp_path: Path) -> None:
    for rank in (0, 1):
        (tmp_path / f"rank-{rank}").mkdir()
    recorded = dataclasses.replace(run(), path=tmp_path, rank=1)
    assert f"holter check {tmp_path} --rank 1 --all" in text.render(recorded, Checkup())
    shown = text.render(recorded, Checkup(), whole=True)
    assert shown.endswith(f"run: {tmp_path} (rank 1 of 2)\n")


def test_the_cost_of_a_short_run_is_in_seconds_of_a_long_one_in_percent() -> None:
    assert "; holter took 0.2 s\n" in text.render(run(duration=0.7), Checkup())
    assert "; holter took 0.1 % of the time\n" in text.render(run(duration=210.0), Checkup())
