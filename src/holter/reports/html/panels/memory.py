"""Memory of the process and of the device."""

import numpy as np

from holter.record.signals import CATALOGUE
from holter.record.table import Series
from holter.reports.html._drawings import curves, named
from holter.reports.html._view import Panel, View

TITLE = "Memory"
_FAMILY, _BYTES = "memory.", "bytes"
_MEBIBYTE = np.float32(2**20)


def panel(view: View) -> Panel | None:
    """Return every measured amount of memory over the steps."""
    signals = [
        signal
        for name, signal in CATALOGUE.items()
        if name.startswith(_FAMILY) and signal.unit == _BYTES and signal in view.run
    ]
    series = {
        named(signal, owner, alone=False): Series(one.steps, one.values / _MEBIBYTE)
        for signal in signals
        for owner, one in view.run[signal].items()
    }
    marks = [mark for signal in signals for mark in view.marks(signal)]
    drawing = curves(series, title="Memory", unit="MiB", marks=marks, is_wide=True)
    return None if drawing is None else Panel((drawing,))
