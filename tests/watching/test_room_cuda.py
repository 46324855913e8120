"""A GPU that the training has filled is left to it."""

import pytest
import torch

from holter.watching.collectors.room import fits, room

pytestmark = pytest.mark.cuda
_MIB = 2**20


@pytest.fixture
def nearly_full():
    """A device on which the process may take 64 MiB more."""
    device = torch.device("cuda", 0)
    torch.cuda.empty_cache()
    held = torch.empty(256 * _MIB, dtype=torch.uint8, device=device)
    total = torch.cuda.get_device_properties(device).total_memory
    allowed = torch.cuda.memory_reserved(device) + 64 * _MIB
    torch.cuda.set_per_process_memory_fraction(allowed / total, device)
    yield device
    torch.cuda.set_per_process_memory_fraction(1.0, device)
    del held


def test_what_may_be_taken_is_known(nearly_full) -> None:
    assert 60 * _MIB < room(nearly_full) <= 64 * _MIB
    assert fits(8 * _MIB, nearly_full)
    assert not fits(32 * _MIB, nearly_full)


def test_memory_that_is_cached_counts(nearly_full) -> None:
    cached = torch.empty(48 * _MIB, dtype=torch.uint8, device=nearly_full)
    assert not fits(20 * _MIB, nearly_full)
    del cached
    assert fits(20 * _MIB, nearly_full)
