"""Options that say where trials run."""

import pytest

from holter._cli import main
from holter.lab.sharing import Share
from holter.record.errors import HolterError


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["overfit-batch", "--on", "ray", "t.py"], "--on ray: only cures, lr-range and replay"),
        (["preflight", "-j", "2", "t.py"], "-j: only cures, lr-range and replay"),
        (["preflight", "--repeats", "2", "t.py"], "--repeats is an option of"),
        (["cures", "--on", "ray", "module:setup"], "--on ray: the trials of a setup"),
    ],
)
def test_wrong_use_is_one_sentence(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["try", *words]) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert len(said.splitlines()) == 1


def test_shares_are_disjoint_and_cover_everything() -> None:
    shares = [Share.parse(f"{number}/3") for number in range(3)]
    for place in range(10):
        assert sum(share.holds(place) for share in shares) == 1
    for text in ("3/3", "1", "a/2", "-1/2"):
        with pytest.raises(HolterError, match="--share"):
            Share.parse(text)
