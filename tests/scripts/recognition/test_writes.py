"""What a script does to weights after an update and to gradients before it, to be run again."""

from typing import Any

import pytest
import torch

from holter.lab.setup import LossPhase
from holter.scripts.recognition import Recognised

LOOP = """
scale = 8.0
for step, (x, y) in enumerate(train_loader):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    {backward}
    optimizer.step()
    {after}
"""


def phase(recognised: Any, *, backward: str = "loss.backward()", after: str = "pass") -> LossPhase:
    indented = [text.replace("\n", "\n    ") for text in (backward, after)]
    source = LOOP.format(backward=indented[0], after=indented[1])
    found: LossPhase = recognised(source, look=lambda found: found.setup.phases[0])
    return found


RENORMALISED = """norms = model[0].weight.detach().norm(dim=1, keepdim=True)
with torch.no_grad():
    model[0].weight.div_(norms)"""
CLAMPED = """for each in model.parameters():
    each.data.clamp_(-0.1, 0.1)"""
SOMETIMES = """if step % 2:
    limit = 0.1
    for each in model.parameters():
        each.data.clamp_(-limit, limit)"""


@pytest.mark.parametrize(
    ("after", "at"), [(RENORMALISED, "weight.div_"), (CLAMPED, "clamp_"), (SOMETIMES, "clamp_")]
)
def test_statements_that_write_to_weights_are_found_and_proven(
    recognised: Any, after: str, at: str
) -> None:
    found = phase(recognised, after=after).rewrite
    assert found is not None
    assert at in found.where or "with torch.no_grad" in found.where
    assert found.run is not None


def test_they_act_on_the_weights_that_they_find(recognised: Any) -> None:
    def look(found: Recognised) -> float:
        (made,) = found.setup.phases
        with torch.no_grad():
            for parameter in found.setup.model.parameters():
                parameter.fill_(7.0)
        assert made.rewrite is not None and made.rewrite.run is not None
        made.rewrite.run()
        return max(float(each.detach().abs().max()) for each in found.setup.model.parameters())

    source = LOOP.format(backward="loss.backward()", after=CLAMPED.replace("\n", "\n    "))
    assert recognised(source, look=look) == pytest.approx(0.1)


def test_what_depends_on_what_is_gone_is_named_and_not_run(recognised: Any) -> None:
    after = """with torch.no_grad():
    next(model.parameters()).fill_(float(len(held)))
held.append(step)"""
    source = "held = []\n" + LOOP.format(
        backward="loss.backward()", after=after.replace("\n", "\n    ")
    )
    found = recognised(source, look=lambda found: found.setup.phases[0].rewrite)
    assert found is not None
    assert found.run is None


def test_gradients_that_the_script_divides_are_divided(recognised: Any) -> None:
    backward = (
        "(loss * scale).backward()\nfor each in model.parameters():\n    each.grad.div_(scale)"
    )
    found = phase(recognised, backward=backward)
    assert found.regrade is not None
    assert found.regrade.run is not None
    assert "each.grad" in found.regrade.where or "for each" in found.regrade.where


def test_clipping_by_value_is_repeated(recognised: Any) -> None:
    backward = "loss.backward()\nnn.utils.clip_grad_value_(model.parameters(), 1e-3)"
    found = phase(recognised, backward=backward)
    assert found.regrade is not None and found.regrade.run is not None


def test_what_is_known_otherwise_is_no_write(recognised: Any) -> None:
    backward = "loss.backward()\nnn.utils.clip_grad_norm_(model.parameters(), 1e-3)"
    found = phase(recognised, backward=backward)
    assert (found.regrade, found.rewrite) == (None, None)
    assert found.max_norm == pytest.approx(1e-3)


def test_the_first_step_is_known_too(recognised: Any) -> None:
    source = """
data = torch.arange(600.0).view(100, 6)
for i in range(0, 96, 8):
    optimizer.zero_grad()
    loss = model(data[i : i + 8]).pow(2).mean()
    loss.backward()
    optimizer.step()
"""
    drawn = recognised(source, look=lambda found: found.drawn)
    assert 0 in drawn
    tensors = [value for value in drawn[0][0].values() if isinstance(value, torch.Tensor)]
    assert any(torch.equal(each, torch.arange(48.0).view(8, 6)) for each in tensors)
