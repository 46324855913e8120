"""Cross entropies of two distributions."""

import pytest

from holter.scripts.reading.losses import listwise
from tests.scripts.reading.found import kinds_by

_LIST = """
def listnet(scores, y, mask):
    target = F.softmax({target}, dim={axis})
    logp = F.log_softmax({scores}, dim=1)
    return {sign}(target * {logp}).sum(dim=1).mean()
loss = listnet(model(x), y, mask)
loss.backward()
"""
_HIDDEN = "masked_fill(~mask, float('-inf'))"


def _list(
    target: str = f"y.{_HIDDEN}",
    scores: str = f"scores.{_HIDDEN}",
    logp: str = "logp.masked_fill(~mask, 0.0)",
    axis: str = "1",
    sign: str = "-",
) -> str:
    return _LIST.format(target=target, scores=scores, logp=logp, axis=axis, sign=sign)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (_list(axis="0"), "softmax of other axes"),
        (_list(target="y", scores="scores", axis="0", logp="logp"), "softmax of other axes"),
        ("l = -(softmax(t, dim=-1) * log_softmax(s, dim=0)).sum()", "softmax of other axes"),
        (_list(target="y"), "mask on one side"),
        (_list(scores="scores"), "mask on one side"),
        (_list(target="y", scores="torch.where(mask, scores, -1e9)"), "mask on one side"),
        (_list(logp="logp"), "infinite times zero"),
        (_list(target="y", logp="logp"), "infinite times zero"),
        (_list(scores="torch.where(mask, scores, -torch.inf)", logp="logp"),
         "infinite times zero"),
        (_list(sign=""), "reversed likelihood"),
        (_list(sign="", target="y", scores="scores", logp="logp"), "reversed likelihood"),
        (("t, p = teacher(x).softmax(1), model(x).log_softmax(1)\nloss = (t * p).sum(1).mean()\n"
         "loss.backward()"), "reversed likelihood"),
    ],
)  # fmt: skip
def test_it_finds_distributions_that_do_not_match(text: str, kind: str) -> None:
    assert kind in kinds_by(text, listwise)


@pytest.mark.parametrize(
    "text",
    [
        _list(),
        _list(target="y", scores="scores", logp="logp"),
        _list(target="y.masked_fill(~mask, -1e9)", scores="scores.masked_fill(~mask, -1e9)",
              logp="logp"),
        "p, q = z.softmax(1), z.log_softmax(1)\nloss = a + (p * q).sum(1).mean()\nloss.backward()",
        "t, p = u.softmax(1), v.log_softmax(-1)\nloss = -(t * p).sum(1).mean()\nloss.backward()",
    ],
)  # fmt: skip
def test_it_is_silent_about_right_cross_entropies(text: str) -> None:
    assert not kinds_by(text, listwise)
