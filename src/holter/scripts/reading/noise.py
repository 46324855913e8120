"""Numbers drawn from another distribution than the formula needs, and divisions that round."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source import Pattern, Source, called

_SPREAD = re.compile(r"std|sigma|(^|_)sd$|stddev|logvar|log_var", re.I)
_CENTRE = re.compile(r"(^|_)(mu|mus|mean|means|loc)(_|$|\d)", re.I)
_PROGRESS = re.compile(r"step|epoch|iter|\bit\b|\bt\b|update|batch", re.I)


def uniform(source: Source) -> Iterator[Pattern]:
    """`mu + torch.rand_like(std) * std`: a sample of a normal distribution needs `randn_like`."""
    for scope in source.scopes:
        assigned = [(name, called(value)) for name, value, _ in source.assigned(scope)]
        names = [name for name, _ in assigned]
        # At the outermost level, `rand` makes data as often as it samples a distribution.
        functions = ("rand_like",) if scope is source.tree else ("rand_like", "rand")
        drawn = {name for name, by in assigned if by in functions and names.count(name) == 1}
        for node in source.walk(scope):
            if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
                continue
            if source.scope(node) is not scope:
                continue
            sides = (node.left, node.right)
            for centre, product in (sides, sides[::-1]):
                if not isinstance(product, ast.BinOp) or not isinstance(product.op, ast.Mult):
                    continue
                if not isinstance(centre, ast.Name) or not _CENTRE.search(centre.id):
                    continue
                factors = (product.left, product.right)
                spread = any(_SPREAD.search(ast.unparse(each)) for each in factors)
                is_uniform = any(
                    called(each) in functions or (isinstance(each, ast.Name) and each.id in drawn)
                    for each in factors
                )
                if spread and is_uniform:
                    yield source.pattern("uniform noise", node, ast.unparse(product))


def rounded(source: Source) -> Iterator[Pattern]:
    """`min(1.0, step // warmup)`: a share that is rounded down is 0 until the end."""
    for node in source.of(ast.Call):
        if called(node) != "min" or len(node.args) != 2:
            continue
        is_one = any(isinstance(each, ast.Constant) and each.value == 1 for each in node.args)
        divided = [each for each in node.args if isinstance(each, ast.BinOp)
                   and isinstance(each.op, ast.FloorDiv)]  # fmt: skip
        is_share = any(isinstance(each, ast.Constant) and each.value == 1
                       and isinstance(each.value, float) for each in node.args)  # fmt: skip
        if is_one and divided and (is_share or _PROGRESS.search(ast.unparse(divided[0].left))):
            yield source.pattern("rounded share", node, ast.unparse(divided[0]))
