"""Next tokens: masks that a decoder lacks, masks that nothing reads, and shifts of targets."""

import ast
import re
from collections.abc import Iterator

from holter.scripts.reading.source.expressions import resolved, tensor_of
from holter.scripts.reading.source.registry import reads
from holter.scripts.reading.source.slices import only_value
from holter.scripts.reading.source.tree import Function, Pattern, Source, called, dotted, of_self

_DECODERS = {"TransformerDecoder": ("tgt_mask", 2), "Transformer": ("tgt_mask", 3)}
_DECODERS["TransformerDecoderLayer"] = ("tgt_mask", 2)
_MASKS = {"tgt_mask", "tgt_is_causal", "is_causal", "attn_mask", "mask", "src_mask"}
_ENCODERS = {"TransformerEncoder", "MultiheadAttention"}
_NAMED = re.compile(r"^(\w+_)?(mask|masks)$", re.I)
_PADDING = re.compile(r"(pad|attn|attention|causal|key|src|tgt|token|valid)\w*mask|^mask$", re.I)
_CAUSAL = re.compile(r"tril|triu|causal|generate_square_subsequent_mask|block_mask|alibi|retention",
                     re.I)  # fmt: skip


@reads
def decoder_without_mask(source: Source) -> Iterator[Pattern]:
    """`self.decoder(tgt, memory)` of `nn.TransformerDecoder`, without `tgt_mask`."""
    text = source.code(source.tree)
    if not _has_shifted_decoder(source) or re.search(r"register_forward|is_causal|tgt_mask", text):
        return
    for assign in source.of(ast.Assign):
        name = dotted(assign.targets[0]).rpartition(".")[2]
        kind = called(assign.value)
        if kind not in _DECODERS or not source.makes_module(assign.value) or not name:
            continue
        if dotted(getattr(assign.value, "func", assign.value)) in source.module_classes:
            continue
        parameter, place = _DECODERS[kind]
        for call in source.of(ast.Call):
            if dotted(call.func).rpartition(".")[2] != name or call is assign.value:
                continue
            if len(call.args) > place or any(isinstance(each, ast.Starred) for each in call.args):
                continue
            if {each.arg for each in call.keywords} & {parameter, "tgt_is_causal", None}:
                continue
            if call.args:
                yield source.pattern("no causal mask", call, parameter)


def _has_shifted_decoder(source: Source) -> bool:
    """Whether a file gives a model targets without their last token: `tgt[:, :-1]`."""
    return any(
        re.search(r"(^|, )\s*:-1$", ast.unparse(node.slice).strip("()"))
        and re.search(r"tgt|target|trg|out|dec|^y|caption|ids|seq", dotted(node.value))
        for node in source.of(ast.Subscript)
    )


@reads
def attention_without_mask(source: Source) -> Iterator[Pattern]:
    """Attention of a model of the next token that sees the tokens to come."""
    text = source.code(source.tree)
    if not _predicts_next(source) or _CAUSAL.search(text) or "mask" in text.lower():
        return
    if re.search(r"\b(LSTM|GRU|RNN|Conv1d)\(|from_pretrained|flex_attention", text):
        return
    for call in source.of(ast.Call):
        kind = called(call)
        if kind == "scaled_dot_product_attention" and len(call.args) <= 3:
            if not {each.arg for each in call.keywords} & {*_MASKS, None}:
                yield source.pattern("no causal mask", call, "is_causal")
        elif kind == "softmax" and _is_attention(source, call):
            yield source.pattern("no causal mask", call, "mask")
        elif layer := of_self(call.func):
            layers = source.named(layer)
            is_torch = len(layers) == 1 and called(layers[0]) in _ENCODERS
            is_masked = any(each.arg in _MASKS for each in call.keywords)
            if is_torch and source.makes_module(layers[0]) and not is_masked:
                yield source.pattern("no causal mask", call, "mask")


def _predicts_next(source: Source) -> bool:
    """Whether a file learns the next token of windows, and generates from the last one."""
    text = source.code(source.tree)
    is_shifted = re.search(r"\[(\w+) \+ 1:\1 \+ [\w.]+ \+ 1\]|\[(\w+) \+ 1:\2 \+ 1 \+ [\w.]+\]"
                           r"|\[(\w+) \+ 1:\3 \+ \(?[\w.]+\)? \+ 1\]", text)  # fmt: skip
    is_drawn = re.search(r"multinomial\(|\[:, -1\]|\[:, -1, :\]", text)
    is_grown = re.search(r"cat\([\[(](\w+), [^\]]+[\])], (dim=)?(1|-1)\)", text)
    is_scored = re.search(r"cross_entropy|CrossEntropyLoss", text)
    return bool(is_shifted and is_drawn and is_grown and is_scored)


def _is_attention(source: Source, call: ast.Call) -> bool:
    given = tensor_of(call)
    scope = source.scope(call)
    for _ in range(3):
        if isinstance(given, ast.Name):
            given, _home = only_value(source, scope, given.id)
        elif isinstance(given, ast.BinOp) and isinstance(given.op, ast.Div | ast.Mult):
            given = given.left
    is_product = isinstance(given, ast.BinOp) and isinstance(given.op, ast.MatMult)
    is_turned = given is not None and re.search(r"transpose|mT|permute", ast.unparse(given))
    return bool((is_product or called(given or call) in ("matmul", "bmm", "einsum")) and is_turned)


@reads
def unread_mask(source: Source) -> Iterator[Pattern]:
    """`pad = ids == PAD` that nothing reads, or a `mask` that attention is given and ignores."""
    for body in source.module_classes.values():
        yield from _unread_members(source, body)
        for function in body.body:
            if not isinstance(function, Function) or function.name != "forward":
                continue
            read = {node.id for node in source.walk(function) if isinstance(node, ast.Name)
                    and isinstance(node.ctx, ast.Load)}  # fmt: skip
            for name, value, statement in source.assigned(function):
                is_mask = _NAMED.match(name) or re.match(r"(is_)?pad(ding)?$", name)
                if is_mask and name not in read and _is_about_tokens(value):
                    yield source.pattern("unread mask", statement, name)
            text = source.code(body)
            attends = re.search(r"softmax\(|scaled_dot_product|MultiheadAttention|TransformerEnc",
                                text)  # fmt: skip
            for each in function.args.args[1:]:
                is_unread = bool(_PADDING.search(each.arg)) and each.arg not in read
                if attends and is_unread and _is_given(source, body.name, each.arg, function):
                    yield source.pattern("unread mask", function, each.arg)


def _unread_members(source: Source, body: ast.ClassDef) -> Iterator[Pattern]:
    """Yield masks that a module keeps and nothing reads: `self.mask = torch.tril(...)`.

    Attention that is told to be causal needs none.
    """
    if re.search(r"is_causal=(True|self|causal)", source.code(body)):
        return
    for node in source.walk(body):
        name, value = "", None
        if called(node) == "register_buffer" and isinstance(node, ast.Call) and len(node.args) > 1:
            name, value = str(getattr(node.args[0], "value", "")), node.args[1]
        elif isinstance(node, ast.Assign):
            name, value = of_self(node.targets[0]), node.value
        if value is None or not re.search(r"mask|causal|tril|triu", name, re.I):
            continue
        made = resolved(source, source.scope(node), value)
        if not any(called(each) in ("tril", "triu", "generate_square_subsequent_mask")
                   for each in [*ast.walk(made), *ast.walk(value)]):  # fmt: skip
            continue
        is_read = any(each.attr == name and isinstance(each.ctx, ast.Load)
                      for each in source.of(ast.Attribute))  # fmt: skip
        is_named = any(each.value == name for each in source.of(ast.Constant)
                       if not isinstance(source.parent(each), ast.Call)
                       or called(source.parent(each) or each) != "register_buffer")  # fmt: skip
        if not is_read and not is_named:
            yield source.pattern("unread mask", node, name)


def _is_about_tokens(value: ast.expr) -> bool:
    """Whether a mask compares tokens or positions: `ids != PAD`."""
    return any(isinstance(each, ast.Compare) for each in ast.walk(value)) or any(
        called(each) in ("tril", "triu", "ne", "eq") for each in ast.walk(value)
    )


def _is_given(source: Source, name: str, parameter: str, function: Function) -> bool:
    """Whether a model of a class is given a mask somewhere in the file."""
    instances = {
        dotted(target).rpartition(".")[2]
        for assign in source.of(ast.Assign)
        if any(called(each) == name for each in ast.walk(assign.value))
        for target in assign.targets
    }
    place = [each.arg for each in function.args.args].index(parameter) - 1
    for call in source.of(ast.Call):
        if dotted(call.func).rpartition(".")[2] not in instances:
            continue
        given = [each.value for each in call.keywords if each.arg == parameter]
        given += call.args[place : place + 1]
        if given and not (isinstance(given[0], ast.Constant) and given[0].value is None):
            return True
    return False


@reads
def shifted_twice(source: Source) -> Iterator[Pattern]:
    """`model(ids[:, :-1], labels=ids[:, 1:])` of a model that shifts labels by itself."""
    if not re.search(r"ForCausalLM|LMHeadModel", source.code(source.tree)):
        return
    for call in source.of(ast.Call):
        labels = [each.value for each in call.keywords if each.arg == "labels"]
        if not labels:
            continue
        wanted, _ = _value(source, call, labels[0])
        given = [*call.args[:1], *(k.value for k in call.keywords if k.arg == "input_ids")]
        shown = _value(source, call, given[0])[0] if given else None
        if _part(wanted) == "1:" and shown is not None and _part(shown) == ":-1":
            yield source.pattern("shifted twice", call, ast.unparse(labels[0]))


def _value(source: Source, call: ast.Call, value: ast.expr) -> tuple[ast.expr, ast.AST]:
    while called(value) in ("contiguous", "to", "clone") and isinstance(value, ast.Call):
        value = tensor_of(value) or value.func
    if isinstance(value, ast.Name):
        made, home = only_value(source, source.scope(call), value.id)
        if made is not None:
            return _value(source, call, made)[0], home
    return value, call


def _part(value: ast.expr) -> str:
    if not isinstance(value, ast.Subscript):
        return ""
    return ast.unparse(value.slice).strip("()").rpartition(", ")[2]


@reads
def shifted_in_loss(source: Source) -> Iterator[Pattern]:
    """A loss of `logits[:, :-1]` and `y[:, 1:]` where `y` is already the next token."""
    text = source.code(source.tree)
    windows = re.search(r"\[(\w+):\1 \+ ([\w.]+)\]", text)
    if windows is None or not re.search(
        rf"\[{windows[1]} \+ 1:{windows[1]} \+ ({re.escape(windows[2])} \+ 1|1 \+ "
        rf"{re.escape(windows[2])})\]", text
    ):  # fmt: skip
        return
    for loss in source.of(ast.Call):
        if called(loss) not in ("cross_entropy", "criterion", "loss_fn", "nll_loss"):
            continue
        if len(loss.args) < 2:
            continue
        scores, wanted = (_cut(source, loss, each) for each in loss.args[:2])
        if scores is None or wanted is None or scores[1] != ":-1" or wanted[1] != "1:":
            continue
        if re.search(r"target|^y|label|next", wanted[0]):
            yield source.pattern("shifted twice", loss, wanted[0])


def _cut(source: Source, loss: ast.Call, value: ast.expr) -> tuple[str, str] | None:
    """Return what is cut, and how: `logits[:, :-1].reshape(-1, V)` is logits and `:-1`."""
    for _ in range(5):
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            value = value.func.value
        elif isinstance(value, ast.Name):
            made, home = only_value(source, source.scope(loss), value.id)
            if made is None or home is not source.scope(loss):
                return None
            value = made
    if not isinstance(value, ast.Subscript) or not isinstance(value.slice, ast.Tuple):
        return None
    return dotted(value.value), ast.unparse(value.slice.elts[1])


@reads
def dropped_attention_mask(source: Source) -> Iterator[Pattern]:
    """`tokenizer(texts, padding=True)` of which only `input_ids` goes on: padding is attended."""
    text = source.code(source.tree)
    is_pretrained = "transformers" in source.imported.values()
    if not is_pretrained or re.search(
        r"attention_mask|CausalLM|LMHead|pad_token_id|GPT|[lL]lama|DataCollator", text
    ):
        return
    for call in source.of(ast.Call):
        options = {each.arg: each.value for each in call.keywords}
        padding = options.get("padding")
        if not isinstance(padding, ast.Constant) or padding.value in (False, None):
            continue
        if not re.search(r"tok", dotted(call.func), re.I):
            continue
        above = source.parent(call)
        uses = [call]
        if isinstance(above, ast.Assign) and isinstance(above.targets[0], ast.Name):
            name, scope = above.targets[0].id, source.scope(call)
            uses = [node for node in source.walk(scope) if isinstance(node, ast.Name)  # type: ignore[misc]
                    and node.id == name and isinstance(node.ctx, ast.Load)]  # fmt: skip
        if uses and all(_takes_ids(source, use) for use in uses):
            yield source.pattern("dropped mask", call, "attention_mask")


@reads
def keywords_without_mask(source: Source) -> Iterator[Pattern]:
    """`model(input_ids=batch["input_ids"], labels=y)` of padded batches, without their mask."""
    text = source.code(source.tree)
    is_padded = re.search(r"DataCollator(With|For)|pad_sequence\(|padding=(True|'max_length'"
                          r"|'longest')|tokenizer\.pad\(", text)  # fmt: skip
    if "transformers" not in source.imported.values() or not is_padded:
        return
    if re.search(r"attention_mask|CausalLM|LMHead|GPT|[lL]lama|decoder_input_ids|\bmask=", text):
        return
    if any(dropped_attention_mask(source)):
        return
    for call in source.of(ast.Call):
        name = dotted(call.func).rpartition(".")[2]
        given = {each.arg for each in call.keywords}
        made = [each for each in source.named(name) if "from_pretrained(" in ast.unparse(each)]
        if made and "input_ids" in given and None not in given and len(call.args) < 2:
            yield source.pattern("dropped mask of batch", call, "attention_mask")


def _takes_ids(source: Source, node: ast.AST) -> bool:
    above = source.parent(node)
    if isinstance(above, ast.Attribute):
        return above.attr == "input_ids"
    return isinstance(above, ast.Subscript) and getattr(above.slice, "value", "") == "input_ids"
