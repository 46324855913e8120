"""Keras 3 on torch: `model.fit(..., callbacks=[HolterCallback()])`.

Keras updates weights without a torch optimizer: parameters that change between two backward passes
are a step. Learning rate and optimizer state are not recorded.
"""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras

from holter.integrations._session import Session, ended_by_exceptions
from holter.record.errors import HolterError


class HolterCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """Records `model.fit`, and prints the diagnosis at its end.

    Takes the options of `holter.watch`; with `show=False` the report is not printed. The run is in
    the folder `path`. An exception ends it, Ctrl-C included: Keras has no hook for them, so that
    `Model.fit` is wrapped.
    """

    def __init__(self, out: str | Path | None = None, *, show: bool = True, **options: Any) -> None:
        super().__init__()
        if keras.backend.backend() != "torch":
            raise HolterError("holter records Keras only on torch: set KERAS_BACKEND=torch.")
        self._session = Session(out, show=show, **options)

    @property
    def path(self) -> Path | None:
        """The folder of the run, once training has begun."""
        return self._session.path

    def on_train_begin(self, logs: Any = None) -> None:  # noqa: ARG002
        """Open the watch."""
        self._session.begin(self.model, [])

    def on_train_end(self, logs: Any = None) -> None:  # noqa: ARG002
        """Close the watch."""
        self._session.end()


def _sessions(*args: Any, **kwargs: Any) -> Iterator[Session]:
    """Yield the sessions of the callbacks among the arguments of `fit`."""
    try:
        given = inspect.signature(keras.Model.fit).bind(*args, **kwargs).arguments.get("callbacks")
    except TypeError:  # a call that `fit` has refused
        return
    callbacks = given.callbacks if isinstance(given, keras.callbacks.CallbackList) else given
    for callback in callbacks if isinstance(callbacks, list | tuple) else (callbacks,):
        if isinstance(callback, HolterCallback):
            yield callback._session  # noqa: SLF001


# Here and not when a callback is made: `model.fit(callbacks=[HolterCallback()])` has looked up
# `fit` by then.
ended_by_exceptions(keras.Model, "fit", _sessions)
