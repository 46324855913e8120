"""Negatives that are drawn once for all epochs."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted


@reads
def fixed_negatives(source: Source) -> Iterator[Pattern]:
    """`self.neg = torch.randint(n_items, (n,))` in `__init__`: one negative for all epochs."""
    for body in source.of(ast.ClassDef):
        methods = {each.name: each for each in body.body if isinstance(each, Function)}
        init, item = methods.get("__init__"), methods.get("__getitem__")
        if init is None or item is None or re.search(r"val|test|eval", body.name, re.I):
            continue
        for node in source.of(ast.Assign):
            name = dotted(node.targets[0])
            if source.scope(node) is not init or not re.match(r"self\.neg", name):
                continue
            is_drawn = any(
                called(each) in ("randint", "integers", "choice", "random_integers")
                for each in ast.walk(node.value)
            )
            stores = [
                each
                for each in source.of(ast.Attribute)
                if dotted(each) == name and isinstance(each.ctx, ast.Store)
            ]
            if is_drawn and len(stores) == 1 and name in source.code(item):
                yield source.pattern("fixed negatives", node, name)
