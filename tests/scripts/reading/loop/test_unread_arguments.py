"""Parameters of functions that nothing reads."""

import pytest

from holter.scripts.reading.loop import unread_arguments
from tests.scripts.reading.found import kinds_by


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (("def cox_loss(risk, time, event):\n    return -(risk - logcumsumexp(risk, 0)).mean()"
         "\nloss = cox_loss(r, t, e)"), "unread outcome"),
        (("def c_index(risk, time, event):\n    return (risk[time < time[:, None]] > 0).mean()"
         "\nprint(c_index(r, t, e))"), "unread outcome"),
        (("def cox_ph(log_h, durations, events):\n    return -(log_h * events).sum()"
         "\nl = cox_ph(r, durations=t, events=e)"), "unread outcome"),
        (("def evaluate(model, users, seen):\n    return model(users).topk(10)"
         "\nevaluate(m, u, seen)"), "unread exclusion"),
        ("def draw(users, n, seen):\n    return rng.integers(0, n, len(users))\ndraw(u, 9, s)",
         "unread exclusion"),
        (("def recommend(model, users, known_items):\n    return model(users).argsort(1)"
         "\nrecommend(m, u, known)"), "unread exclusion"),
        ("def masked_loss(a, b, mask):\n    return ((a - b) ** 2).mean()\nmasked_loss(a, b, m)",
         "unread padding"),
        ("def ndcg(scores, y, mask):\n    return dcg(scores, y)\nndcg(s, y, mask=m)",
         "unread padding"),
        (("def seq_loss(logits, y, lengths):\n    return F.cross_entropy(logits, y)"
         "\nseq_loss(a, b, n)"), "unread padding"),
    ],
)  # fmt: skip
def test_it_finds_parameters_that_nothing_reads(text: str, kind: str) -> None:
    assert kind in kinds_by(text, unread_arguments)


@pytest.mark.parametrize(
    "text",
    [
        "def masked_loss(a, b, mask):\n    return ((a - b) * mask).sum()\nmasked_loss(a, b, m)",
        "def loss(a, b, mask=None):\n    return (a - b).mean()\nloss(a, b)",
        (
            "def mse_loss(a, b, mask):\n    return (a - b).mean()\n"
            "def mae_loss(a, b, mask):\n    return (mask * (a - b)).mean()\nmse_loss(a, b, m)"
        ),
        "def evaluate(model, users, seen):\n    return model(users).mean()\nevaluate(m, u, s)",
        "def cox_loss(risk, time, event):\n    raise NotImplementedError\ncox_loss(r, t, e)",
    ],
)
def test_it_is_silent_about_parameters_that_are_read(text: str) -> None:
    assert not kinds_by(text, unread_arguments)
