"""Ranking metrics, listwise losses, risk sets, unread parameters, and how weights are chosen."""

import pytest

from holter.scripts.reading.loop import unread_arguments
from holter.scripts.reading.losses import listwise, risk_sets
from holter.scripts.reading.retrieval import ranking_metrics
from holter.scripts.reading.splits import model_selection
from tests.scripts.reading.found import kinds_by

_LOOP = """
for epoch in range(9):
    losses = []
    for x, y in train_loader:
        loss = f(model(x), y)
        loss.backward()
        opt.step()
        losses.append(loss.item())
    {figures}
    if {test}:
        {keep}
        torch.save(model.state_dict(), "best.pt")
"""


def _loop(figures: str, test: str, keep: str) -> str:
    return "val_loader = DataLoader(val_set)\n" + _LOOP.format(
        figures=figures, test=test, keep=keep
    )


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (
            _loop("acc = evaluate(model, test_loader)", "acc > best", "best = acc"),
            "chosen on test",
        ),
        (
            _loop("val_loss, _ = evaluate(test_mask)", "val_loss < best", "best = val_loss"),
            "chosen on test",
        ),
        (
            _loop("m = evaluate(model, loaders['test'])", "m['f1'] > best", "best = m['f1']"),
            "chosen on test",
        ),
        (
            _loop(
                "val_loss = evaluate(model, val_loader)",
                "np.mean(losses) < best",
                "best = np.mean(losses)",
            ),
            "chosen on training",
        ),
        (
            _loop(
                "mean = sum(losses) / 9; val_acc = evaluate(model, val_loader)",
                "mean < best",
                "best = mean",
            ),
            "chosen on training",
        ),
        (
            _loop(
                "loss_now = np.mean(losses); score = evaluate(model, val_loader); print(score)",
                "best > loss_now",
                "best = loss_now",
            ),
            "chosen on training",
        ),
    ],
)
def test_it_finds_weights_that_are_chosen_otherwise(text: str, kind: str) -> None:
    assert kind in kinds_by(text, model_selection)


@pytest.mark.parametrize(
    "text",
    [
        _loop("acc = evaluate(model, val_loader)", "acc > best", "best = acc"),
        _loop(
            "acc = evaluate(model, val_loader); t = evaluate(model, test_loader)",
            "acc > best",
            "best = acc",
        ),
        _loop(
            "val_loss = evaluate(model, val_loader); stopper.step(val_loss)",
            "np.mean(losses) < best",
            "best = np.mean(losses)",
        ),
        _loop(
            "val_loss = evaluate(model, val_loader)", "val_loss < best - 1e-3", "best = val_loss"
        ),
        _loop("acc = evaluate(model, test_loader)", "acc > best", "best = acc").replace(
            "val_loader = DataLoader(val_set)", ""
        ),
    ],
)
def test_it_is_silent_about_a_choice_by_validation(text: str) -> None:
    assert not kinds_by(text, model_selection)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("g = rel / np.log2(np.arange(len(rel)) + 1)", "discount from one"),
        ("d = 1 / torch.log2(torch.arange(k).float() + 1)", "discount from one"),
        ("dcg = sum(r / math.log2(i + 1) for i, r in enumerate(rels))", "discount from one"),
        ("rank = (s > own).sum(dim=1)\nn = hit / torch.log2(rank.float() + 1)",
         "discount from one"),
        ("own = scores.gather(1, t)\nrank = (scores < own).sum(1)\nhit = rank < 10",
         "rank of the worse"),
        ("own = scores[rows, t][:, None]\nrank = (own > scores).sum(1) + 1\nmrr = 1 / rank",
         "rank of the worse"),
        ("rank = np.sum(scores < scores[t])\nhit = rank < 10", "rank of the worse"),
        ("def recall(scores, y, k):\n    return y.gather(1, scores.topk(k, largest=False)[1])",
         "ranked ascending"),
        ("def ndcg_at_k(scores, y, k):\n    top = np.argsort(scores)[:k]\n    return y[top]",
         "ranked ascending"),
        ("def hit_rate(scores, y, k):\n    top = scores.argsort(dim=1)[:, :k]\n    return top == y",
         "ranked ascending"),
        ("top = s.topk(k).indices\nideal = gain.gather(1, top).sort(1, descending=True)[0]",
         "ideal of the retrieved"),
        ("top = np.argsort(-s)[:k]\nrels = y[top]\nidcg = dcg(sorted(rels, reverse=True))",
         "ideal of the retrieved"),
        ("top = np.argsort(-s)[:k]\nr = [y[i] for i in top]\nideal = dcg(sorted(r)[::-1])",
         "ideal of the retrieved"),
        (("def ndcg(scores, y, mask, k):\n    g = y.masked_fill(~mask, 0)\n"
         "    return g.gather(1, scores.topk(k).indices)"), "padding in ranks"),
        (("def recall(scores, y, valid, k):\n    g = torch.where(valid, y, 0)\n"
         "    return g.gather(1, scores.argsort(1, descending=True)[:, :k])"), "padding in ranks"),
        (("def mrr(logits, y, mask):\n    g = y.masked_fill(mask == 0, 0)\n"
         "    return g.gather(1, logits.sort(dim=1, descending=True).indices)"),
         "padding in ranks"),
    ],
)  # fmt: skip
def test_it_finds_ranks_that_are_miscounted(text: str, kind: str) -> None:
    assert kind in kinds_by(text, ranking_metrics)


@pytest.mark.parametrize(
    "text",
    [
        "g = rel / np.log2(np.arange(len(rel)) + 2)",
        "g = rel / np.log2(np.arange(1, n + 1) + 1)",
        "dcg = sum(r / math.log2(i + 1) for i, r in enumerate(rels, start=1))",
        "rank = (s >= own).sum(dim=1)\nn = hit / torch.log2(rank.float() + 1)",
        "bits = torch.log2(torch.arange(k) + 1)",
        "own = scores.gather(1, t)\nrank = (scores > own).sum(1)\nhit = rank < 10",
        "own = scores.gather(1, t)\nshare = (scores < own).float().mean(1)",
        (
            "scores = torch.cdist(a, b)\nown = scores.gather(1, t)\nrank = (scores < own).sum(1)\n"
            "hit = rank < 10"
        ),
        (
            "def recall(scores, y, k):\n    scores = -scores\n"
            "    return scores.topk(k, largest=False)[1]"
        ),
        "def ndcg(scores, y, k):\n    return y[np.argsort(scores)[::-1][:k]]",
        "def ndcg(scores, y, k):\n    return y[np.argsort(scores)[-k:]]",
        "ideal = gain.topk(k).values",
        "order = np.argsort(-s)\nidcg = dcg(sorted(y[order], reverse=True))",
        (
            "def ndcg(scores, y, mask, k):\n    scores = scores.masked_fill(~mask, -1e9)\n"
            "    return y.masked_fill(~mask, 0).gather(1, scores.topk(k).indices)"
        ),
    ],
)
def test_it_is_silent_about_right_ranks(text: str) -> None:
    assert not kinds_by(text, ranking_metrics)


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
