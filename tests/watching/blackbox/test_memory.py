"""Free host memory, on systems that do not count free pages too."""

import subprocess
import sys

import pytest

from holter.watching.blackbox.memory import free_memory

KNOWN = {"SC_PAGE_SIZE": 4096, "SC_AVPHYS_PAGES": 1000, "SC_PHYS_PAGES": 8000}


def reader(*names: str, error: type[Exception] = ValueError):
    def read(name: str) -> int:
        if name not in names:
            raise error(f"unrecognized configuration name: {name}")
        return KNOWN[name]

    return read


@pytest.mark.parametrize("error", [ValueError, OSError])
@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (("SC_PAGE_SIZE", "SC_AVPHYS_PAGES", "SC_PHYS_PAGES"), 1000 * 4096),
        (("SC_PAGE_SIZE", "SC_PHYS_PAGES"), 8000 * 4096 // 4),  # macOS
        (("SC_PAGE_SIZE",), 4 << 30),
        ((), 4 << 30),
    ],
)
def test_what_is_free_where_the_system_knows_less(names, wanted, error):
    assert free_memory(reader(*names, error=error)) == wanted


SCRIPT = """
import os
os.sysconf_names.pop("SC_AVPHYS_PAGES")
import torch, holter
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with holter.watch(model, optimizer, "run", quiet=True) as watch:
    for _ in range(3):
        model(torch.ones(4, 2)).sum().backward()
        optimizer.step()
    assert watch.capture() is not None
assert not holter.Run.load("run").meta.notes
"""


def test_a_system_that_does_not_count_free_pages_can_train(tmp_path):
    subprocess.run([sys.executable, "-c", SCRIPT], cwd=tmp_path, check=True, timeout=120)
