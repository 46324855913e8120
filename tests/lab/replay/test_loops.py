"""Loops: the `for` statement that delivers a batch, by the line of the update."""

from pathlib import Path

import pytest

from holter.lab.replay.loops import loop_around

SCRIPT = """
for epoch in range(2):
    for x, y in loader:
        loss = train(x, y)
        optimizer.step()
    print(loss)
optimizer.step()
"""


@pytest.mark.parametrize(
    ("line", "loop"),
    [
        (5, (3, "for x, y in loader:")),
        (6, (2, "for epoch in range(2):")),
        (7, None),
    ],
)
def test_the_innermost_loop_around_a_line(
    tmp_path: Path, line: int, loop: tuple[int, str] | None
) -> None:
    file = tmp_path / "train.py"
    file.write_text(SCRIPT)
    found = loop_around(f"{file}:{line}")
    if loop is None:
        assert found is None
    else:
        assert found is not None
        assert found[0].endswith(f"train.py:{loop[0]}")
        assert found[1] == loop[1]


def test_no_line_is_no_loop() -> None:
    assert loop_around("") is None
