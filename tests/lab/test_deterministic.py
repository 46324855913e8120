"""`holter.deterministic`: what it sets, what it says, and that it undoes it."""

import os
import random

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import holter


class Draws(Dataset[float]):
    """Samples that are drawn from all three generators in the workers."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> float:
        return index + random.random() + float(np.random.rand()) + float(torch.rand(()))


def drawn() -> tuple[float, float, float]:
    return random.random(), float(np.random.rand()), float(torch.rand(()))


def test_the_same_seed_draws_the_same_numbers_and_another_does_not() -> None:
    with holter.deterministic(3):
        first = drawn()
    with holter.deterministic(3):
        assert drawn() == first
    with holter.deterministic(4):
        assert not set(drawn()) & set(first)


def test_settings_variables_and_random_numbers_are_restored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    torch.manual_seed(7)
    expected = torch.rand(2)
    torch.manual_seed(7)
    assert torch.rand(1) == expected[0]
    with holter.deterministic(0) as fixed:
        assert torch.are_deterministic_algorithms_enabled()
        assert torch.backends.cudnn.deterministic
        assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
        assert fixed.settings["torch.use_deterministic_algorithms"] is True
    assert not torch.are_deterministic_algorithms_enabled()
    assert not torch.backends.cudnn.deterministic
    assert "CUBLAS_WORKSPACE_CONFIG" not in os.environ
    assert torch.rand(1) == expected[1]


def test_an_operation_without_a_deterministic_algorithm_raises_or_warns() -> None:
    weights = torch.ones(4, requires_grad=True)
    with holter.deterministic(0), pytest.raises(RuntimeError, match="deterministic"):
        torch.put(weights, torch.tensor([0, 0]), torch.ones(2), accumulate=False)
    with holter.deterministic(0, warn_only=True), pytest.warns(UserWarning, match="deterministic"):
        torch.put(weights, torch.tensor([0, 0]), torch.ones(2), accumulate=False)


@pytest.mark.parametrize("workers", [0, 2])
def test_loaders_repeat_themselves(workers: int) -> None:
    epochs = []
    for _ in range(2):
        with holter.deterministic(5) as fixed:
            loader = DataLoader(
                Draws(), 4, shuffle=True, num_workers=workers, **fixed.loader_options
            )
            epochs.append(torch.cat(list(loader)))
    assert torch.equal(*epochs)


def test_it_states_what_it_set_and_what_it_could_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    with holter.deterministic(11) as fixed:
        assert "torch.manual_seed = 11" in str(fixed)
        assert "note: PYTHONHASHSEED" in str(fixed)
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    with holter.deterministic(11) as fixed:
        assert not fixed.notes or torch.cuda.is_initialized()


def test_a_seed_that_numpy_refuses_is_named() -> None:
    with pytest.raises(ValueError, match="seed is -1"):
        holter.deterministic(-1)
