"""Readers of survival, and twins without a pattern."""

import pytest

from holter.scripts.reading import read

FORECAST = "HORIZON = 24  # forecast\n"
FOUND = {
    "target among inputs": (
        "NUMERIC = ['age', 'months']\nx = df[NUMERIC]\nt = torch.tensor(df['months'].values)",
        "features = ['a', 'b', 'price']\ny = df['price']\nx = df[features].to_numpy()",
        "CATS = ['a', 'died']\nx = f(df[CATS])\nevent = torch.as_tensor(df['died'].to_numpy())",
    ),
}
HEALTHY = {
    "target among inputs": (
        "NUMERIC = ['age', 'bmi']\nx = df[NUMERIC]\nt = torch.tensor(df['months'].values)",
        "features = ['a', 'price']\nfeatures.remove('price')\ny = df['price']\nx = df[features]",
        FORECAST + "FEATURES = ['load', 'temp']\nx = df[FEATURES]\ny = df['load']",
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
