"""Loops as people write them: what is recognised in each is the script's own step, bit for bit."""

from typing import Any

import pytest
import torch
from forms import FORMS

from holter.lab.state import kept
from holter.scripts.recognition import Recognised


@pytest.mark.parametrize("name", FORMS)
def test_the_step_is_the_scripts_own(recognised: Any, name: str) -> None:
    keys, source = FORMS[name]

    def look(found: Recognised) -> tuple[bool, list[dict[str, Any]], list[float]]:
        batches = list(found.setup.train)
        with kept(found.setup):
            losses = [found.setup.step(batches[0]) for _ in range(3)]
        return found.exact, batches, losses

    exact, batches, losses = recognised(source, look=look)
    assert exact
    assert [set(each) for each in batches] == [keys] * len(batches)
    assert all(torch.isfinite(torch.tensor(losses)))


def test_full_batches_are_one_batch(recognised: Any) -> None:
    found = recognised("""
for step in range(20):
    out = model(X)
    loss = F.cross_entropy(out, Y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""")
    (batch,) = found.setup.train
    assert found.exact
    assert {name: len(each) for name, each in batch.items()} == {"X": 192, "Y": 192}
