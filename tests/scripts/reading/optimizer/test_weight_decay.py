"""Parameter groups that decay, and cosines that rise again."""

import pytest

from tests.scripts.reading.found import kinds

EACH = """
for name, p in model.named_parameters():
    wd = {value}
    groups.append({{"params": [p], "weight_decay": wd}})
"""
TWO = """
no_decay = ["bias", "LayerNorm.weight"]
decay_params = [p for n, p in model.named_parameters() if {large}]
other_params = [p for n, p in model.named_parameters() if {small}]
optimizer = torch.optim.AdamW([
    {{"params": decay_params, "weight_decay": {first}}},
    {{"params": other_params, "weight_decay": {second}}},
], lr=1e-3)
"""
PAIRS = [
    ("not any(nd in n for nd in no_decay)", "any(nd in n for nd in no_decay)"),
    ("p.ndim >= 2", "p.ndim < 2"),
    ("p.dim() > 1", "p.dim() <= 1"),
    ("'bias' not in n", "'bias' in n"),
    ("not n.endswith('bias')", "n.endswith('bias')"),
]


@pytest.mark.parametrize(
    "value",
    ["0.01 if name.endswith('bias') or 'LayerNorm' in name else 0.0",
     "0.0 if p.ndim >= 2 else 0.1", "0.01 if 'norm' in name else 0",
     "0.0 if 'bias' not in name else 1e-2"],
)  # fmt: skip
def test_decay_of_biases_alone(value: str) -> None:
    assert "inverted decay" in kinds(EACH.format(value=value))


@pytest.mark.parametrize(
    "value",
    ["0.0 if name.endswith('bias') or 'LayerNorm' in name else 0.01",
     "0.1 if p.ndim >= 2 else 0.0", "0.01 if 'head' in name else 0", "0.0 if p.ndim < 2 else 0.1",
     "0.01 if 'norm' in name else 0.02"],
)  # fmt: skip
def test_decay_of_weights(value: str) -> None:
    assert "inverted decay" not in kinds(EACH.format(value=value))


@pytest.mark.parametrize(("large", "small"), PAIRS)
def test_decay_of_two_groups(large: str, small: str) -> None:
    right = TWO.format(large=large, small=small, first=0.01, second=0.0)
    wrong = TWO.format(large=large, small=small, first=0.0, second=0.01)
    assert "inverted decay" not in kinds(right)
    assert "inverted decay" in kinds(wrong)


COSINE = """
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, {total})
for epoch in range(epochs):
    for x, y in loader:
        criterion(model(x), y).backward()
        optimizer.step()
    scheduler.step()
"""


@pytest.mark.parametrize("total", ["T_max=epochs // 2", "epochs / 2", "T_max=epochs // 3"])
def test_cosines_that_rise_again(total: str) -> None:
    assert "rising cosine" in kinds(COSINE.format(total=total))


@pytest.mark.parametrize("total", ["T_max=epochs", "epochs, 1e-5", "T_max=steps // 2"])
def test_cosines_that_fall(total: str) -> None:
    assert "rising cosine" not in kinds(COSINE.format(total=total))
