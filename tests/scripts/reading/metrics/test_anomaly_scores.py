"""Readers of anomaly scores, and twins without a pattern."""

import pytest

from holter.scripts.reading import read

FOUND = {
    "threshold of test": (
        "val_score = f(a)\nthreshold = np.quantile(test_score, 0.99)",
        "p_val = f(a)\nthr = best_threshold(y_test, p_test)",
        "x_valid = 1\nthreshold = torch.quantile(test_errors, 0.95)",
    ),
}
HEALTHY = {
    "threshold of test": (
        "threshold = np.quantile(val_score, 0.99)\nflag = test_score > threshold",
        "threshold = np.quantile(test_score, 0.99)",
        "val = 1\nmean = test_score.mean()",
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
