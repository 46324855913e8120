"""Names of trials are written and read back."""

from itertools import pairwise

import pytest

from holter.record.trials import TrialKind, TrialName, combined, parts

DETAILED = (
    *(TrialKind.LEARNING_RATE, TrialKind.CLIP, TrialKind.GUARDED, TrialKind.LAYER_LEFT_OUT),
    *(
        TrialKind.SWEEP,
        TrialKind.CONFIRM,
        TrialKind.SHUFFLED_LABELS,
        TrialKind.WARM_UP,
        TrialKind.HELD,
        TrialKind.FACTOR,
        TrialKind.COUNTER_HELD,
        TrialKind.COUNTER_KEPT,
    ),
)


@pytest.mark.parametrize("kind", TrialKind)
def test_a_name_is_read_back(kind: TrialKind) -> None:
    name = TrialName(kind, "0.1" if kind in DETAILED else "")
    assert TrialName.parse(str(name)) == name


def test_names_of_changes_that_are_made_together_are_read_back() -> None:
    singles = [TrialName(kind) for kind in TrialKind if kind not in DETAILED]
    for one, other in pairwise(singles):
        assert parts(combined(one, other)) == (one, other)


def test_another_name_is_none() -> None:
    with pytest.raises(ValueError, match="not a valid TrialKind"):
        TrialName.parse("something else")
