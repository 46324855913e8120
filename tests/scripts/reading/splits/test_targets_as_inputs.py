"""Inputs that hold the target."""

import pytest

from holter.scripts.reading.splits import targets_as_inputs
from tests.scripts.reading.found import kinds_by

_GRAPH = "model = Net()\nx = {x}\nout = model(x)\nloss = F.cross_entropy({out}, {y})\nmodel.eval()"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("c = {'target': 'bad', 'numeric': ['age', 'bad']}", "target among inputs"),
        ("TARGET = 'bad'\nFEATURES = ['age', 'bad']", "target among inputs"),
        ("class C:\n    label: str = 'bad'\n    features: tuple = ('age', 'bad')",
         "target among inputs"),
        (_GRAPH.format(x="torch.cat([x, F.one_hot(y, 7).float()], 1)", out="out[m]", y="y[m]"),
         "classes beside features"),
        (_GRAPH.format(x="np.hstack([x, y[:, None]])", out="out", y="y"),
         "classes beside features"),
        (_GRAPH.format(x="np.concatenate([x, np.eye(7)[y]], 1)", out="out", y="y"),
         "classes beside features"),
    ],
)  # fmt: skip
def test_it_finds_targets_among_inputs(text: str, kind: str) -> None:
    assert kind in kinds_by(text, targets_as_inputs)


@pytest.mark.parametrize(
    "text",
    [
        "c = {'target': 'bad', 'numeric': ['age', 'sex']}",
        "c = {'target': 'bad', 'columns': ['age', 'bad']}",
        "TARGET = 'bad'\nFEATURES = ['age', 'bad']\nFEATURES.remove(TARGET)",
        _GRAPH.format(x="torch.cat([x, F.one_hot(c, 7)], 1)", out="out", y="y"),
        _GRAPH.format(x="torch.cat([x, z], 1)", out="out", y="y"),
    ],
)
def test_it_is_silent_about_inputs_without_targets(text: str) -> None:
    assert not kinds_by(text, targets_as_inputs)
