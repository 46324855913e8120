"""Kernels: the same computation by deterministic, unfused or uncompiled code."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from holter.lab.changes import Change
from holter.lab.determinism import deterministic_algorithms
from holter.lab.setup import Setup
from holter.record.trials import TrialKind, TrialName


@contextmanager
def _deterministic(setup: Setup) -> Iterator[Setup]:
    with deterministic_algorithms(warn_only=True):
        yield setup


@contextmanager
def _math_attention(setup: Setup) -> Iterator[Setup]:
    with sdpa_kernel(SDPBackend.MATH):
        yield setup


@contextmanager
def _eager(setup: Setup) -> Iterator[Setup]:
    with torch.compiler.set_stance("force_eager"):
        yield setup


DETERMINISTIC = Change(
    TrialName(TrialKind.DETERMINISTIC), "Use deterministic algorithms only.", _deterministic
)
MATH_ATTENTION = Change(
    TrialName(TrialKind.MATH_ATTENTION),
    "Compute attention by plain products and softmax, not by a fused kernel.",
    _math_attention,
)
COMPILE_OFF = Change(
    TrialName(TrialKind.COMPILE_OFF), "Run compiled code as it is written.", _eager
)
