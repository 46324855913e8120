"""Plain English: the words that the project avoids do not occur in anything a user reads."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src" / "holter").rglob("*.py"))
SCRIPTS = [*sorted((ROOT / "examples").glob("*.py")), ROOT / "dev.py"]
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "ARCHITECTURE.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
SCHEMAS = sorted((ROOT / "src" / "holter").rglob("*.json"))

AVOIDED = {
    r"\bat last\b": "at the end",
    r"\bat first\b(?! sight)": "initially",
    r"\banew\b": "again, from scratch",
    r"\bmend(s|ed|ing)?\b": "fix",
    r"\bdear\b": "expensive",
    r"\bthe usual\b": "the median, a typical",
    r"\w-fold\b|\dfold\b": "N times",
    r"\bof itself\b": "N % of its norm",
    r"\bby heart\b": "memorised",
    r"\bit speaks\b|\bit is told\b": "it reports, it is detected",
    r"\bnothing to go by\b": "no data for",
    r"\bgo(es)? first\b": "overrides",
    r"\btakes? hold\b": "affects",
    r"\bstray(s|ed|ing)?\b": "deviates",
    r"\bparts? ways\b|\bparted ways\b": "diverges",
    r"\bconstant answer\b": "the best constant prediction",
    r"\bon the side\b": "separately",
    r"\b(is|are) there for\b": "use it for",
    r"\bfault of holter\b": "internal error",
    r"\btroubles?\b": "failure",
    r"\bharm(s|ed)?\b": "damage",
    r"\bhollow green\b": "a meaningless all-clear",
    r"\bas ever\b": "as before",
    r"(?<!--)\ball the same\b(?! collect)": "nevertheless, equal",
    r"\bin vain\b": "without success",
    r"\bfor good\b(?! reason)": "permanently",
    r"\bthe fault lies\b": "the fault is in",
    r"\b(cannot|not) be told\b": "cannot be distinguished, is unknown",
    r"\bwent badly\b": "failed",
    r"\breads? the experiment\b": "uses the experiment",
    r"\bnothing fails\b": "there is no error",
    r"\bwithout a word\b": "silently",
    r"\bfor ever\b": "forever",
    r"\bhalf-way\b": "halfway",
    r"\bdo(es)? no longer\b": "no longer does",
    r"\bthe other way round\b": "reversed, swapped, vice versa",
    r"\botherwise than\b": "differently from",
    r"\b(rose|risen|rises?) by far\b": "rose far",
    r"\bof one's own\b|\bof its own accord\b": "(leave it out)",
}
_AVOIDED = re.compile("|".join(f"(?:{pattern})" for pattern in AVOIDED), re.I)


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Every text of a file that a user may read, with its line."""
    if path.suffix != ".py":
        yield from enumerate(path.read_text().splitlines(), 1)
        return
    tree = ast.parse(path.read_text())
    private = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and node.name.startswith("_")
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in private:
            yield node.lineno, " ".join(node.value.split())


def avoided(path: Path) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{line}: {match.group()!r} in {text[:120]!r}"
        for line, text in texts(path)
        for match in _AVOIDED.finditer(text)
    ]


@pytest.mark.parametrize(
    "path", [*SOURCES, *SCRIPTS, *PAGES, *SCHEMAS], ids=lambda path: str(path.relative_to(ROOT))
)
def test_avoided_words(path: Path) -> None:
    found = avoided(path)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "is_avoided"),
    [
        ("the loss fell at last", True),
        ("lower it 100-fold", True),
        ("Learned by heart", True),
        ("the usual norm", True),
        ("amend the commit, unfold it, at lasting cost", False),
        ("harmless, unharmed", False),
        ("the loss falls all the same", True),
        ("holter check --all the same, in words", False),
        ("it is reported if the run went badly", True),
        ("a function that the script does no longer", True),
        ("the function no longer does this", False),
        ("the best by far, and forever", False),
    ],
)
def test_the_pattern(text: str, is_avoided: bool) -> None:
    assert bool(_AVOIDED.search(text)) == is_avoided
