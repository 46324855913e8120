"""Tokens that the steps of a decoder are fed."""

import pytest

from tests.scripts.reading.found import kinds

FORCED = """
class Net(nn.Module):
    def forward(self, past, target=None, teacher=0.0):
        prev, outs = past[:, -1], []
        for t in range(24):
            {before}
            h = self.cell(prev, h)
            pred = self.out(h)
            outs.append(pred)
            {after}
        return torch.stack(outs, 1)
model = Net()
@torch.no_grad()
def evaluate(loader):
    model.eval()
    for x, y in loader:
        pred = model({given})
"""


@pytest.mark.parametrize("given", ["x, y, 1.0", "x, y, teacher=1.0", "x, target=y, teacher=0.5"])
def test_forced_evaluations(given: str) -> None:
    assert "forced evaluation" in kinds(
        FORCED.format(before="pass", after="prev = pred", given=given)
    )


@pytest.mark.parametrize("given", ["x", "x, y, 0.0", "x, y, teacher=ratio", "x, y, teacher=0"])
def test_free_evaluations(given: str) -> None:
    assert "forced evaluation" not in kinds(
        FORCED.format(before="pass", after="prev = pred", given=given)
    )


@pytest.mark.parametrize(
    "before",
    ["prev = target[:, t]", "prev = target[:, t] if random.random() < teacher else prev",
     "if target is not None:\n                prev = target[:, t]"],
)  # fmt: skip
def test_steps_that_are_fed_their_answer(before: str) -> None:
    assert "own answer" in kinds(FORCED.format(before=before, after="prev = pred", given="x"))


@pytest.mark.parametrize(
    ("before", "after"),
    [("pass", "prev = target[:, t] if random.random() < teacher else pred"),
     ("prev = target[:, t - 1]", "prev = pred"), ("pass", "prev = pred")],
)  # fmt: skip
def test_steps_that_are_fed_the_one_before(before: str, after: str) -> None:
    assert "own answer" not in kinds(FORCED.format(before=before, after=after, given="x"))
