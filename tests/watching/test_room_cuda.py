"""A GPU that the training has filled is left to it."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.cuda
# In a process of its own: what other tests have cached would count as room.
NEARLY_FULL = """
import torch
from holter.watching.collectors.room import fits, room
MIB = 2**20
device = torch.device("cuda", 0)
held = torch.empty(256 * MIB, dtype=torch.uint8, device=device)
total = torch.cuda.get_device_properties(device).total_memory
allowed = torch.cuda.memory_reserved(device) + 64 * MIB
torch.cuda.set_per_process_memory_fraction(allowed / total, device)
"""


def when_nearly_full(lines: str) -> None:
    subprocess.run([sys.executable, "-c", NEARLY_FULL + lines], check=True)


def test_what_may_be_taken_is_known() -> None:
    when_nearly_full("""
assert 60 * MIB < room(device) <= 64 * MIB
assert fits(8 * MIB, device)
assert not fits(32 * MIB, device)
""")


def test_memory_that_is_cached_counts() -> None:
    when_nearly_full("""
cached = torch.empty(48 * MIB, dtype=torch.uint8, device=device)
assert not fits(20 * MIB, device)
del cached
assert fits(20 * MIB, device)
""")
