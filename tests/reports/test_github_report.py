"""Workflow commands: one line each, escaped."""

import dataclasses
import re

import pytest
from situations import FLAT, SITUATIONS, run

from holter.diagnosis.engine import Checkup
from holter.record.meta import Environment
from holter.reports import github


def test_one_command_a_finding_the_cause_first() -> None:
    lines = github.render(*SITUATIONS["known"]).splitlines()
    assert [line.split(" ")[0] for line in lines] == ["::error", "::error", "::warning"]
    assert lines[0].startswith(
        "::error file=train.py,title=holter%3A outside-optimizer (certain%2C"
    )
    assert "fix: build the optimizer" in lines[0]
    assert lines[1].endswith("%0Aexplained by outside-optimizer")
    assert "preview" in lines[2]


def test_the_cause_may_be_unknown() -> None:
    (line,) = github.render(*SITUATIONS["unknown"]).splitlines()
    assert "%0Acause unknown%0A" in line
    assert "%0Anext: Repeat" in line


def test_escapes() -> None:
    odd = dataclasses.replace(FLAT, summary="100 %\r\n::error::x", fix="", evidence=())
    rendered = github.render(run(environment=Environment(("a,b:c/train.py",))), Checkup((odd,)))
    assert rendered.count("\n") == 1
    assert "::100 %25%0D%0A::error::x%0A" in rendered
    assert "file=a%2Cb%3Ac/train.py,title=" in rendered


def test_a_script_outside_the_repository_is_no_file() -> None:
    for command in (["/root/train.py"], ["../train.py"], ["C:\\x\\train.py"], ["torchrun"], []):
        assert "file=" not in github.render(
            run(environment=Environment(tuple(command))), Checkup((FLAT,))
        )
    assert "file=src/train.py," in github.render(
        run(environment=Environment(("src\\train.py",))), Checkup((FLAT,))
    )


def test_a_finding_from_the_source_points_at_its_line() -> None:
    read = dataclasses.replace(FLAT, place="train.py:48")
    train = run(environment=Environment(("src/train.py",)))
    assert "file=src/train.py,line=48," in github.render(train, Checkup((read,)))
    beside = dataclasses.replace(FLAT, place="model.py:7")
    assert "file=src/train.py,title=" in github.render(train, Checkup((beside,)))


def test_nothing_found_is_a_notice() -> None:
    assert github.render(*SITUATIONS["nothing"]) == (
        "::notice file=train.py,title=holter%3A learned"
        "::loss 2.25 → 0.154; no problem found; 2 rules clear, 2 not examined\n"
    )


# What the runner of GitHub Actions parses: a command, properties that it knows, a message.
COMMAND = re.compile(
    r"::(?:error|warning|notice)"
    r"(?: (?:file|line|endLine|col|endColumn|title)=[^,:\r\n]*"
    r"(?:,(?:file|line|endLine|col|endColumn|title)=[^,:\r\n]*)*)?"
    r"::(?P<message>[^\r\n]+)"
)


@pytest.mark.parametrize("situation", SITUATIONS)
def test_every_line_is_a_command_that_the_runner_knows(situation: str) -> None:
    lines = github.render(*SITUATIONS[situation]).split("\n")
    assert lines.pop() == ""
    for line in lines:
        parsed = COMMAND.fullmatch(line)
        assert parsed is not None, line
        assert not re.search(r"%(?!25|0D|0A)", parsed["message"])
