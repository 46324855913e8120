"""Remedies of a replayed failure: the safe form of an operation, and changes that cure, as code."""

from collections.abc import Iterable

from holter.diagnosis.facts.replayed_changes import ChangeFamily
from holter.diagnosis.facts.replays import Replayed
from holter.record.births import Birth
from holter.record.trials import TrialKind, parts

_TORCH = "torch/"  # where its own files are, as births name them
_SPREADS = ("std", "var", "std_mean", "var_mean")
_BOUNDED = ("acos", "asin", "atanh", "erfinv")
_CHANGES = {
    TrialKind.CLIP: "clip gradients before `optimizer.step()`:"
    " `torch.nn.utils.clip_grad_norm_(model.parameters(), {amount})`",
    TrialKind.LEARNING_RATE: "multiply the learning rate by {amount}",
    TrialKind.EARLIER_RATE: "keep the learning rate from before the schedule raised it,"
    " or lengthen the warm-up",
    TrialKind.HELD: "keep this number of the script constant, or bound its schedule: `{amount}`",
    TrialKind.FACTOR: "keep this factor below 1, or what it multiplies grows in each step:"
    " `{amount}`",
    TrialKind.COUNTER_HELD: "bound what the script computes from this counter, or change it more"
    " slowly: `{amount}`",
    TrialKind.COUNTER_KEPT: "do not set this counter back, or set it to what it began with:"
    " it had reached `{amount}`",
    TrialKind.ACCUMULATION_DIVIDED: "divide each loss by the number of batches of its own step:"
    " `(loss / batches_of_this_step).backward()`",
    TrialKind.SAME_ACCUMULATION: "divide each loss by the number of batches of its own step, and"
    " give the step as many batches as those before",
    TrialKind.LINE_SEARCH: "let LBFGS search for the length of each step:"
    ' `line_search_fn="strong_wolfe"`',
    TrialKind.LARGER_EPSILON: "increase epsilon of the optimizer, for example `eps=1e-4`",
    TrialKind.SECOND_MOMENT_RESET: "make the second moment adapt faster, for example"
    " `betas=(0.9, 0.95)`",
    TrialKind.EDITS_LEFT_OUT: "correct or remove the code that writes to weights between steps",
    TrialKind.FLOAT32: "run the step in float32",
    TrialKind.DROPOUT_OFF: "remove the dropout",
    TrialKind.COMPILE_OFF: "do not compile the model",
    TrialKind.MATH_ATTENTION: "use the math kernel of attention: `with"
    " torch.nn.attention.sdpa_kernel(SDPBackend.MATH):`",
    TrialKind.DETERMINISTIC: "set `torch.use_deterministic_algorithms(True)`",
}
_OWN_BACKWARD = (
    "rewrite the gradient in a numerically stable form, for example `grad * torch.sigmoid(x)` for"
    " `grad * torch.exp(x) / (1 + torch.exp(x))`"
)
_OVERFLOWING_GRADIENT = (
    "use a smaller loss scale, and skip updates with non-finite gradients, for example with"
    " `torch.amp.GradScaler`: `scaler.step(optimizer)` in place of `optimizer.step()`; or keep"
    " this operation in float32: `with torch.autocast(..., enabled=False):`"
)
_OF_SCHEDULE = (
    "keep the schedule inside its domain, for example `max(0.0, x) ** power`: the learning rate is"
    " not a finite number"
)
_ACTING = (ChangeFamily.EDITS, ChangeFamily.CLIP, ChangeFamily.STATE, ChangeFamily.RATE)


def instructions(replay: Replayed, families: Iterable[str]) -> str:
    """Return how to make the smallest change of each of these families that cures, or ""."""
    cures = (replay.cured_by(family) for family in families)
    return ", or ".join(instruction(names[0]) for names in cures if names)


def instruction(trial: str) -> str:
    """Return how to make the changes of a trial in a script."""
    texts = [
        _CHANGES.get(name.kind, f"apply `{name}`").format(amount=name.detail)
        for name in parts(trial)
    ]
    return ", and ".join(texts)


def fix_of_birth(replay: Replayed, birth: Birth) -> str:
    """Return the safe form of the operation; where a guard is known not to cure, what does."""
    in_script = bool(birth.where) and not birth.where.startswith(_TORCH)
    place = f"at {birth.where}, " if in_script else ""
    if birth.phase == "update":
        return f"{place}{_in_update(replay, birth)}"
    if birth.reaches == "setting":
        return f"{place}{_OF_SCHEDULE}"
    if birth.is_in_own_backward:
        return f"{place}{_OWN_BACKWARD}"
    if birth.phase == "backward" and birth.kind == "half range":
        named = birth.stepped_at or birth.backward_at
        update = f"at {named}, " if named else place
        return f"{update}{_OVERFLOWING_GRADIENT}"
    unguarded = birth.kind == "overflow" or bool(replay.not_cured_by(ChangeFamily.GUARD))
    if unguarded and replay.is_data and not birth.samples:  # or what the script carries along
        return f"{place}{safe_form(birth)}; or check the batch of step {replay.failing}"
    if unguarded and replay.is_data:
        them = "it" if birth.sample_count == 1 else "them"
        carried = (
            "" if birth.indices else "; or the state that the script carries from step to step"
        )
        where = f"where the data is loaded{carried}"
        return f"check {_samples(birth)}, and fix or drop {them} {where}"
    acting = instructions(replay, _ACTING)
    return acting if unguarded and acting else f"{place}{safe_form(birth)}"


def _samples(birth: Birth) -> str:
    """Return the samples of a birth by their indices in the data set, or in the batch."""
    names = list(map(str, birth.indices or birth.samples))
    more = birth.sample_count - len(names)
    rest = f" and {more} more" if more > 0 else ""
    of = "data set" if birth.indices else "batch"
    return f"sample{'s' * (birth.sample_count > 1)} {', '.join(names)}{rest} of the {of}"


def _in_update(replay: Replayed, birth: Birth) -> str:
    """Return the fix of a value that an optimizer produced."""
    if birth.kind == "bad setting":
        return f"{_FIXES[birth.kind]} (step {replay.failing})"
    own = birth.where != birth.stepped_at and not birth.where.startswith(_TORCH)
    cures = instructions(replay, (ChangeFamily.STATE, ChangeFamily.CLIP, ChangeFamily.RATE))
    if birth.kind == "half range" or replay.cured_by(ChangeFamily.PRECISION):
        dtypes = "keep weights and optimizer state in float32 and compute in half precision with"
        return f"{dtypes} `torch.autocast`" + (f"; or {cures}" if cures else "")
    if own and birth.kind != "overflow":
        return safe_form(birth)
    if birth.kind in ("zero by zero", "division by zero"):
        return "build the optimizer with a positive epsilon: `eps=1e-8`, its default"
    return cures or "reduce the gradients: clip them, or scale the loss down"


def safe_form(birth: Birth) -> str:
    """Return the form of an operation that has no singularity, for what it is used for."""
    if birth.masked:
        return (
            "mask the operand as well as the result: `safe = torch.where(mask, x,"
            f" torch.ones_like(x))`, then `torch.where(mask, {_call(birth.operation, 'safe')},"
            " 0.0)`"
        )
    if birth.operation == "logdet":
        return (
            "keep the matrix positive definite: `L = torch.tril(x)` with a positive diagonal,"
            " `m = L @ L.mT`, and `2 * L.diagonal(dim1=-2, dim2=-1).log().sum(-1)` in place of"
            " `torch.logdet(m)`"
        )
    if birth.kind in ("log of zero", "outside domain") and birth.operation.startswith("log"):
        return _of_logarithm(birth)
    if birth.kind == "half range" and birth.operation == "to":
        return "do not cast it to float16 (maximum 65504); bfloat16 has the range of float32"
    if birth.operation == "ctc_loss":
        return (
            "drop samples whose input is shorter than its target (counting repeats twice), or"
            " ignore them: `nn.CTCLoss(zero_infinity=True)`"
        )
    if birth.operation == "slogdet":
        return (
            "the matrix is singular: add a multiple of the identity, `torch.linalg.slogdet(m + 1e-4"
            " * torch.eye(len(m)))`"
        )
    if birth.kind == "root at zero":
        return _of_root(birth)
    if birth.kind in ("zero by zero", "division by zero"):
        return _of_division(birth)
    if birth.kind == "empty mean" and birth.operation in _SPREADS:
        return (
            "the standard deviation of a single value is undefined: skip such groups, or use the"
            " biased one with an epsilon: `(x - x.mean()) / (x.std(unbiased=False) + 1e-6)`"
        )
    if birth.kind == "exp overflow":
        return _of_exponential(birth)
    if birth.kind == "outside domain":
        return _of_domain(birth)
    return _FIXES.get(birth.kind, "check the operands of this line")


def _of_logarithm(birth: Birth) -> str:
    made = birth.made_by
    if "masked_fill" in made or "where" in made:
        return (
            "a masked probability is 0, and so is its term: use `torch.xlogy(p, p)` for p log(p),"
            f" or `{_call(birth.operation, 'p.clamp_min(1e-6)')}`"
        )
    if "sigmoid" in made:
        return (
            "compute it from the logits: `F.binary_cross_entropy_with_logits(logits, targets)`,"
            " or `F.logsigmoid(z)` for log(p) and `F.logsigmoid(-z)` for log(1 - p)"
        )
    if "softmax" in made or ("div" in made and "exp" in made):
        return (
            "compute it from the logits: `F.cross_entropy(logits, targets)`, or"
            " `F.log_softmax(logits, dim=-1)` in place of the log of a softmax"
        )
    if "sum" in made and "exp" in made:
        return "use `torch.logsumexp(x, dim)` in place of `x.exp().sum(dim).log()`"
    if birth.kind == "outside domain":
        return f"keep the operand positive: `{_call(birth.operation, 'x.clamp_min(1e-6)')}`"
    return (
        f"clamp the operand: `{_call(birth.operation, 'x.clamp_min(1e-6)')}`, or use a loss that"
        " takes logits if it is a probability"
    )


def _of_root(birth: Birth) -> str:
    made = birth.made_by
    if birth.operation in ("sqrt", "pow") and "sum" in made and ("pow" in made or "mul" in made):
        return (
            "use `torch.linalg.vector_norm(x, dim=-1)`, whose gradient at 0 is 0, or add an"
            " epsilon under the root: `(x.square().sum(-1) + 1e-12).sqrt()`"
        )
    return (
        f"add an epsilon: `{_call(birth.operation, '(x + 1e-12)')}`; the slope of a root at 0 is"
        " infinite"
    )


def _of_division(birth: Birth) -> str:
    if birth.operation == "pow":
        return "keep the base away from 0: `x.clamp_min(1e-6) ** exponent`"
    if birth.made_by[:1] == ("sum",) and birth.kind == "zero by zero":  # of nothing
        return "keep the count away from 0: `total / count.clamp_min(1)`"
    below = birth.operands[-1] if birth.operands else None
    if below is not None and below.low < 0:
        return "keep the denominator away from 0: `x / torch.where(y.abs() < 1e-6, 1e-6, y)`"
    return "keep the denominator away from 0: `x / y.clamp_min(1e-6)`, or `x / (y + eps)`"


def _of_exponential(birth: Birth) -> str:
    after = birth.went_into
    if "sum" in after and "log" in after:
        return "use `torch.logsumexp(x, dim)`, which subtracts the maximum first"
    if "sum" in after or "div" in after:
        return "use `torch.softmax(x, dim)`, which subtracts the maximum first"
    return (
        "bound the exponent: `x.clamp(max=20).exp()`, or use `F.softplus(x)` if any positive"
        " function works"
    )


def _of_domain(birth: Birth) -> str:
    if birth.operation in _BOUNDED:
        inside = _call(birth.operation, "x.clamp(-1 + 1e-6, 1 - 1e-6)")
        return f"clamp the argument to the domain: `{inside}`"
    if birth.operation == "pow":
        return "keep the base positive: `x.clamp_min(1e-12) ** exponent`"
    if birth.operation in ("sqrt", "rsqrt"):
        return (
            "keep the argument positive and away from 0:"
            f" `{_call(birth.operation, 'x.clamp_min(1e-3)')}`, or `F.softplus(x)` in place of a"
            " learned x"
        )
    return "clamp the argument to the domain of the function"


def _call(operation: str, operand: str) -> str:
    if operation in ("div", "reciprocal"):
        return f"y / {operand}"
    return f"{operand} ** exponent" if operation == "pow" else f"{operand}.{operation}()"


_FIXES = {
    "log of zero": "use a loss that takes logits, or clamp: `x.clamp_min(1e-6).log()`",
    "zero norm": "use `F.normalize(x, dim=-1)`, or `x / x.norm(dim=-1, keepdim=True).clamp_min("
    "1e-6)`",
    "overflow": "reduce the operands: clip gradients, or normalise before this line",
    "half range": "keep this operation in float32: `with torch.autocast(..., enabled=False):`",
    "masked row": "keep one position in every row of the mask, drop fully masked rows, or mask with"
    " a finite number: `scores.masked_fill(mask, torch.finfo(scores.dtype).min)`",
    "empty mean": "skip batches without a target, or divide by `count.clamp_min(1)`",
    "bad input": "check these samples, and clean the data where it is loaded",
    "spoiled weights": "resume from an earlier checkpoint, and skip steps that are not finite",
    "bad setting": "correct the schedule, or other code that writes to `optimizer.param_groups`: a"
    " learning rate is not finite",
    "in-place edit": "check the in-place write to the tensor",
}
