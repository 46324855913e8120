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
ERROR  outside-optimizer  (certain, procedure, since step 0)
  12 of 14 trainable parameters get gradients but are in no optimizer: features.0.weight,
  features.0.bias and 10 more

  evidence      grad.norm  features.0.weight  steps 0-299   median 0.41, never applied
                grad.norm  features.0.bias    steps 0-299   median 0.02, never applied
  explains      flat-curve: loss 2.30 at step 0, 2.30 at step 299
  ruled out     tiny-rate: lr 0.1 on all 300 steps
                zero-gradients: smallest total norm 0.2
  confirm       `print(len(list(model.parameters())), sum(len(g["params"]) for g in
                optimizer.param_groups))`
  fix           build the optimizer after the last layer was added:
                `torch.optim.SGD(model.parameters(), lr=0.1)`
  more          holter explain outside-optimizer

also found
  WARNING  odd-norms  preview  gradient norm of classifier.weight is 40 times its median on 3 of
           300 steps (hint, since step 17)

normal
  odd-norms  pre-clip norm 11,140 on one step of 300; update unchanged

not examined
  no data.batch_size in this run: same-batches
  no amp.scale, amp.skipped in this run: skipped-updates

300 steps, 3 findings, 2 rules clear, 2 not examined, watching cost 0.7 % of the time
""",
    "unknown": """\
ERROR  flat-curve  cause unknown  (likely, procedure, since step 0)
  loss 2.30 at step 0, 2.30 at step 299

  evidence      loss  steps 0-299   median of the first 30 steps 2.303, of the last 30 2.302
  ruled out     tiny-rate: lr 0.1 on all 300 steps
                zero-gradients: smallest total norm 0.2
  not examined  same-batches: no data.batch_size in this run
                skipped-updates: no amp.scale, amp.skipped in this run
  would tell    Train on one batch only: a model that can learn drives its loss to the floor.
                Repeat the run with `lr` ten times as large.
  meanwhile     find out why the model does not learn before training on
  more          holter explain flat-curve

300 steps, 1 finding, 2 rules clear, 2 not examined, watching cost 0.7 % of the time
""",
    "preview": """\
WARNING  odd-norms  preview  (hint, numerics, since step 17)
  gradient norm of classifier.weight is 40 times its median on 3 of 300 steps

  evidence      grad.total_norm  a_rather_long_optimizer_name  step 17
                  norm 8.2 at step 17 against a median of 0.2 over the 100 steps before; the
                  loss of the same step is inside its usual range
  confirm       Look at it.
  fix           no change is needed as long as the gradients are clipped
  more          holter explain odd-norms

300 steps, 1 finding, 2 rules clear, watching cost 0.7 % of the time
""",
    "nothing": """\
nothing wrong found  3 rules clear, 2 not examined, 300 steps

normal
  odd-norms  pre-clip norm 11,140 on one step of 300; update unchanged

clear
  tiny-rate       lr 0.1 on all 300 steps
  zero-gradients  smallest total norm 0.2
  odd-norms

not examined
  no data.batch_size in this run: same-batches
  no amp.scale, amp.skipped in this run: skipped-updates

watching cost 0.7 % of the time
""",
    "nothing-examined": """\
nothing was examined  no rule could be applied to 1 step

not examined
  no data.batch_size in this run: same-batches
  no amp.scale, amp.skipped in this run: skipped-updates

cost of watching not measured
""",
    "no-steps": """\
no training step was recorded  there is nothing to judge

cost of watching not measured
""",
    "failed": """\
nothing wrong found  2 rules clear, 121 steps

the training ended with ValueError at step 120: bad

clear
  tiny-rate       lr 0.1 on all 300 steps
  zero-gradients  smallest total norm 0.2

watching cost 0.28 % of the time
""",
    "interrupted": """\
ERROR  flat-curve  cause unknown  (likely, procedure, since step 0)
  loss 2.30 at step 0, 2.30 at step 299

  evidence      loss  steps 0-299   median of the first 30 steps 2.303, of the last 30 2.302
  would tell    Train on one batch only: a model that can learn drives its loss to the floor.
                Repeat the run with `lr` ten times as large.
  meanwhile     find out why the model does not learn before training on
  more          holter explain flat-curve

the training was interrupted after 300 steps

300 steps, 1 finding, 0 rules clear, watching cost 0.7 % of the time
""",
    "running": """\
nothing wrong found  2 rules clear, 300 steps

the recording is not closed: the training still runs, or was killed

clear
  tiny-rate       lr 0.1 on all 300 steps
  zero-gradients  smallest total norm 0.2

watching cost 0.7 % of the time
""",
    "notes": """\
nothing wrong found  2 rules clear, 300 steps

clear
  tiny-rate       lr 0.1 on all 300 steps
  zero-gradients  smallest total norm 0.2

could not see
  the optimizer of model.head is built in compiled code
  no loader was seen

watching cost 0.7 % of the time
""",
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_whole_screen(name: str) -> None:
    assert text.render(*SITUATIONS[name]) == SCREENS[name]


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
            whole = line.startswith(("ERROR", "  more", "  evidence"))  # names are never cut
            assert whole or len(line) <= width, line


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
    shown = text.render(run(), Checkup((OUTSIDE, FLAT, *others)))
    assert "and 34 more" in shown
    assert "42 findings" in shown
    assert len(shown.splitlines()) < 40


def test_control_characters_of_the_training_do_not_reach_the_terminal() -> None:
    shown = text.render(run(notes=["a\x1b[31mred\nnote\x07"]), Checkup())
    assert "\x1b" not in shown
    assert "\x07" not in shown


def test_a_folder_and_its_ranks_are_named(tmp_path: Path) -> None:
    for rank in (0, 1):
        (tmp_path / f"rank-{rank}").mkdir()
    recorded = dataclasses.replace(run(), path=tmp_path, rank=1)
    assert text.render(recorded, Checkup()).endswith(f"run: {tmp_path} (rank 1 of 2)\n")


def test_a_large_share_of_a_short_run_comes_with_its_seconds() -> None:
    assert "watching cost 30 % of the time (0.2 s; the first 2 s are free)" in text.render(
        run(duration=0.7), Checkup()
    )
