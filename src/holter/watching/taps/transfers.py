"""Taps on copies between host and GPU; only trainings on a GPU are tapped."""

import time
from threading import get_ident
from typing import Any, Protocol

import torch
from torch import Tensor

from holter.watching.tap import Call, Interest, Tap

# What waits until the GPU has computed a tensor.
READS = ("item", "tolist", "cpu", "numpy", "__bool__", "__float__", "__int__")
COPIES = ("to", "cuda")


class TransferListener(Protocol):
    """Hears of copies between host and GPU."""

    @property
    def forward(self) -> Interest:
        """Whether copies are of interest now."""

    def device_read(self, call: str, seconds: float) -> None:
        """The host has waited for a tensor of the GPU."""

    def copied_to_device(self, before: Any, after: Any) -> None:
        """A tensor was copied to the GPU, between these two events."""


def tap_transfers(listener: TransferListener) -> list[Tap]:
    """Tap the methods of tensors that copy from a GPU, or to it."""
    thread = get_ident()  # of the training: others write what holter has read
    inside = False  # one such method may call another: the outer one is the script's

    def read(original: Call) -> Call:
        name = original.__name__

        def reading(self: Tensor, *args: Any, **kwargs: Any) -> Any:
            nonlocal inside
            if inside or not self.is_cuda or get_ident() != thread:
                return original(self, *args, **kwargs)
            inside, began = True, time.perf_counter()
            try:
                return original(self, *args, **kwargs)
            finally:
                inside = False
                listener.device_read(name, time.perf_counter() - began)

        return reading

    def copy(original: Call) -> Call:
        def copying(self: Tensor, *args: Any, **kwargs: Any) -> Any:
            nonlocal inside
            if inside or get_ident() != thread or _is_capturing():
                return original(self, *args, **kwargs)
            was_on_gpu, began = self.is_cuda, time.perf_counter()
            before = None if was_on_gpu else _event()
            inside = True
            try:
                result = original(self, *args, **kwargs)
            finally:
                inside = False
            if was_on_gpu and isinstance(result, Tensor) and result.is_cpu:
                if not kwargs.get("non_blocking"):
                    listener.device_read("to", time.perf_counter() - began)
            elif not was_on_gpu and isinstance(result, Tensor) and result.is_cuda:
                listener.copied_to_device(before, _event())
            return result

        return copying

    interest = listener.forward
    return [
        *(Tap(Tensor, name, read, interest=interest) for name in READS),
        *(Tap(Tensor, name, copy, interest=interest) for name in COPIES),
    ]


def _is_capturing() -> bool:
    """Whether a CUDA graph is being captured: an event would become a part of it."""
    return torch.cuda.is_current_stream_capturing()


def _event() -> Any:
    cuda: Any = torch.cuda  # whose events have no types
    event = cuda.Event(enable_timing=True)
    event.record()
    return event
