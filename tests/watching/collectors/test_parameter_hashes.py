"""Which updates are read is the same on all ranks, and their number is bounded."""

import itertools

from holter.watching.collectors.parameter_hashes import is_read


def test_the_first_updates_are_all_read_and_later_ones_in_proportion():
    read = [update for update in range(100_000) if is_read(update)]
    assert read[:32] == list(range(32))
    for octave in (64, 1024, 8192):
        assert sum(octave <= update < 2 * octave for update in read) == 16
    gaps = [after - before for before, after in itertools.pairwise(read)]
    assert max(gaps) == 1024
