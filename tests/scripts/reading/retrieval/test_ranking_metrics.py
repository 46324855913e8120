"""Ranks, discounts and ideal orders of ranking metrics."""

import pytest

from holter.scripts.reading.retrieval import ranking_metrics
from tests.scripts.reading.found import kinds_by


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
