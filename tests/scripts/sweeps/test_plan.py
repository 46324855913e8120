"""What a sweep is to run."""

from pathlib import Path

import pytest

from holter.record.errors import HolterError
from holter.scripts.sweeps.plan import Job, Sweep, Variant, variants_of


def test_placeholders_make_variants() -> None:
    words = ["python", "train.py", "--lr", "{lr}", "--opt={opt}", "--seed", "{seed}"]
    variants = variants_of(words, {"lr": ["0.1", "0.3"], "opt": ["sgd"]}, None)
    assert [each.name for each in variants] == ["lr=0.1 opt=sgd", "lr=0.3 opt=sgd"]
    assert variants[1].words == (
        "python",
        "train.py",
        "--lr",
        "0.3",
        "--opt=sgd",
        "--seed",
        "{seed}",
    )


def test_another_command_is_a_variant() -> None:
    variants = variants_of(["train.py"], {}, "python other.py --name 'a b'")
    assert [each.name for each in variants] == ["A", "B"]
    assert variants[1].words == ("python", "other.py", "--name", "a b")


@pytest.mark.parametrize(
    ("words", "vary", "sentence"),
    [
        (["python", "train.py", "{lr}"], {}, "{lr} has no values: add --vary lr="),
        (["python", "train.py"], {"lr": ["1"]}, "--vary lr: the command has no {lr}"),
        (["torchrun", "train.py"], {}, "The command is torchrun train.py; write"),
        (["python", "-u", "train.py"], {}, "write `-- python train.py"),
        (["python"], {}, "The command is python;"),
    ],
)
def test_mistakes_give_a_sentence(
    words: list[str], vary: dict[str, list[str]], sentence: str
) -> None:
    with pytest.raises(HolterError) as raised:
        variants_of(words, vary, None)
    assert sentence in str(raised.value)


def test_a_seed_goes_to_its_place_or_shifts_those_of_the_script(tmp_path: Path) -> None:
    placed = Job(Variant("A", ("python3.12", "t.py", "--seed={seed}")), 7, tmp_path / "A/seed-7")
    assert placed.task.command[-2:] == ("t.py", "--seed=7")
    assert "--reseed" not in placed.task.command
    shifted = Job(Variant("A", ("python", "-m", "pkg.train")), 7, tmp_path / "A/seed-7")
    assert shifted.task.command[-4:] == ("--reseed", "7", "-m", "pkg.train")


def test_a_plan_is_read_again_and_grows_by_seeds_but_not_by_other_commands(tmp_path: Path) -> None:
    variants = variants_of(["python", "train.py", "{lr}"], {"lr": ["1", "2"]}, None)
    Sweep(tmp_path / "s", variants, (0, 1)).save()
    assert Sweep.load(tmp_path / "s").variants == variants
    Sweep(tmp_path / "s", variants, (0, 1, 2)).save()
    assert Sweep.load(tmp_path / "s").seeds == (0, 1, 2)
    with pytest.raises(HolterError, match="different commands"):
        Sweep(tmp_path / "s", variants[:1], (0,)).save()
    with pytest.raises(HolterError, match="not a sweep"):
        Sweep.load(tmp_path)


def test_two_processes_cannot_run_one_sweep(tmp_path: Path) -> None:
    sweep = Sweep(tmp_path, (Variant("A", ("python", "t.py")),), (0,))
    with sweep.locked(), pytest.raises(HolterError, match="Another process"), sweep.locked():
        pass
