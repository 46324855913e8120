"""Shared by all tests: one thread per process, slow tests by path, CUDA tests only with CUDA."""

import os
import signal
import threading
from pathlib import Path

import pytest

from browsing import browser, page

__all__ = ["browser", "page"]  # fixtures

os.environ.setdefault("OMP_NUM_THREADS", "1")
# Some virtual machines announce AMX but do not run it: bfloat16 ends in an illegal instruction.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    and threading.current_thread() is threading.main_thread()
):  # as in a suite that runs in the background; programs that tests start would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

HERE = Path(__file__).parent
# Tests of many seconds, which `python3 dev.py test --quick` leaves out: paths and test ids below
# tests/, by prefix. Single tests elsewhere carry `@pytest.mark.slow`.
SLOW = (
    "cli/test_try_command.py",
    "dashboard/test_browser.py",
    "dashboard/test_playground.py",
    "diagnosis/test_rules_contract.py::test_every_exception_has_a_specimen",
    "diagnosis/test_rules_contract.py::test_healthy_twin",
    "diagnosis/test_rules_contract.py::test_sick_case",
    "lab/birth/",
    "lab/experiments/",
    "lab/replay/",
    "record/test_durability.py",
    "reports/html/test_in_a_browser.py",
    "scripts/",
    "test_bench_lr_range.py",
    "test_bench_peers.py",
    "test_zoo.py",
    "watching/blackbox/",
    "watching/collectors/test_contract.py",
    "watching/test_budgeting.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        place = item.path.relative_to(HERE).as_posix()
        if f"{place}::{item.name}".startswith(SLOW):
            item.add_marker(pytest.mark.slow)
    if not any(item.get_closest_marker("cuda") for item in items):
        return
    import torch

    if not torch.cuda.is_available():
        for item in items:
            if item.get_closest_marker("cuda"):
                item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))
