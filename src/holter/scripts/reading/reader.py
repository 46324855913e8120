"""Read: all patterns in the source of a file."""

from collections.abc import Callable, Iterator

from holter.scripts.reading import (
    axes,
    calls,
    freezing,
    iterators,
    masks,
    noise,
    padding,
    pairs,
    preprocessing,
    recurrence,
    registration,
    samples,
    selection,
    transforms,
)
from holter.scripts.reading.source import Pattern, Source

READERS: tuple[Callable[[Source], Iterator[Pattern]], ...] = (
    calls.uncalled,
    calls.discarded,
    iterators.exhausted,
    registration.unregistered,
    freezing.ineffective,
    masks.inverted,
    transforms.shared,
    preprocessing.refitted,
    samples.written,
    samples.observed,
    samples.aliased,
    selection.worst,
    selection.reversed_copy,
    pairs.unpaired,
    pairs.apart,
    pairs.sorted_alone,
    pairs.flipped_alone,
    axes.sequence_first,
    axes.softmax_over_queries,
    axes.whole_maximum,
    noise.uniform,
    noise.rounded,
    padding.counted,
    recurrence.dropped,
)


def read(text: str) -> list[Pattern]:
    """Return the patterns in a source, in the order of their lines; none if it does not parse."""
    try:
        source = Source(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    found = {pattern for reader in READERS for pattern in reader(source)}
    found = {pattern for pattern in found if not source.is_optional(pattern.line)}
    return sorted(found, key=lambda pattern: (pattern.line, pattern.kind))
