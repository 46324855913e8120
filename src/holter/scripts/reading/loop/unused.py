"""Parts of a training that a script makes and never uses."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import tensor_of
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted

_LOSSES = {
    *("cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"),
    *("binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div", "ctc_loss"),
    *("triplet_margin_loss", "cosine_embedding_loss", "margin_ranking_loss", "gaussian_nll_loss"),
    *("poisson_nll_loss", "kl_divergence"),
}
_LOSS_CLASSES = re.compile(r"^[A-Z]\w*Loss$")
_TERMS = re.compile(r"(^|_)(loss|kl|kld|divergence|penalty|regulari[sz]er)(_|$|\d)", re.I)
_HELD_OUT = re.compile(r"(^|_)(val|valid|validation|test|eval|dev|old|prev|last)(_|$|\d)", re.I)
_SCHEDULERS = re.compile(
    r"^(\w*LR|\w*WarmRestarts|ReduceLROnPlateau|get_\w*schedule\w*|SequentialLR)$"
)
_REPORTING = {"get_last_lr", "get_lr", "state_dict", "load_state_dict", "last_epoch"}
_WEIGHTS = re.compile(r"^(class|pos|label|loss|sample|token|pixel)_?weights?$", re.I)
_GIVEN = {"pop", "get", "next", "input", "load"}  # calls that compute no weights
_INITS = re.compile(
    r"^_?init_?$"
    r"|^_?(init|initiali[sz]e|reset)_?(all_|the_)?(weights?|params?|parameters)?_?$"
    r"|^weights?_init(iali[sz]er)?$|^init_(fn|func|module)$"
)
_NAMESPACES = {"eval", "exec", "locals", "globals", "vars"}
_LOOPS = ast.For | ast.While


@reads
def parts(source: Source) -> Iterator[Pattern]:
    """Samplers, schedulers, weights and terms of the loss whose name is never read."""
    if not _trains(source):
        return
    read = _read_names(source)
    losses = _loss_names(source)
    for scope in source.scopes:
        for name, value, statement in source.assigned(scope):
            if name in read or name.startswith("_") or _is_offered(source, statement):
                continue
            kind = _kind(name, value, losses)
            if kind == "unused term" and not _is_trained(source, statement):
                continue
            if kind:
                yield source.pattern(kind, statement, name)


def _trains(source: Source) -> bool:
    """Whether a file trains, and uses no name that it does not write."""
    calls = list(source.of(ast.Call))
    is_plain = not {dotted(call.func) for call in calls} & _NAMESPACES
    return is_plain and {"backward", "step"} <= {called(call) for call in calls}


def _read_names(source: Source) -> set[str]:
    """Return every name that is read, other than to show or to store the state of a schedule."""
    read = {name for node in source.of(ast.Global) for name in node.names}
    read |= {name for node in source.of(ast.Nonlocal) for name in node.names}
    for node in source.of(ast.Name):
        if isinstance(node.ctx, ast.Load):
            above = source.parent(node)
            if not isinstance(above, ast.Attribute) or above.attr not in _REPORTING:
                read.add(node.id)
    return read


def _is_offered(source: Source, statement: ast.stmt) -> bool:
    """Whether another file may import a name."""
    return source.scope(statement) is source.tree and not source.is_script


def _kind(name: str, value: ast.expr, losses: set[str]) -> str:
    """Return as which kind of part a name is made, or ""."""
    made = called(value)
    if made == "WeightedRandomSampler":
        return "unused sampler"
    if isinstance(value, ast.Call) and _SCHEDULERS.match(made) and _is_of_optimizer(value):
        return "unused scheduler"
    if not isinstance(value, ast.Call | ast.BinOp):
        return ""
    if _WEIGHTS.match(name) and made not in _GIVEN:
        return "unused weights"
    is_loss = isinstance(value, ast.Call) and (made in _LOSSES or dotted(value.func) in losses)
    is_written = isinstance(value, ast.BinOp) or made in ("mean", "sum")
    if is_loss or (is_written and _TERMS.search(name) and not _HELD_OUT.search(name)):
        return "unused term"
    return ""


def _loss_names(source: Source) -> set[str]:
    """Return the names that are losses of torch wherever they are assigned."""
    found: dict[str, list[bool]] = {}
    for node in source.of(ast.Assign):
        for target in node.targets:
            is_loss = bool(_LOSS_CLASSES.match(called(node.value)))
            found.setdefault(dotted(target), []).append(is_loss)
    return {name for name, every in found.items() if name and all(every)}


def _is_of_optimizer(call: ast.Call) -> bool:
    given = [*call.args[:1], *(each.value for each in call.keywords if each.arg == "optimizer")]
    return any(re.search(r"opt", dotted(each), re.I) for each in given)


def _is_trained(source: Source, statement: ast.stmt) -> bool:
    """Whether the loop, or the function, around a statement goes backward after it."""
    scope = source.scope(statement)
    above = list(source.above(statement))
    if any("no_grad" in ast.unparse(item.context_expr) for each in above
           if isinstance(each, ast.With) for item in each.items):  # fmt: skip
        return False
    home = next((each for each in above if isinstance(each, _LOOPS) or each is scope), scope)
    return any(
        called(call) == "backward" and source.scope(call) is scope
        for call in source.walk(home)
        if isinstance(call, ast.Call) and call.lineno > statement.lineno
    )


@reads
def initialisation(source: Source) -> Iterator[Pattern]:
    """`def init_weights(self, module)` that nothing calls, applies or names."""
    if not _trains(source):
        return
    named = {node.attr for node in source.of(ast.Attribute)}
    named |= {node.id for node in source.of(ast.Name)}
    named |= {node.value for node in source.of(ast.Constant) if isinstance(node.value, str)}
    for name, body in source.module_classes.items():
        if name not in named or not _is_plain(body):
            continue
        for function in body.body:
            if _is_idle_initialisation(source, function, named):
                subject = f"{name}.{function.name}"  # type: ignore[attr-defined]
                yield source.pattern("unapplied initialisation", function, subject)
    made = [statement for _, value, statement in source.assigned(source.tree)
            if called(value) in source.module_classes]  # fmt: skip
    for function in source.tree.body:
        if made and _is_idle_initialisation(source, function, named):
            # Lines of a function that nothing calls are not reported.
            yield source.pattern("unapplied initialisation", made[0], function.name)  # type: ignore[attr-defined]


def _is_plain(body: ast.ClassDef) -> bool:
    """Whether a class is derived from `nn.Module` alone: others call methods by their name."""
    return len(body.bases) == 1 and dotted(body.bases[0]) in ("nn.Module", "torch.nn.Module",
                                                              "Module")  # fmt: skip


def _is_idle_initialisation(source: Source, function: ast.stmt, named: set[str]) -> bool:
    """Whether a function that nothing names writes to weights: `nn.init.normal_(m.weight)`."""
    if not isinstance(function, Function) or function.name in named:
        return False
    return bool(_INITS.match(function.name)) and any(
        called(call).endswith("_")
        and re.search(r"(^|\.)init$|\.(weight|bias)(\.data)?$", dotted(call.func.value))
        for call in source.walk(function)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
    )


@reads
def heads(source: Source) -> Iterator[Pattern]:
    """`a, b = model(x)`, where the losses of two targets both take `a`, and nothing takes `b`."""
    if not _trains(source):
        return
    losses = _loss_names(source)
    for node in source.of(ast.Assign):
        target = node.targets[0]
        if not isinstance(target, ast.Tuple) or not isinstance(node.value, ast.Call):
            continue
        outputs = [each.id for each in target.elts if isinstance(each, ast.Name)]
        if len(outputs) != len(target.elts) or not _is_trained(source, node):
            continue
        inside = source.walk(source.scope(node))
        read = {each.id for each in inside
                if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}  # fmt: skip
        idle = [name for name in outputs if name not in read and not name.startswith("_")]
        targets: dict[str, set[str]] = {}  # by the output that a loss compares with them
        for call in inside:
            if isinstance(call, ast.Call) and len(call.args) > 1:
                output = _root(call.args[0])
                if output in outputs and (called(call) in _LOSSES or dotted(call.func) in losses):
                    targets.setdefault(output, set()).add(ast.unparse(call.args[1]))
        if len(idle) == 1 and any(len(each) > 1 for each in targets.values()):
            yield source.pattern("unused head", node, idle[0])


def _root(node: ast.expr) -> str:
    """Return the name of what an expression takes a part of, or reshapes."""
    while isinstance(node, ast.Subscript | ast.Call):
        inner = node.value if isinstance(node, ast.Subscript) else tensor_of(node)
        if inner is None:
            return ""
        node = inner
    return dotted(node)


@reads
def unused_weights(source: Source) -> Iterator[Pattern]:
    """`state = torch.load("teacher.pt")` that is shown only, or not read at all."""
    for scope in source.scopes:
        for name, value, node in source.assigned(scope):
            if dotted(getattr(value, "func", value)) not in ("torch.load", "load_file"):
                continue
            path = ast.unparse(value)
            if not re.search(r"teacher|ckpt|checkpoint|weights|model|state|best|pretrain", path):
                continue
            reads = [each for each in source.of(ast.Name) if each.id == name
                     and isinstance(each.ctx, ast.Load)]  # fmt: skip
            if source.stores(scope, name) == 1 and all(_is_shown(source, each) for each in reads):
                yield source.pattern("unused weights of file", node, name)


def _is_shown(source: Source, name: ast.Name) -> bool:
    """Whether a name is read by `len` or `print` alone, in a statement without another effect."""
    above = source.parent(name)
    if isinstance(above, ast.Attribute) and above.attr == "keys":
        above = source.parent(source.parent(above) or above)
    if not isinstance(above, ast.Call) or called(above) not in ("len", "print", "sorted", "list"):
        return False
    statement = next(each for each in source.above(name) if isinstance(each, ast.stmt))
    shown = statement.value if isinstance(statement, ast.Expr) else None
    return called(shown or statement) in ("print", "info", "debug")
