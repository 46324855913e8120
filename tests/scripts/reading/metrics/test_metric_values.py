"""Readers that follow a metric's values to the model or the data, and their healthy twins."""

import pytest

from holter.scripts.reading import read

BEGIN = """
import numpy as np, torch, torchmetrics
import torch.nn.functional as F
from sklearn.metrics import *
from sklearn.metrics import average_precision_score, confusion_matrix, f1_score
from sklearn.metrics import precision_score, r2_score, roc_auc_score
from torchmetrics.functional import auroc
net = nn.Sequential(nn.Linear(4, 1))
net.eval()
val = DataLoader(rows, batch_size=8)
held, ys = np.load("held.npy"), np.load("ys.npy")
"""
RUN = """
def run(m, data):
    u, v = [], []
    for q, w in data:
        u.append(m(q)); v.append(w)
    return torch.cat(u), torch.cat(v)
"""
HARD = RUN.replace("m(q)", "m(q).argmax(1)")
REPORT = """
def report(y_true, y_pred):
    return precision_score(y_true, y_pred)
"""
COUNTS = """
t = 0
for q, w in val:
    p = net(q) > 0
    a = (p & w).sum().item(); b = (p & ~w).sum().item(); c = (~p & w).sum().item()
    {}
print(t / len(val))
"""
INFER = """
def infer(m, xs, lens):
    idx = {}
    res = []
    for part in idx.split(8):
        {}
    return {}
p = infer(net, xs, lens)
"""
FORWARD = """
class Net(nn.Module):
    def forward(self, x, lengths):
        {}
        packed = pack_padded_sequence({}, lengths, batch_first=True)
        out, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return self.head({})
"""


def each(body: str, after: str = "") -> str:
    """A loop over the batches of held-out data."""
    return f"t = n = 0\ns = []\nfor q, w in val:\n    {body}\n{after}\n"


FOUND = {
    "exchanged arguments": (
        "a = sc.inverse_transform(net(xv).detach().numpy()).ravel()\nr2_score(a, held[mask])\n",
        "a = net(xv)\nr2_score(y_true=a, y_pred=held)\n",
        "o = np.zeros(9)\nfor i, (q, w) in enumerate(val):\n    o[i] = net(q)\nr2_score(o, held)\n",
        (
            "u, v = [], []\nfor q, w in val:\n    u.extend(net(q).argmax(1).tolist())\n"
            "    v.extend(w.tolist())\nconfusion_matrix(u, v)\n"
        ),
        RUN + "a, b = run(net, val)\naverage_precision_score(a, b)\n",
        RUN + "labels, preds = run(net, val)\nroc_auc_score(labels, preds)\n",
        REPORT + "a = net(xv).argmax(1)\nreport(a, held)\n",
        "a = net(xv).argmax(1)\nf1_score(a, held, average='weighted')\n",
    ),
    "truth first": (
        "m = torchmetrics.R2Score()\n" + each("m.update(w, net(q))"),
        "a = net(xv)\nauroc(held, a, task='binary')\n",
    ),
    "exchanged loss": (
        each("loss = F.binary_cross_entropy(w, torch.sigmoid(net(q)))"),
        "crit = nn.BCEWithLogitsLoss()\n" + each("o = net(q); loss = crit(w, o)"),
    ),
    "hard ranking": (
        HARD + "a, b = run(net, val)\nroc_auc_score(b, a)\n",
        "k = torch.sigmoid(net(xv))\nh = (k > 0.5).int()\nroc_auc_score(held, h)\n",
    ),
    "averaged metrics": (
        each("s.append(f1_score(w, net(q).argmax(1), average='macro'))", "np.mean(s)"),
        each("t += roc_auc_score(w, net(q))", "print(t / len(val))"),
        each("t += r2_score(w, net(q)) * len(w); n += len(w)", "print(t / n)"),
        each("k = net(q); t += 1 - ((k - w) ** 2).sum() / ((w - w.mean()) ** 2).sum()", "t /= 9"),
        "print(np.mean([r2_score(w, net(q)) for q, w in val]))\n",
        "m = AverageMeter()\n" + each("m.update(f1_score(w, net(q).argmax(1)), len(w))"),
        (
            "s = []\nfor i in range(0, 99, 9):\n    p = net(X[i:i+9])\n"
            "    s.append(roc_auc_score(Y[i:i+9], p))\nprint(sum(s) / len(s))\n"
        ),
        (
            "def judge(m, data):\n    s = []\n    for q, w in data:\n"
            "        s.append(f1_score(w, m(q)))\n    return np.mean(s)\njudge(net, val)\n"
        ),
        COUNTS.format("t += 2 * a / max(2 * a + b + c, 1)"),
        COUNTS.format("k = a / (a + b + 1e-8); r = a / (a + c); t += 2 * k * r / (k + r + 1e-8)"),
    ),
    "averaged roots": (
        each("t += torch.sqrt(F.mse_loss(net(q), w)).item()", "print(t / len(val))"),
        each("e = ((net(q) - w) ** 2).mean(); s.append(e.item() ** 0.5)", "print(np.mean(s))"),
    ),
    "ranks with ties": (
        "s = torch.sigmoid(net(u)).round(decimals=1)\nrank = (s[:, 1:] > s[:, :1]).sum(1)\n",
        "s = torch.round(net(u) * 10) / 10\nrank = (s[:, 1:] > s[:, :1]).sum(1)\n",
        "s = np.round(net(u), 2)\nown = s[np.arange(9), item]\nnp.sum(s > own[:, None], axis=1)\n",
        "s = net(u).int()\n_, top = torch.topk(s, 10)\n",
    ),
    "scale in root": (
        "e = F.mse_loss(a, b).item()\nrmse = (e * y_std) ** 0.5\n",
        "e = ((p - t) ** 2).mean()\nr = math.sqrt(e.item() * ys.scale_[0])\n",
        "k = prices.std()\nr = np.sqrt(mean_squared_error(p, t) * k)\n",
    ),
    "sorted predictions": (
        INFER.format("np.argsort(lens)", "res.append(m(xs[part]))", "torch.cat(res)"),
        INFER.format("torch.randperm(9)", "out = m(xs[part]); res.append(out.cpu())", "res"),
        (
            "def infer(m, rows):\n    rows = sorted(rows, key=lambda r: len(r[0]))\n    res = []\n"
            "    for i in range(0, len(rows), 8):\n"
            "        res.extend(m(pad(rows[i:i + 8])).tolist())\n    return res\ninfer(net, rows)\n"
        ),
        (
            "def infer(m, xs, lens):\n    idx = torch.argsort(lens)\n"
            "    return torch.cat([m(xs[idx[i:i + 8]]) for i in range(0, 80, 8)])\n"
            "infer(net, xs, l)\n"
        ),
        (
            "idx = np.argsort(lens)\nres = []\nfor i in range(0, 99, 9):\n"
            "    res.append(net(xs[idx[i:i + 9]]))\np = torch.cat(res).argmax(1)\nprint(p == ys)\n"
        ),
    ),
    "sorted forward": (
        FORWARD.format("lengths, order = lengths.sort(descending=True)", "x[order]", "out"),
        FORWARD.format("k = torch.argsort(lengths); lengths = lengths[k]", "self.emb(x)[k]", "out"),
    ),
}
HEALTHY = (
    "a = sc.inverse_transform(net(xv).detach().numpy()).ravel()\nr2_score(held[mask], a)\n",
    "preds = held\ny = net(xv)\nr2_score(preds, y)\n",  # names that say the contrary
    "t = teacher(xv)\nteacher.eval()\ns = net(xv)\nr2_score(s, t)\n",  # of two models
    RUN + "a, b = run(net, val)\naverage_precision_score(b, a)\n",
    "def report(p, t):\n    return precision_score(t, p)\na = net(xv)\nreport(a, held)\n",
    "a = net(xv).argmax(1)\nf1_score(a, held)\n",  # equal both ways
    "m = torchmetrics.R2Score()\n" + each("m.update(net(q), w)"),
    "a = net(xv)\nauroc(a, held, task='binary')\n",
    each("loss = F.binary_cross_entropy(torch.sigmoid(net(q)), w)"),
    "z = nn.Parameter(torch.zeros(3))\nF.binary_cross_entropy(torch.sigmoid(z), net(x))\n",
    "k = torch.sigmoid(net(xv))\nroc_auc_score(held, k)\n",
    each("s.append(net(q)); u.append(w)", "f1_score(torch.cat(u), torch.cat(s))"),
    each("s.append(f1_score(w, net(q))); loss.backward()", "np.mean(s)"),  # while training
    each("t += f1_score(w, net(q), average='micro')", "print(t / len(val))"),  # the accuracy
    each("t += (net(q).argmax(1) == w).sum().item() / len(w)", "print(t / len(val))"),
    each("s.append(torch.sqrt(((net(q) - w) ** 2).sum(-1)))", "torch.cat(s).mean()"),
    "s = []\nfor u in users:\n    s.append(roc_auc_score(y[u], p[u]))\nnp.mean(s)\n",
    "ones = DataLoader(rows)\n" + each("s.append(f1_score(w, net(q)))", "np.mean(s)"),
    "s = torch.sigmoid(net(u))\nrank = (s[:, 1:] > s[:, :1]).sum(1)\nprint(s.round())\n",
    "s = np.round(net(u), 6)\norder = np.argsort(-s)\n",
    "e = F.mse_loss(a, b).item()\nrmse = e ** 0.5 * y_std\n",
    "e = F.mse_loss(a, b).item()\nrmse = (e * y_std ** 2) ** 0.5\n",
    INFER.format("np.argsort(lens)", "res.append(m(xs[part]))", "torch.cat(res)[np.argsort(idx)]"),
    INFER.format("np.argsort(lens)", "res.append(m(xs[part]))", "torch.cat(res), idx"),
    INFER.format("np.argsort(lens)", "res.append(m(xs[part]))", "torch.cat(res).mean(0)"),
    INFER.format("np.argsort(lens)", "out[part] = m(xs[part])", "out"),
    INFER.format("np.argsort(lens)", "res.append(m(xs[part])); y.append(ys[part])", "res"),
    INFER.format("np.argsort(lens)", "res.append(m(xs[part]) == ys[part])", "torch.cat(res)"),
    FORWARD.format(
        "lengths, order = lengths.sort(descending=True)", "x[order]", "out[torch.argsort(order)]"
    ),
)


@pytest.mark.parametrize(("kind", "text"), [(k, t) for k, ts in FOUND.items() for t in ts])
def test_mistakes_are_found(kind: str, text: str) -> None:
    assert {pattern.kind for pattern in read(BEGIN + text)} == {kind}


@pytest.mark.parametrize("text", HEALTHY)
def test_healthy_twins_have_no_pattern(text: str) -> None:
    assert read(BEGIN + text) == []
