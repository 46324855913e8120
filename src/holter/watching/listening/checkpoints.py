"""CheckpointListener: what a training continues from."""

from typing import Any

from torch import nn

from holter.watching.collectors.moments import CheckpointRead, WeightsLoaded
from holter.watching.loop import Loop
from holter.watching.shield import shielded


class CheckpointListener:
    """Hears of checkpoints until training begins: one that is loaded later is another matter."""

    def __init__(self, loop: Loop) -> None:
        self.shield = loop.shield
        self._stepper = loop.stepper

    @shielded
    def checkpoint_read(self, content: object) -> None:
        """Publish the content of a checkpoint."""
        if not self._stepper.has_trained:
            self._stepper.publish(CheckpointRead(content))

    @shielded
    def weights_loaded(self, module: nn.Module, state: Any) -> None:
        """Publish what was loaded into a module."""
        if not self._stepper.has_trained:
            self._stepper.publish(WeightsLoaded(module, state))
