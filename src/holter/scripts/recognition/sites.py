"""Where a script calls backward, and on what: the loss, as an expression of the script."""

import ast
import copy
import inspect
from dataclasses import dataclass, replace
from types import CodeType, FrameType
from typing import Any

from torch import Tensor
from torch.amp import GradScaler

from holter.scripts.recognition.declining import NotRecognisedError, WayOut, at, declined
from holter.scripts.recognition.kinds import (
    Namespace,
    first_with_graph,
    is_library,
    is_ours,
    look_up,
)
from holter.scripts.recognition.names import base, dotted, reads, writes
from holter.scripts.recognition.sources import Source, call_at

LOSS = "__holter_loss__"  # the variable that a repeated step leaves its loss in


@dataclass(frozen=True, eq=False)
class Site:
    """A place where backward is called on a loss."""

    source: Source
    code: CodeType  # of the function it stands in
    call: ast.Call | ast.Return  # of a function that returns the loss to a library: the return
    loss: ast.expr
    scaled: bool  # whether the loss scale of AMP is multiplied on top
    notes: tuple[str, ...] = ()
    otherwise: NotRecognisedError | None = None  # what to say of the user's own code, if not here

    @property
    def statement(self) -> ast.stmt:
        """The statement of the call."""
        return self.source.statement(self.call)

    @property
    def key(self) -> tuple[CodeType, int]:
        """What is the same at every backward here: the code, and which call it is."""
        return self.code, id(self.call)

    @property
    def place(self) -> str:
        """File and line."""
        return f"{self.source.file}:{self.call.lineno}"

    @property
    def body(self) -> list[ast.stmt]:
        """The statements of the innermost loop or function."""
        loops = self.source.loops(self.statement)
        around: Any = loops[0] if loops else self.source.function(self.statement)
        return list(around.body)

    def straight(self) -> list[ast.stmt]:
        """The statements from the beginning of the body to the loss, as they ran this time.

        An `if` on the way is replaced by the branch that was taken.
        """
        end = ast.Assign([ast.Name(LOSS, ast.Store())], copy.deepcopy(self.loss))
        ast.fix_missing_locations(ast.copy_location(end, self.statement))
        return self._until(self.body, end)

    def _until(self, body: list[ast.stmt], end: ast.stmt) -> list[ast.stmt]:
        target = self.statement
        for place, each in enumerate(body):
            if each is target:
                return [*body[:place], end]
            if target not in set(ast.walk(each)):
                continue
            before = body[:place]
            for name in ("body", "orelse", "finalbody"):
                inner = vars(each).get(name) or []
                if any(target in set(ast.walk(part)) for part in inner):
                    if isinstance(each, ast.With):
                        made = copy.copy(each)
                        made.body = self._until(inner, end)
                        return [*before, made]
                    if isinstance(each, ast.If | ast.Try):
                        return [*before, *self._until(inner, end)]
            raise self.declined(each, "calls backward() in a form that is not supported")
        raise self.declined(target, "is outside the loop that it runs in")

    def declined(
        self, node: ast.AST, why: str, instead: WayOut = WayOut.SETUP
    ) -> NotRecognisedError:
        """An error that names a node of this site's file."""
        line = node.lineno if isinstance(node, ast.stmt | ast.expr) else 1
        return declined(at(self.source.file, line, self.source.said(node), why), instead)


def locate(frame: FrameType | None) -> tuple[Site, FrameType]:
    """The site of the backward that is being called from `frame`, and the frame it stands in.

    It is looked for in the user's code; if there the loss is not to be seen, in the library's that
    the user has left the training to.
    """
    while frame is not None and is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    inner = frame
    while frame is not None and is_library(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        raise declined(
            "backward() is called by a library; no statement of the script calls it.",
            WayOut.LIBRARY,
        )
    try:
        return _site(frame, in_library=frame is not inner)
    except NotRecognisedError as error:
        if inner is None or inner is frame:
            raise
        try:
            site, at = _site(inner, in_library=False, everywhere=True)
        except NotRecognisedError:
            raise error from None
        return replace(site, otherwise=error), at


def _site(
    frame: FrameType, *, in_library: bool, everywhere: bool = False
) -> tuple[Site, FrameType]:
    """The site at a frame, or at one of its callers if that gave it the loss."""
    found = call_at(frame)
    if found is None:
        file, line = frame.f_code.co_filename, frame.f_lineno
        raise declined(at(file, line, "...", "calls backward(), but its source cannot be read"))
    source, call = found
    loss, scaled = _loss(source, call, visible(frame), in_library=in_library)
    notes: tuple[str, ...] = ()
    while (parameter := _parameter(source, frame, call, loss)) is not None:
        loss, source, call, frame = _argument(source, frame, call, parameter, everywhere=everywhere)
        notes = (f"What `{parameter}` goes through in the function it is given to is left out.",)
    if isinstance(source.function(call), ast.Lambda):
        raise declined(at(source.file, call.lineno, source.said(call), "is inside a lambda"))
    return Site(source, frame.f_code, call, loss, scaled, notes), frame


def visible(frame: FrameType) -> dict[str, Any]:
    """The variables a frame can see."""
    return {**frame.f_globals, **frame.f_locals}


def _loss(
    source: Source, call: ast.Call, names: Namespace, *, in_library: bool
) -> tuple[ast.expr, bool]:
    function = call.func
    if not (isinstance(function, ast.Attribute) and function.attr == "backward"):
        return _given(source, call, names), False
    receiver = function.value
    if isinstance(receiver, ast.Call) and isinstance(receiver.func, ast.Attribute):
        owner = look_up(base(receiver.func.value) or "", names)
        if receiver.func.attr == "scale" and isinstance(owner, GradScaler):
            return receiver.args[0], True
    name = dotted(receiver)
    value = None if name is None else look_up(name, names)
    if name is None or isinstance(value, Tensor) or (value is None and not in_library):
        return _weighted(call, receiver), False
    if not call.args:
        return _given(source, call, names), False
    first = call.args[0]
    if isinstance(first, ast.List | ast.Tuple):
        first = ast.copy_location(ast.Call(ast.Name("sum", ast.Load()), [first], []), first)
        ast.fix_missing_locations(first)
    return first, False


def _weighted(call: ast.Call, receiver: ast.expr) -> ast.expr:
    """Of `loss.backward(gradient)`: what it is the gradient of."""
    given = [
        *call.args[:1],
        *(keyword.value for keyword in call.keywords if keyword.arg == "gradient"),
    ]
    if not given or isinstance(given[0], ast.Starred):
        return receiver
    if isinstance(given[0], ast.Constant) and given[0].value is None:
        return receiver
    product = ast.BinOp(receiver, ast.Mult(), given[0])
    total = ast.Call(ast.Attribute(product, "sum", ast.Load()), [], [])
    return ast.fix_missing_locations(ast.copy_location(total, receiver))


def _given(source: Source, call: ast.Call, names: Namespace) -> ast.expr:
    """The argument of a call that is a loss."""
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    values = [look_up(dotted(argument) or "", names) for argument in arguments]
    place = first_with_graph(values)
    if place is None:
        raise declined(
            at(
                source.file,
                call.lineno,
                source.said(source.statement(call)),
                "trains inside a library, whose own step could not be extracted either",
            ),
            WayOut.LIBRARY,
        )
    return arguments[place]


def _parameter(source: Source, frame: FrameType, call: ast.Call, loss: ast.expr) -> str | None:
    """The parameter of the function that the loss is, if it is not computed here."""
    code = frame.f_code
    if not isinstance(loss, ast.Name | ast.BinOp) or not isinstance(
        source.function(call), ast.FunctionDef | ast.AsyncFunctionDef
    ):
        return None
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    used = reads(loss) & set(parameters)
    names = [each for each in used if _has_graph(frame.f_locals.get(each))]
    if len(names) != 1:
        return None
    function: Any = source.function(call)
    for statement in ast.walk(function):
        if isinstance(statement, ast.Assign | ast.AnnAssign) and any(
            each.name == names[0] for each in writes(statement)
        ):
            own = statement.value is not None and names[0] in reads(statement.value)
            if not own or any(isinstance(each, ast.Call) for each in ast.walk(statement)):
                return None  # it is computed here
    return names[0]


def _has_graph(value: object) -> bool:
    return isinstance(value, Tensor) and value.grad_fn is not None


def _argument(
    source: Source, frame: FrameType, call: ast.Call, parameter: str, *, everywhere: bool
) -> tuple[ast.expr, Source, ast.Call, FrameType]:
    """What a function's caller has given for a parameter."""
    why = "receives a loss whose origin cannot be traced"
    statement = source.said(source.statement(call))
    caller = frame.f_back
    if caller is None or (is_library(caller.f_code.co_filename) and not everywhere):
        raise declined(at(source.file, call.lineno, statement, why))
    found = call_at(caller)
    if found is None:
        raise declined(at(source.file, call.lineno, statement, why))
    outer, made = found
    for keyword in made.keywords:
        if keyword.arg == parameter:
            return keyword.value, outer, made, caller
    code = frame.f_code
    place = code.co_varnames[: code.co_argcount].index(parameter)
    place -= code.co_varnames[0] in ("self", "cls")  # also of `scaler(loss)`, which is a method
    if place >= len(made.args) or any(isinstance(arg, ast.Starred) for arg in made.args):
        raise declined(at(outer.file, made.lineno, outer.said(made), why))
    return made.args[place], outer, made, caller


def is_module_level(frame: FrameType) -> bool:
    """Whether a frame runs a file, and not a function of it."""
    return not frame.f_code.co_flags & inspect.CO_NEWLOCALS
