"""Operations of torch: how people call them, and what some of them do."""

import re
from functools import cache
from typing import Any

_ALIASES = {
    "convolution": "conv",
    "cudnn_batch_norm": "batch_norm",
    "miopen_batch_norm": "batch_norm",
    "batch_norm_with_update": "batch_norm",
    "linalg_vector_norm": "norm",
    "linalg_slogdet": "slogdet",
    "fused_rms_norm": "rms_norm",
    "nll_loss_forward": "nll_loss",
    "nll_loss2d_forward": "nll_loss",
    "nll_loss2d": "nll_loss",
    "cdist_forward": "cdist",
    "euclidean_dist": "cdist",
    "to_copy": "to",
    "log_sigmoid_forward": "logsigmoid",
    "efficient_attention_forward": "scaled_dot_product_attention",
    "flash_attention_forward": "scaled_dot_product_attention",
    "true_divide": "div",
    "divide": "div",
}

# Their output is whatever was in memory.
UNFILLED = frozenset(
    ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted")
)
# What they change in place is not read.
OVERWRITES = frozenset(
    (
        *("copy", "fill", "zero", "normal", "uniform", "bernoulli", "random", "exponential"),
        *("cauchy", "geometric", "log_normal", "resize", "set"),
    )
)
EDITS = frozenset(("copy", "fill", "index_put", "index_fill", "masked_fill", "fill_diagonal"))
SOFTMAXES = frozenset(
    ("softmax", "log_softmax", "safe_softmax", "masked_softmax", "scaled_dot_product_attention")
)
ROOTS = frozenset(("norm", "sqrt", "rsqrt", "cdist", "hypot", "dist", "pow", "pdist"))
LOGARITHMS = frozenset(("log", "log2", "log10", "log1p", "xlogy", "logit", "slogdet"))
BOUNDED = frozenset(
    ("acos", "asin", "acosh", "atanh", "erfinv", "lgamma", "digamma", "ndtri", "logit")
)
EXPONENTIALS = frozenset(("exp", "expm1", "exp2", "sinh", "cosh"))
DIVISIONS = frozenset(("div", "addcdiv", "reciprocal", "remainder", "fmod"))
MEANS = frozenset(
    (
        *("mean", "std", "var", "std_mean", "var_mean", "nll_loss", "mse_loss", "l1_loss"),
        *("smooth_l1_loss", "huber_loss", "binary_cross_entropy", "adaptive_avg_pool2d"),
    )
)
SPREADS = frozenset(("std", "var", "std_mean", "var_mean"))
NORMALISATIONS = frozenset(("layer_norm", "batch_norm", "group_norm", "rms_norm", "instance_norm"))


@cache
def called(func: Any) -> str:
    """The name that people have for an operation: `log` for `aten.log.default`."""
    space, name = str(func._schema.name).split("::")  # noqa: SLF001  (there is no public way)
    if space not in ("aten", "prims"):
        return f"{space}.{name}"
    return spoken(name)


def spoken(name: str) -> str:
    """A name of torch's own without what only its authors need."""
    name = name.strip("_").removeprefix("foreach_").removeprefix("native_")
    name = re.sub(r"^scaled_dot_product_\w*attention(_for_cpu)?(?!\w)", _ATTENTION, name)
    name = re.sub(r"^scaled_dot_product_\w*attention(_for_cpu)?_backward", _ATTENTION_BACK, name)
    name = name.removesuffix("_legit").removesuffix("_legit_no_training")
    return _ALIASES.get(name, name)


_ATTENTION = "scaled_dot_product_attention"
_ATTENTION_BACK = "scaled_dot_product_attention_backward"


def meant(operation: str, line: str) -> str:
    """The operation that a line calls, where torch makes a constant NaN for it; else the same."""
    return (
        "logdet" if operation == "scalar_tensor" and re.search(r"\blogdet\(", line) else operation
    )


@cache
def of_node(node: str) -> str:
    """The operation whose gradient an autograd node computes: `sqrt` for `SqrtBackward0`."""
    stem, found, _ = node.rpartition("Backward")
    if not found:
        return ""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", stem).lower()
    return spoken(words)
