"""Risk sets of Cox losses."""

import pytest

from holter.scripts.reading.losses import risk_sets
from tests.scripts.reading.found import kinds_by

_COX = """
def cox_loss(risk, time, event):
    at_risk = {mask}
    lse = torch.logsumexp({values}.masked_fill({hidden}, {fill}), dim={axis})
    return -((risk - lse) * event).sum() / event.sum()
"""


def _cox(
    mask: str = "time[None, :] >= time[:, None]",
    values: str = "risk[None, :]",
    hidden: str = "~at_risk",
    fill: str = "float('-inf')",
    axis: str = "1",
) -> str:
    return _COX.format(mask=mask, values=values, hidden=hidden, fill=fill, axis=axis)


_SUM = "def cox_loss(risk, time, event):\n    return torch.log(({}).sum({}))\n"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (_cox(mask="time[None, :] <= time[:, None]"), "reversed risk set"),
        (_cox(hidden="at_risk"), "reversed risk set"),
        (_cox(mask="time.unsqueeze(0) < time.unsqueeze(1)"), "reversed risk set"),
        (_SUM.format("(time[None] <= time[:, None]).float() * torch.exp(risk)[None]", 1),
         "reversed risk set"),
        (_cox(axis="0"), "risk set of copies"),
        (_cox(values="risk[:, None]"), "risk set of copies"),
        (_cox(values="risk.unsqueeze(1)", axis="-1"), "risk set of copies"),
        (_cox(fill="0"), "zero in risk set"),
        (_cox(fill="0.0", values="risk.unsqueeze(0)"), "zero in risk set"),
        (_cox(fill="0.0", values="risk[None]", axis="-1"), "zero in risk set"),
        ("df = df[df['event'] == 1]\nloss = cox(risk)", "censored dropped"),
        ("df = df[(df['t'] > 0) & (df.died == 1)].copy()\nloss = cox(risk)", "censored dropped"),
        ("df = df.query('event == 1')\nloss = cox(risk)", "censored dropped"),
    ],
)  # fmt: skip
def test_it_finds_wrong_risk_sets(text: str, kind: str) -> None:
    assert kind in kinds_by(text, risk_sets)


@pytest.mark.parametrize(
    "text",
    [
        _cox(),
        _cox(mask="time[None, :] < time[:, None]", hidden="at_risk"),
        _cox(mask="time[None, :] <= time[:, None]", values="risk[:, None]", axis="0"),
        _SUM.format("(time[None] >= time[:, None]).float() * torch.exp(risk)[None]", 1),
        "deaths = df[df['event'] == 1]\nloss = cox(risk)",
        "df = df[df['event'] >= 0]\nloss = cox(risk)",
    ],
)
def test_it_is_silent_about_right_risk_sets(text: str) -> None:
    assert not kinds_by(text, risk_sets)
