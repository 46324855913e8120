"""Readers of survival, class weights, dice, uncertainty weights, and twins without a pattern."""

import pytest

from holter.scripts.reading import read

CINDEX = (
    "def concordance(risk, time, event):\n"
    "    ok = (time.unsqueeze(1) < time.unsqueeze(0)) & (event.unsqueeze(1) == 1)\n"
    "    diff = risk.unsqueeze(1) - risk.unsqueeze(0)\n"
    "    good = (diff {} 0).float()\n    return good[ok].mean()\n"
    "concordance(r, t, e)"
)
TASKS = "p = torch.exp(-self.log_var)\nloss = p[0] * a + p[1] * b {} self.log_var.sum()"
DICE = (
    "def dice_loss({0}, target):\n    {1}\n"
    "    inter = ({0} * target).sum()\n"
    "    return 1 - 2 * inter / ({0}.sum() + target.sum())\n"
    "loss = F.cross_entropy(out, y) + dice_loss(out, y)"
)
SURVIVAL = "def cox(risk, event):\n    return risk * event\ncox(r, event)\n"
FOUND = {
    "proportional weights": (
        (
            "counts = torch.bincount(y)\nw = counts / counts.sum()\n"
            "loss = nn.CrossEntropyLoss(weight=w)"
        ),
        "freq = np.bincount(y) / len(y)\nc = nn.CrossEntropyLoss(torch.tensor(freq).float())",
        (
            "counts = np.array([(y == c).sum() for c in range(3)])\n"
            "w = torch.tensor(3 * counts / counts.sum())\nl = F.cross_entropy(p, y, weight=w)"
        ),
        "counts = np.bincount(y)\nsampler = WeightedRandomSampler(counts[y], len(y))",
    ),
    "inverted pos weight": (
        "c = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(n_pos / n_neg))",
        (
            "pos = y.sum()\nneg = len(y) - pos\nw = torch.tensor([pos / neg])\n"
            "c = nn.BCEWithLogitsLoss(pos_weight=w)"
        ),
        "l = F.binary_cross_entropy_with_logits(p, y, pos_weight=(y == 1).sum() / (y == 0).sum())",
    ),
    "reversed concordance": (
        CINDEX.format("<"),
        CINDEX.format("<").replace(
            "unsqueeze(1) - risk.unsqueeze(0)", "unsqueeze(1) - risk.unsqueeze(0)"
        ),
        (
            "def c_index(risk, t, e):\n    for i in r:\n        for j in r:\n"
            "            if t[i] < t[j] and e[i]:\n"
            "                n += risk[i] < risk[j]\n    return n\n"
            "c_index(a, b, c)"
        ),
    ),
    "inverted events": (
        SURVIVAL + "event = torch.tensor((df['died'] == 0).to_numpy())",
        SURVIVAL + "event = 1 - df['died'].values",
        SURVIVAL + "event = torch.tensor(df['censored'].values)",
    ),
    "overlap of logits": (
        DICE.format("logits", "target = target.float()"),
        DICE.format("pred", "pass"),
        "criterion = nn.BCEWithLogitsLoss()\n"
        + DICE.format("x", "pass").replace("F.cross_entropy", "criterion"),
    ),
    "reversed regulariser": (
        TASKS.format("-"),
        TASKS.format("- 0.5 *"),
        (
            "loss = torch.exp(-log_vars[0]) * a - log_vars[0] + "
            "torch.exp(-log_vars[1]) * b - log_vars[1]"
        ),
    ),
}
HEALTHY = {
    "proportional weights": (
        (
            "counts = torch.bincount(y)\nw = counts.sum() / (3 * counts)\n"
            "l = nn.CrossEntropyLoss(weight=w)"
        ),
        "freq = np.bincount(y) / len(y)\nl = nn.CrossEntropyLoss(torch.tensor(1 / freq))",
        "counts = np.bincount(y)\nw = 1.0 / counts\ns = WeightedRandomSampler(w[y], len(y))",
        (
            "counts = torch.bincount(y)\nw = 1 - counts / counts.sum()\n"
            "l = nn.CrossEntropyLoss(weight=w)"
        ),
        "counts = torch.bincount(y)\nw = counts.float() ** -0.5\nl = nn.CrossEntropyLoss(weight=w)",
    ),
    "inverted pos weight": (
        "c = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(n_neg / n_pos))",
        "c = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(n_pos / n_neg))\nl = c(model(x), 1 - y)",
        "c = nn.BCEWithLogitsLoss(pos_weight=(len(y) - y.sum()) / y.sum())",
    ),
    "reversed concordance": (
        CINDEX.format(">"),
        CINDEX.format("<").replace(
            "diff = risk.unsqueeze(1)", "risk = -risk\n    diff = risk.unsqueeze(1)"
        ),
        CINDEX.format(">").replace(
            "(time.unsqueeze(1) < time.unsqueeze(0))", "(time.unsqueeze(1) < time.unsqueeze(0))"
        ),
    ),
    "inverted events": (
        SURVIVAL + "event = torch.tensor(df['died'].to_numpy())",
        SURVIVAL + "event = 1 - df['censored'].values",
        SURVIVAL + "e = torch.tensor(1 - df['died'].values)\nloss = cox(r, 1 - e)",
    ),
    "overlap of logits": (
        DICE.format("logits", "logits = logits.sigmoid()"),
        DICE.format("probs", "pass").replace("dice_loss(out", "dice_loss(out.softmax(1)"),
        DICE.format("pred", "pass").replace("F.cross_entropy(out, y)", "bce(p, y)"),
    ),
    "reversed regulariser": (
        TASKS.format("+"),
        "log_p = -0.5 * (x - mu) ** 2 * torch.exp(-log_var) - 0.5 * log_var",
        "kl = -0.5 * (1 + log_var - mu.pow(2) - log_var.exp()).sum()",
    ),
}


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in FOUND.items() for text in texts]
)
def test_mistakes_are_found(kind: str, text: str) -> None:
    assert kind in {pattern.kind for pattern in read(text)}, text


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in HEALTHY.items() for text in texts]
)
def test_what_is_meant_so_is_not(kind: str, text: str) -> None:
    assert kind not in {pattern.kind for pattern in read(text)}, text
