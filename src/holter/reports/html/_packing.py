"""Arrays for the page: one block of bytes, compressed, in which the drawings find theirs."""

import base64
import gzip
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from holter.record.format import ABSENT, is_absent
from holter.reports._lines import printable

_DIGITS = np.uint32(0xFFFFE000)  # keeps 10 bits of the mantissa, three digits, and halves the page
_ALIGNED = 8  # bytes
Array = npt.NDArray[Any]


class Pack:
    """Collects arrays; equal ones are stored once."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._places: dict[tuple[str, bytes], int] = {}

    def spelled(self, value: Any) -> Any:
        """Return what JSON can hold: arrays as references, numbers that are not finite as text."""
        if isinstance(value, np.ndarray):
            return self._reference(value)
        if isinstance(value, Mapping):
            return {str(key): self.spelled(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.spelled(item) for item in value]
        if isinstance(value, float | np.floating):
            return float(value) if math.isfinite(value) else {"number": str(float(value))}
        if isinstance(value, np.integer):
            return int(value)
        return printable(value) if isinstance(value, str) else value

    def data(self) -> str:
        """Return all arrays, compressed and as text."""
        packed = gzip.compress(b"".join(self._parts), compresslevel=6, mtime=0)
        return base64.b64encode(packed).decode("ascii")

    def _reference(self, values: Array) -> dict[str, Any]:
        if values.dtype.kind in "iu":
            kind, stored = "f64", values.astype("<f8").tobytes()
            if not values.size or abs(values).max() < 2**31:
                kind, stored = "i32", values.astype("<i4").tobytes()
        else:
            kind, stored = "f32", rounded(values).tobytes()
        place = self._places.get((kind, stored))
        if place is None:
            place = self._places[kind, stored] = self._size
            padded = stored + bytes(-len(stored) % _ALIGNED)
            self._parts.append(padded)
            self._size += len(padded)
        return {"array": kind, "at": place, "length": int(values.size)}


def rounded(values: Array) -> npt.NDArray[np.float32]:
    """Return float32 numbers of three digits, which compress well; absent readings stay absent."""
    exact = np.ascontiguousarray(values, "<f4")
    absent = is_absent(exact)
    with np.errstate(over="ignore"):
        half = exact.view(np.uint32) + np.uint32(0x1000)
    finite = np.isfinite(exact)
    kept = np.where(finite, (half & _DIGITS).view("<f4"), exact)
    kept = np.where(finite & ~np.isfinite(kept), exact, kept)  # rounded up to infinity
    kept[absent] = ABSENT
    return kept.astype("<f4")


def as_json(value: Any) -> str:
    """Return JSON that cannot end the element it stands in."""
    dumped = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return dumped.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
