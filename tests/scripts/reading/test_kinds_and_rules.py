"""Kinds of patterns: each that a reader yields is concluded from by exactly one rule."""

import ast
import pkgutil
from collections import Counter
from importlib import import_module
from pathlib import Path

from holter.diagnosis import rules
from holter.diagnosis.code_findings import Mistake
from holter.scripts.reading import reader

READING = [ast.parse(path.read_text()) for path in Path(reader.__file__).parent.rglob("*.py")]
# Concluded from beside the mapping of a rule: it is a mistake on some devices only.
ALONE = {"parameter to device"}


def concluded() -> Counter[str]:
    """In how many rules each kind has a sentence."""
    found = Counter(ALONE)
    for info in pkgutil.iter_modules(rules.__path__):
        mistakes = getattr(import_module(f"{rules.__name__}.{info.name}"), "_MISTAKES", {})
        found.update(kind for kind, each in mistakes.items() if isinstance(each, Mistake))
    return found


def test_each_kind_that_is_read_has_one_rule() -> None:
    kinds = {
        call.args[0].value
        for tree in READING
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "pattern"
        and isinstance(call.args[0], ast.Constant)
    }
    assert len(kinds) > 300
    rules_of = concluded()
    assert {kind: rules_of[kind] for kind in kinds if rules_of[kind] != 1} == {}


def test_each_kind_of_a_rule_is_read() -> None:
    words = {
        node.value for tree in READING for node in ast.walk(tree) if isinstance(node, ast.Constant)
    }
    assert {kind for kind in concluded() if kind not in words} == set()
