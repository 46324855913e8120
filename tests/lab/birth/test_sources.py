"""Frames of holter are never taken for the user's line."""

from pathlib import Path

import holter
from holter.lab.birth.sources import is_hidden


def test_every_room_of_holter_is_hidden() -> None:
    package = Path(holter.__file__).parent
    for room in ("watching/tap.py", "lab/calls.py", "scripts/recognition/replaying.py"):
        assert (package / room).is_file()
        assert is_hidden(str(package / room))
    assert not is_hidden("/home/somebody/train.py")
