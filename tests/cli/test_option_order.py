"""Options of holter after the target: they work, or one sentence says that they are the script's.

Over the whole command table: a new command or a new option is covered as soon as it exists.
"""

import argparse
import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holter._cli import COMMANDS, main, make_parser
from holter._cli.parsing import parse
from holter._cli.try_options import parser_of
from holter.lab.experiments import all_experiments
from holter.record.errors import HolterError

trying = importlib.import_module("holter._cli.try")
SCRIPTS = {"run", "doctor", "seeds", "try"}  # what follows a script is passed to it
EXPERIMENTS = (*all_experiments(), "preflight", "cures", "replay")


TARGETS = {
    "check": ["a"],
    "diff": ["a", "b"],
    "explain": ["flat-loss"],
    "schedule": ["one-cycle", "--peak", "2", "--steps", "9"],
    "show": ["a"],
}


def own_parser(command: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = parse(make_parser(), words_of(command)).parser
    return parser


def words_of(command: str, *options: str, after: bool = True) -> list[str]:
    targets = TARGETS.get(command, [])
    first, last = (targets, options) if after else (options, targets)
    return [command, *first, *last]


def options(parser: argparse.ArgumentParser) -> Iterator[list[str]]:
    """Every option of a command with a value that it takes."""
    for action in parser._actions:
        if not action.option_strings or "--help" in action.option_strings:
            continue
        if action.nargs == 0:
            yield [action.option_strings[-1]]
            continue
        for value in (*(action.choices or ()), "1", "1/2", "none"):
            words = [action.option_strings[-1], str(value)]
            try:
                parser._get_values(action, [str(value)])
            except argparse.ArgumentError:
                continue
            yield words
            break
        else:
            raise AssertionError(f"no value for {action.option_strings}")


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in SCRIPTS])
def test_options_may_follow_what_is_examined(command: str) -> None:
    parser = make_parser()
    for option in options(own_parser(command)):
        if option[0] in TARGETS.get(command, []):  # a required one, which stands there already
            continue
        after = vars(parse(parser, words_of(command, *option)))
        before = vars(parse(parser, words_of(command, *option, after=False)))
        assert {**after, "parser": None} == {**before, "parser": None}, option


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_options_may_follow_a_run_and_a_function(experiment: str, tmp_path: Path) -> None:
    (tmp_path / "meta.json").write_text("{}")
    for option in options(parser_of(script=False)):
        if option == ["-m"]:  # then it is a script
            continue
        for target in ("package.module:setup", str(tmp_path)):
            after = vars(trying._parse([experiment, target, *option]))
            before = vars(trying._parse([experiment, *option, target]))
            assert {**after, "words": None} == {**before, "words": None}, option
            assert (after["target"], after["arguments"]) == (target, [])


@pytest.mark.parametrize("command", ["run", "doctor", *(f"try {name}" for name in EXPERIMENTS)])
def test_what_follows_a_script_is_passed_to_it(command: str, tmp_path: Path) -> None:
    if command == "try replay":
        return  # its target is always a run
    name, *words = [*command.split(), "train.py", "--json", "--out=x", "--epochs", "3"]
    args = trying._parse(words) if name == "try" else parse(make_parser(), [name, *words])
    assert args.arguments == ["--json", "--out=x", "--epochs", "3"]
    assert args.format == "text"
    assert args.mistakable == ["--json", "--out=x"]


@pytest.fixture
def script(here: Path) -> Path:
    path = here / "plain.py"
    path.write_text("import sys\nprint(sys.argv[1:])\n# takes --out\n")
    return path


SENTENCE = "holter: --json follows plain.py: passed to the script; to give it to holter, put it"


def test_the_user_is_told_what_the_script_gets(script: Path) -> None:
    words = ["plain.py", "--json", "--out", "x"]  # its source has the second
    done = subprocess.run(
        [sys.executable, "-m", "holter", "run", *words], capture_output=True, text=True, check=True
    )
    assert done.stdout == "['--json', '--out', 'x']\n"
    assert done.stderr.count(SENTENCE) == 1
    assert "--out" not in done.stderr


@pytest.mark.parametrize(
    ("command", "place"),
    [
        ("doctor", "holter._cli.doctor._examined"),
        ("try cures", "holter._cli.curing.execute"),
        ("try preflight", "holter.scripts.recognition.recognise"),
    ],
)
def test_every_command_tells_it_before_the_script_runs(
    command: str,
    place: str,
    script: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def end(*_: object, **__: object) -> int:
        raise HolterError("The end.")

    monkeypatch.setattr(place, end)
    assert main([*command.split(), "plain.py", "--json"]) == 2
    assert capsys.readouterr().err.startswith(SENTENCE)


def test_seeds_takes_the_command_after_two_dashes(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["seeds", "python", "plain.py", "--epochs", "3"])
    assert stop.value.code == 2
    assert "holter seeds: error: unrecognized arguments: --epochs 3" in capsys.readouterr().err
    args = parse(make_parser(), ["seeds", "--n", "2", "--", "python", "plain.py", "--json"])
    assert (args.words, args.mistakable) == (["python", "plain.py", "--json"], ["--json"])


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (["check", "a", "--jsn"], "--json"),
        (["diff", "a", "b", "--rnak", "1"], "--rank"),
        (["try", "cures", "a:b", "--trsut"], "--trust"),
    ],
)
def test_an_unknown_option_gets_the_nearest(
    words: list[str], near: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2
    said = capsys.readouterr().err
    assert f"usage: holter {words[0]}" in said
    assert f"did you mean {near}?" in said


def test_cures_of_a_run_prints_json_after_the_run(
    sick: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("holter._cli.curing.execute", lambda args, report: report(sick))
    assert main(["try", "cures", str(sick), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["diagnosis"]["leading"]["rule"] == "nonfinite-loss"
