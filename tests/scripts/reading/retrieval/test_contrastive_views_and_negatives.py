"""Readers of contrastive views, negatives, ranks, triplets, and twins without a pattern."""

import pytest

from holter.scripts.reading import read

KNN = (
    "def evaluate(emb, ids):\n    sim = emb @ emb.t()\n"
    "{}    order = sim.argsort(dim=1, descending=True)\n"
    "    return (ids[order] == ids[:, None]).float(){}\n"
    "evaluate(e, i)"
)
VIEWS = (
    "# simclr\nfor (v1, v2), _ in simclr_loader:\n"
    "    v1, v2 = v1.to(d), v2.to(d)\n    z1, z2 = {}\n"
)
XENT = (
    "def nt_xent(z, n):\n    sim = z @ z.t()\n"
    "    sim.fill_diagonal_(float('-inf'))\n    pos = {}\n"
    "    return F.cross_entropy(sim, pos)\nnt_xent(z, 9)"
)
NEGATIVE = (
    "class D(Dataset):\n    def __init__(self, pairs, n):\n"
    "        {}\n    def __getitem__(self, i):\n        return {}\n"
)
FOUND = {
    "order as ranks": (
        "ranks = np.argsort(score) + 1\nauc = ranks[y == 1].sum()",
        "rank = scores.argsort()\npos = labels == 1\nmean = rank[pos].mean()",
        "ranks = torch.argsort(score).float()\ns = torch.sum(ranks[labels == 1])",
    ),
    "self match": (
        KNN.format("", ""),
        KNN.format("", ".mean()").replace("emb @ emb.t()", "emb @ emb.T"),
        KNN.format("", "").replace("emb @ emb.t()", "torch.cdist(emb, emb)") + "  # recall",
    ),
    "own positives": (
        XENT.format("torch.arange(2 * n)"),
        XENT.format("torch.cat([torch.arange(n), torch.arange(n, 2 * n)])"),
        XENT.format("torch.arange(z.size(0)).to(z.device)"),
    ),
    "same view": (
        VIEWS.format("model(v1), model(v1)"),
        VIEWS.format("f(v2), f(v2)"),
    ),
    "repeated view": (
        (
            "class Two:  # simclr\n    def __call__(self, x):\n        view = self.transform(x)\n"
            "        return view, view\nsimclr = Two()"
        ),
        "# byol\ndef two_views(x):\n    v = augment(x)\n    return v, v\na, b = two_views(x)",
    ),
    "fixed negatives": (
        NEGATIVE.format("self.neg = torch.randint(n, (len(pairs),))", "self.neg[i]"),
        NEGATIVE.format("self.negatives = rng.integers(0, n, len(pairs))", "0, self.negatives[i]"),
        NEGATIVE.format("self.neg_items = np.random.choice(n, len(pairs))", "self.neg_items[i]"),
    ),
}
HEALTHY = {
    "order as ranks": (
        "ranks = np.argsort(np.argsort(score)) + 1\nauc = ranks[y == 1].sum()",
        (
            "order = np.argsort(score)\nranks = np.empty(9)\n"
            "ranks[order] = np.arange(9)\nranks[y == 1].sum()"
        ),
        "ranks = np.argsort(-score)\ntop = labels[ranks[:9]]",
        "order = scores.argsort()\nranks = order.argsort()\ns = ranks[pos].sum()",
    ),
    "self match": (
        KNN.format("    sim.fill_diagonal_(-2.0)\n", ""),
        KNN.format("", "[:, 1:]"),
        KNN.format("", "").replace("emb @ emb.t()", "emb @ gallery.t()"),
    ),
    "own positives": (
        XENT.format("(torch.arange(2 * n) + n) % (2 * n)"),
        XENT.format("torch.cat([torch.arange(n, 2 * n), torch.arange(n)])"),
        "sim = a @ b.t()\nloss = F.cross_entropy(sim, torch.arange(9))",
    ),
    "same view": (
        VIEWS.format("model(v1), model(v2)"),
        (
            "class Two:  # simclr\n    def __call__(self, x):\n"
            "        return self.transform(x), self.transform(x)\nsimclr = Two()"
        ),
        VIEWS.format("model(v1), model(v1)") + "    z3 = model(v2)",
    ),
    "fixed negatives": (
        NEGATIVE.format("self.pairs = pairs", "torch.randint(9, (1,))"),
        NEGATIVE.format("self.neg = pairs[:, 2]", "self.neg[i]"),
        NEGATIVE.format("self.neg = rng.integers(0, n, 9)", "self.neg[i]").replace(
            "class D", "class ValData"
        ),
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
