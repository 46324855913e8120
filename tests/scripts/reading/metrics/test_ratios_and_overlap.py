"""Readers of ratios, overlap, rescaled errors, and twins without a pattern."""

import pytest

from holter.scripts.reading import read

FOUND = {
    "union with overlap": (
        "union = conf.sum(0) + conf.sum(1)\niou = tp / union",
        "inter = (p * t).sum()\niou = inter / (p.sum() + t.sum())",
        "union = p.sum() + t.sum()\niou = (p & t).sum() / (union + 1e-6)",
    ),
    "dice without two": (
        "inter = (p * t).sum()\ndice = inter / (p.sum() + t.sum())",
        (
            "def dice(p, t):\n    inter = (p * t).sum()\n"
            "    return (inter + 1) / (p.sum() + t.sum() + 1)\ndice(a, b)"
        ),
        "dice = (p * t).sum() / (p.sum() + t.sum() + eps)",
    ),
    "exchanged ratio": (
        "precision = tp / (tp + fn)",
        "recall = tp / (tp + fp + 1e-8)",
        "r2 = 1 - ss_tot / ss_res",
    ),
    "shifted error": (
        "rmse = (sq / n) ** 0.5 * y_std + y_mean",
        "mae = (p - y).abs().mean()\nprint(mae * std + mean)",
        "print(rmse * self.y_std + self.y_mean)",
    ),
    "recall by cut": (
        "top = s.topk(k)\nrecall = hits / k",
        "order = s.argsort()\nrecall_at_k = hits.sum() / K",
        "recall += len_hits / top_k",
    ),
    "means by samples": (
        "for u in torch.arange(n).split(99):\n    r += hit(u).float().mean().item()\nprint(r / n)",
        (
            "for i in range(0, len(x), bs):\n"
            "    acc += (p == y).float().mean().item()\nacc = acc / len(x)"
        ),
        "n = len(t)\nfor u in torch.arange(n).split(9):\n    s += f(u).mean()\nprint(s / n)",
    ),
}
HEALTHY = {
    "union with overlap": (
        "union = conf.sum(0) + conf.sum(1) - tp\niou = tp / union",
        "union = p.sum() + t.sum()\niou = inter / (union - inter)",
        "union = (p | t).sum()",
        "union = p.sum() + t.sum()\ndice = 2 * inter / union",
    ),
    "dice without two": (
        "inter = (p * t).sum()\ndice = 2 * inter / (p.sum() + t.sum())",
        "inter = 2 * (p * t).sum()\ndice = inter / (p.sum() + t.sum())",
        "dice = 2 * tp / (2 * tp + fp + fn)",
    ),
    "exchanged ratio": (
        "precision = tp / (tp + fp)",
        "recall = tp / (tp + fn)",
        "r2 = 1 - ss_res / ss_tot",
        "prec = tp / max(tp + fp, 1)",
    ),
    "shifted error": (
        "rmse = (sq / n) ** 0.5 * y_std",
        "pred = out * std + mean",
        "print(p.mean() * std + mean)",
    ),
    "recall by cut": (
        "precision = hits / k",
        "recall = hits / len(relevant)",
        "recall = hits / min(k, n)",
    ),
    "means by samples": (
        "for u in torch.arange(n).split(99):\n    r += hit(u).float().sum().item()\nprint(r / n)",
        "for x, y in loader:\n    r += f(x).mean().item()\nprint(r / len(loader))",
        "for i in range(n):\n    r += f(i).mean().item()\nprint(r / n)",
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
