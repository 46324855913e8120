"""How many samples a batch holds."""

import torch

from holter.lab.batches import size
from holter.lab.randomness import RandomState, StepRandom


def test_the_random_states_of_a_step_are_no_samples() -> None:
    states = StepRandom({line: RandomState.now() for line in range(5)})
    batch = {"x": torch.zeros(16, 20), "running": torch.tensor(0.5), "random": states}
    assert size(batch) == 16
