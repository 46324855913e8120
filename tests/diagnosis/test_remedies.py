"""The safe form of an operation depends on what it is used for."""

from typing import Any

import pytest

from holter.diagnosis.remedies import instruction, safe_form
from holter.record.births import Birth, Operand
from holter.record.typed import from_json


def birth(operation: str, kind: str, **more: Any) -> Birth:
    return from_json(Birth, {"operation": operation, "kind": kind, "where": "train.py:1", **more})


@pytest.mark.parametrize(
    ("found", "named"),
    [
        (birth("log", "log of zero", made_by=["rsub", "sigmoid"]), "cross_entropy_with_logits"),
        (birth("log", "log of zero", made_by=["sigmoid"]), "F.logsigmoid(z)"),
        (birth("log", "log of zero", made_by=["index", "softmax"]), "F.log_softmax"),
        (birth("log", "log of zero", made_by=["index", "div", "exp"]), "F.cross_entropy"),
        (birth("log", "log of zero", made_by=["softmax", "masked_fill"]), "torch.xlogy(p, p)"),
        (birth("log", "log of zero", made_by=["sum", "exp"]), "torch.logsumexp"),
        (birth("log", "log of zero", made_by=["addmm"]), "x.clamp_min(1e-6).log()"),
        (birth("sqrt", "root at zero", made_by=["sum", "pow"]), "torch.linalg.vector_norm"),
        (birth("sqrt", "root at zero", made_by=["relu"]), "(x + 1e-12).sqrt()"),
        (birth("div", "zero by zero"), "y.clamp_min(1e-6)"),
        (birth("div", "zero by zero", made_by=["sum", "ne"]), "count.clamp_min(1)"),
        (birth("pow", "division by zero"), "x.clamp_min(1e-6) ** exponent"),
        (birth("std", "empty mean"), "x.std(unbiased=False)"),
        (birth("softmax", "masked row"), "torch.finfo(scores.dtype).min"),
        (birth("div", "zero norm"), "F.normalize"),
        (birth("exp", "exp overflow", went_into=["sum", "log"]), "torch.logsumexp"),
        (birth("exp", "exp overflow", went_into=["sum", "div"]), "torch.softmax"),
        (birth("exp", "exp overflow", went_into=["mul"]), "x.clamp(max=20).exp()"),
        (birth("ctc_loss", "unknown"), "zero_infinity=True"),
        (birth("acos", "outside domain"), "x.clamp(-1 + 1e-6, 1 - 1e-6).acos()"),
        (birth("pow", "outside domain"), "x.clamp_min(1e-12) ** exponent"),
        (birth("sqrt", "root at zero", masked=True), "torch.where(mask, safe.sqrt(), 0.0)"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_the_safe_form_is_named(found: Birth, named: str) -> None:
    assert named in safe_form(found)


def test_a_denominator_of_both_signs_is_not_clamped() -> None:
    below = Operand("y", (4,), "float32", -1.0, 1.0, 1, 0)
    found = from_json(Birth, {"operation": "div", "kind": "division by zero"})
    assert "y.abs() <" not in safe_form(found)
    signed = Birth(**{**_fields(found), "operands": (below,)})
    assert "torch.where(y.abs() < 1e-6" in safe_form(signed)


def _fields(found: Birth) -> dict[str, Any]:
    return {name: getattr(found, name) for name in Birth.__slots__}


def test_changes_made_together_are_both_named() -> None:
    told = instruction("learning rate x 0.1 and clip to 1")
    assert "multiply the learning rate by 0.1, and clip gradients" in told
