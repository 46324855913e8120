"""Scores of tagged sequences in sources: spans, counts, ratios and padding."""

import pytest

from tests.scripts.reading.found import kinds

SPANS = """
def spans(tags):
    found, start, kind = [], None, None
    for i, tag in enumerate({}):
        if start is not None and (tag == "O" or tag.startswith("B-")):
            found.append((start, i, kind))
            start = None
        if tag.startswith("B-"):
            start, kind = i, tag[2:]
    {}
"""


@pytest.mark.parametrize(
    "text",
    [
        SPANS.format("tags", "return found"),
        SPANS.format("list(tags)", "return set(found)"),
        SPANS.format("tags", "return found").replace("found.append", "found.add"),
        SPANS.format("tags", "found = [f for f in found if f[2]]\n    return found"),
    ],
)
def test_spans_that_are_lost_at_the_end(text: str) -> None:
    assert kinds(text) == {"lost at end"}


@pytest.mark.parametrize(
    "text",
    [
        SPANS.format('list(tags) + ["O"]', "return found"),
        SPANS.format("tags", "if start is not None:\n        found.append((start, len(tags), kind))"
                     "\n    return found"),
        SPANS.format("tags", "return found").replace(
            "    for i", "    tags = tags + ['O']\n    for i"),
        SPANS.format("[*tags, 'O']", "return found"),
    ],
)  # fmt: skip
def test_spans_that_are_closed_at_the_end(text: str) -> None:
    assert not kinds(text)


COUNTS = """
for pred, gold in pairs:
    tp += len(pred & gold)
    n_pred += len(pred)
    n_gold += {}
"""


@pytest.mark.parametrize(
    "text",
    [
        COUNTS.format("len(pred | gold)"),
        COUNTS.format("len(gold.union(pred))"),
        COUNTS.format("len(gold | pred)").replace(
            "len(pred & gold)", "len(pred.intersection(gold))"
        ),
    ],
)
def test_unions_that_are_counted_as_gold(text: str) -> None:
    assert kinds(text) == {"union as count"}


@pytest.mark.parametrize(
    "text",
    [
        COUNTS.format("len(gold)"),
        "for p, g in pairs:\n    inter += len(p & g)\n    union += len(p | g)",
        COUNTS.format("len(gold | ignored)"),
    ],
)
def test_counts_that_are_right(text: str) -> None:
    assert not kinds(text)


@pytest.mark.parametrize(
    "text",
    [
        "precision = tp / m.sum(dim=0)\nrecall = tp / m.sum(dim=0)",
        "p, r = tp / max(n_pred, 1), tp / max(n_pred, 1)",
    ],
)
def test_recalls_that_are_precisions(text: str) -> None:
    assert kinds(text) == {"same denominator"}


def test_recalls_of_false_positives_are_exchanged_ratios() -> None:
    assert kinds("prec = tp / (tp + fp)\nrec = tp / (tp + fp)") == {"exchanged ratio"}


@pytest.mark.parametrize(
    "text",
    [
        "precision = tp / m.sum(dim=0)\nrecall = tp / m.sum(dim=1)",
        "prec = tp / (tp + fp)\nrec = tp / (tp + fn)",
        "p, q = tp / n, tp / n",
    ],
)
def test_recalls_with_their_own_denominator(text: str) -> None:
    assert not kinds(text)


MATRIX = "for {} in pairs:\n    m[{}] += 1\nprecision = tp / m.sum({})\nrecall = tp / m.sum({})"


@pytest.mark.parametrize(
    "text",
    [
        MATRIX.format("t, p", "t, p", 1, 0),
        MATRIX.format("y_true, y_pred", "y_true, y_pred", "axis=1", "axis=0"),
        MATRIX.format("target, pred", "target, pred", "dim=1", "dim=0"),
    ],
)
def test_margins_that_are_exchanged(text: str) -> None:
    assert kinds(text) == {"exchanged margins"}


@pytest.mark.parametrize(
    "text",
    [
        MATRIX.format("t, p", "t, p", 0, 1),
        MATRIX.format("p, t", "p, t", 1, 0),
        MATRIX.format("a, b", "a, b", 1, 0),
    ],
)
def test_margins_that_are_right(text: str) -> None:
    assert not kinds(text)


TAGGED = """
loss = F.cross_entropy(logits.flatten(0, 1), tags.flatten(), ignore_index=PAD)
pred = logits.argmax(-1)
{}
"""


@pytest.mark.parametrize(
    "line",
    [
        "acc = (pred == tags).float().mean()",
        "right += (logits.argmax(-1) == tags).sum().item()\ntotal += tags.numel()",
        "acc = (tags == pred).float().mean().item()",
    ],
)
def test_accuracies_over_padding(line: str) -> None:
    assert kinds(TAGGED.format(line)) == {"padding in accuracy"}


@pytest.mark.parametrize(
    "line",
    [
        "keep = tags != PAD\nacc = (pred == tags)[keep].float().mean()",
        "acc = (pred[tags != PAD] == tags[tags != PAD]).float().mean()",
        "right += ((pred == tags) & (tags != PAD)).sum()\ntotal += (tags != PAD).sum()",
        "exact = (pred == tags).all(1).float().mean()",
    ],
)
def test_accuracies_without_padding(line: str) -> None:
    assert "padding in accuracy" not in kinds(TAGGED.format(line))
