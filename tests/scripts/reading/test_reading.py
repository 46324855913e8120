"""What `read` does with all readers: failures, lines, options, and unusual syntax."""

from collections.abc import Iterator
from pathlib import Path
from textwrap import indent

import pytest

from holter.scripts.reading import read, reader
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Pattern, Source


def test_a_reader_that_fails_loses_nothing_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(source: Source) -> Iterator[Pattern]:
        raise TypeError("a mistake of ours")

    text = "import torch\nfor x in loader:\n    loss(x).backward()\n    optimizer.step\n"
    expected = read(text)
    assert expected
    every = (reads(broken), *reader.readers())
    monkeypatch.setattr(reader, "readers", lambda: every)
    failures: list[Exception] = []
    assert read(text, failures=failures) == expected
    assert [str(each) for each in failures] == ["a mistake of ours"]
    with pytest.raises(TypeError):
        read(text)


@pytest.mark.parametrize(
    "text",
    [
        "def f(x, y=1, /):\n    return x\nf(0)\n",
        "def f(*, y=[]):\n    y.append(1)\nf()\n",
        "x = x[()]\nfor i in range(9):\n    x = model(x[()])\n",
        "class A:\n    import push\n    def sample(self, n):\n        return list(self.x)[-n:]\n",
        "x[...] = x[:]\nlambda: 0\nprint(*a, **b)\n",
    ],
)
def test_unusual_syntax_breaks_no_reader(text: str) -> None:
    read(text)


MISTAKE = "rng.shuffle(x)\nrng.shuffle(y)\n"


@pytest.mark.parametrize(
    "text",
    [
        'if args.fault == "x":\n' + indent(MISTAKE, "    "),
        "if cfg.shuffled:\n    pass\nelse:\n" + indent(MISTAKE, "    "),
        "def unused(x, y):\n" + indent(MISTAKE, "    "),
    ],
)
def test_what_only_an_option_runs_is_not_reported(text: str) -> None:
    assert {pattern.kind for pattern in read(MISTAKE)} == {"unpaired shuffle"}
    assert read(text) == []


@pytest.mark.parametrize("text", [MISTAKE + "def f(:", "x = 1\n  y = 2", "a\0b"])
def test_a_source_that_does_not_parse_has_no_pattern(text: str) -> None:
    assert read(text) == []


def test_a_pattern_names_its_line_and_statement() -> None:
    (pattern,) = read("\n" + MISTAKE)
    assert (pattern.line, pattern.code) == (3, "rng.shuffle(y)")


def test_each_reader_is_found_once_and_has_a_sentence() -> None:
    every = [each.function for each in reader.readers()]
    assert len(set(every)) == len(every) > 300
    assert all(each.__doc__ for each in every)
    assert not [each for each in every if each.__name__.startswith("_")]


def test_no_module_of_readers_is_left_out() -> None:
    folder = Path(reader.__file__).parent
    marked = sum(path.read_text().count("\n@reads\n") for path in folder.rglob("*.py"))
    assert marked == len(reader.readers())


def test_patterns_of_one_line_and_kind_have_one_order(monkeypatch: pytest.MonkeyPatch) -> None:
    def several(source: Source) -> Iterator[Pattern]:
        yield from (Pattern("kind", 1, "x = 1", name) for name in "hbdacgfe")

    monkeypatch.setattr(reader, "readers", lambda: (reads(several),))
    assert "".join(pattern.subject for pattern in read("x = 1")) == "abcdefgh"
