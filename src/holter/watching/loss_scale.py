"""The loss scale of automatic mixed precision: which losses and gradients carry it."""

import weakref
from collections.abc import Callable

import torch
from torch import Tensor
from torch.amp import GradScaler
from torch.optim import Optimizer


class LossScale:
    """Follows a GradScaler through one step: what it has multiplied, and what it has divided."""

    def __init__(self) -> None:
        self._scaler: Callable[[], GradScaler | None] = lambda: None
        self.products: list[tuple[Tensor, Tensor]] = []  # scaled losses and what they were
        self.is_touched = False  # there is something to forget when the step ends
        self._in_use = False  # backward of the open step was called on a scaled loss
        self._divided: set[int] = set()
        self._found_inf: Tensor | None = None

    def multiplied(self, scaler: GradScaler, loss: Tensor, product: Tensor) -> None:
        """A loss was scaled."""
        self._scaler = weakref.ref(scaler)
        self.products = [*self.products[-7:], (product, loss)]

    def divided(self, optimizer: Optimizer) -> None:
        """The gradients of an optimizer are free of the scale from here on."""
        self._divided.add(id(optimizer))
        self.is_touched = True

    def without(self, root: Tensor) -> Tensor:
        """The loss that a root of backward stands for."""
        for product, loss in self.products:
            if product is root:
                self._in_use = self.is_touched = True
                return loss
        return root

    def backward_began(self) -> None:
        """Scaled losses are of no further interest."""
        self.products.clear()

    def of(self, optimizer: Optimizer | None, device: torch.device) -> Tensor | None:
        """The scale that the gradients of an optimizer carry; None where they carry none."""
        return None if id(optimizer) in self._divided else self.current(device)

    def is_on(self, optimizer: Optimizer | None) -> bool:
        """Whether the gradients of an optimizer carry the scale."""
        in_use = self._in_use and self._scaler() is not None
        return in_use and id(optimizer) not in self._divided

    def current(self, device: torch.device) -> Tensor | None:
        """The scale of the open step as a device tensor; None where none is in use."""
        scaler = self._scaler()
        if scaler is None or not self._in_use:
            return None
        scale: Tensor = scaler.scale(torch.ones((), device=device))
        return scale

    def step_begins(self, optimizer: Optimizer) -> None:
        """A fused optimizer is stepped even if the scaler skips it: it looks at a flag itself."""
        self._found_inf = vars(optimizer).get("found_inf")
        self.is_touched |= self._found_inf is not None

    def skipped(self, *, unseen: bool) -> Tensor | float:
        """Whether the step was skipped: its hooks were not called, or the flag is set."""
        return float(unseen) if self._found_inf is None else self._found_inf.detach().clone()

    def step_ended(self) -> None:
        """The next step begins without a scale."""
        self._in_use = self.is_touched = False
        self._found_inf = None
        self._divided.clear()
