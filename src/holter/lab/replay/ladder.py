"""The ladder: a failure is replayed under one intervention after another; which of them cure it?"""

import math
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from holter.lab.replay.interventions import Rung, rungs
from holter.lab.replay.window import Change, FailureWindow, Trial

CURES, DOES_NOT, WORSENS, NOT_APPLICABLE = "cures", "does not", "worsens", "not applicable"

_SPREADS = 8.0  # above the band that a loss may be and still count as back in it
_FEWEST = 6  # steps that make a band
_MANY = 10  # times its usual norm that a gradient has to be to count as out of its band
_BEYOND = 8  # steps after the failing one that have to be well, so far as they were captured
# What is done to a training, from the least to the most: the minimal cure comes first here.
_ORDER = (
    *("without compile", "math attention", "deterministic algorithms", "float32", "clip to 1.0"),
    *("larger epsilon", "learning rate of before", "learning rate / 3", "second moment reset"),
    *("learning rate / 10", "without dropout", "skip the step", "previous batch", "another batch"),
)


@dataclass(frozen=True, slots=True)
class Climbed:
    """A rung that was tried."""

    name: str
    family: str
    outcome: str
    says: str
    trial: Trial | None = None


@dataclass(slots=True)
class Ladder:
    """What was tried, and what it shows."""

    band: tuple[float, float]  # of the losses before the failure: middle and spread
    is_data: bool = False  # the batch fails on older weights too, and others do not
    climbed: list[Climbed] = field(default_factory=list)
    pairs: list[tuple[str, str]] = field(default_factory=list)  # two that cure only together

    @property
    def cures(self) -> list[Climbed]:
        """The interventions that cure, the least first."""
        found = [each for each in self.climbed if each.outcome == CURES]
        return sorted(found, key=lambda each: _place(each.name))

    @property
    def minimal(self) -> Climbed | None:
        """The least intervention that cures.

        Kernels and precision come first: they leave the training as it is meant. Then what acts on
        steps, unless it is the data: smaller steps only limit the harm that a bad batch does.
        """
        meant = [each for each in self.cures if each.family in ("kernels", "precision")]
        without = [each for each in self.cures if each.family in ("batch", "skip")]
        acting = [each for each in self.cures if each not in (*meant, *without)]
        order = (*meant, *without, *acting) if self.is_data else (*meant, *acting, *without)
        return next(iter(order), None)

    def cured_by(self, family: str) -> bool:
        """Whether any intervention of a family cures."""
        return any(each.family == family and each.outcome == CURES for each in self.climbed)

    def tried(self, family: str) -> bool:
        """Whether any intervention of a family applied."""
        return any(
            each.family == family and each.outcome != NOT_APPLICABLE for each in self.climbed
        )


def climb(
    window: FailureWindow,
    plain: Trial,
    *,
    chosen: Sequence[Rung] | None = None,
    is_data: bool = False,
) -> Iterator[Ladder]:
    """Try every rung; yields the ladder after each, so that an interrupt keeps what is known."""
    ladder = Ladder(band_of(window, plain), is_data)
    everything = rungs(window) if chosen is None else chosen
    for rung in everything:
        ladder.climbed.append(_try(window, plain, ladder.band, rung))
        yield ladder
    if not ladder.cures:
        yield from _in_pairs(window, plain, ladder, everything)


def band_of(window: FailureWindow, plain: Trial) -> tuple[float, float]:
    """Middle and spread of the losses before it went wrong."""
    rows = [
        (step, loss)
        for step, loss in zip(plain.steps, plain.losses, strict=True)
        if step < window.failing and math.isfinite(loss)
    ]
    before = [
        loss for place, (step, loss) in enumerate(rows) if step < window.onset or place < _FEWEST
    ]
    if not before:
        return math.nan, math.nan
    middle = statistics.median(before)
    spread = 1.4826 * statistics.median(abs(each - middle) for each in before)
    return middle, max(spread, 0.02 * abs(middle), 1e-6)


def _try(window: FailureWindow, plain: Trial, band: tuple[float, float], rung: Rung) -> Climbed:
    if rung.change is None:
        return Climbed(rung.name, rung.family, NOT_APPLICABLE, rung.why_not)
    trial = window.play(rung.change, beyond=_BEYOND)
    if trial.error and rung.family == "precision":
        return Climbed(rung.name, rung.family, NOT_APPLICABLE, trial.error)
    outcome, says = judge(window, plain, band, trial)
    return Climbed(rung.name, rung.family, outcome, says, trial)


def judge(
    window: FailureWindow, plain: Trial, band: tuple[float, float], trial: Trial
) -> tuple[str, str]:
    """Whether loss and norms return to the band of before the failure."""
    bad = trial.first_bad
    if trial.error:
        return DOES_NOT, trial.error
    if bad is not None:
        before = plain.first_bad
        if before is not None and bad < before:
            return WORSENS, f"not finite at step {bad} already"
        return DOES_NOT, f"not finite at step {bad}"
    late = _late(window, trial)
    if late is None:
        return DOES_NOT, "no step was left to judge by"
    middle, spread = band
    limit = middle + _SPREADS * spread
    was = _late(window, plain) if plain.first_bad is None else None
    if was is not None:  # a wide band: at least half of the rise has to be gone
        limit = min(limit, max((middle + was) / 2, middle + spread))
    if math.isfinite(middle) and late > limit:
        return DOES_NOT, f"loss {late:.4g}, before the failure {middle:.4g}"
    return CURES, f"loss {late:.4g}, before the failure {middle:.4g}"


def _late(window: FailureWindow, trial: Trial) -> float | None:
    """The usual loss from the failing step on."""
    rows = zip(trial.steps, trial.losses, strict=True)
    after = [loss for step, loss in rows if step >= window.failing]
    return statistics.median(after) if after else None


def _in_pairs(
    window: FailureWindow,
    plain: Trial,
    ladder: Ladder,
    everything: Sequence[Rung],
) -> Iterator[Ladder]:
    """Where nothing cures alone: two of those that act on the step itself, together."""
    acting = [
        each
        for each in everything
        if each.change is not None and each.family in ("rate", "clip", "precision", "state")
    ]
    for one, other in combinations(acting, 2):
        if one.family == other.family:
            continue
        both = Rung(f"{one.name} and {other.name}", "pair", _both(one.change, other.change))
        climbed = _try(window, plain, ladder.band, both)
        if climbed.outcome == CURES:
            ladder.climbed.append(climbed)
            ladder.pairs.append((one.name, other.name))
            yield ladder
            return


def _both(one: Change | None, other: Change | None) -> Change:
    import contextlib

    assert one is not None
    assert other is not None

    @contextlib.contextmanager
    def around() -> Iterator[None]:
        with one.around(), other.around():
            yield

    def prepared(setup: object) -> None:
        for each in (one, other):
            if each.prepared is not None:
                each.prepared(setup)  # type: ignore[arg-type]

    def before(setup: object, step: int) -> None:
        for each in (one, other):
            if each.before is not None:
                each.before(setup, step)  # type: ignore[arg-type]

    return Change(
        f"{one.name} and {other.name}",
        around=around,
        prepared=prepared,
        before=before,
        rate=one.rate * other.rate,
        max_norm=one.max_norm if other.max_norm is None else other.max_norm,
    )


def _place(name: str) -> int:
    return _ORDER.index(name) if name in _ORDER else len(_ORDER)


def timed(window: FailureWindow) -> tuple[Trial, float]:
    """The window as it was, and how long it took; the failing step is now known to the step."""
    began = time.perf_counter()
    trial = window.play(beyond=_BEYOND)
    if trial.first_bad is not None:
        window.failing = trial.first_bad
    elif window.failing not in trial.steps:  # of another phase: the first phase meets it next
        window.failing = min((s for s in trial.steps if s > window.failing), default=window.failing)
    window.onset = onset_of(trial, window.failing)
    window.bad = _bad(window, trial)
    return trial, time.perf_counter() - began


def _bad(window: FailureWindow, trial: Trial) -> frozenset[int]:
    """The step it began with, and those after it whose batch fails on the oldest weights, too."""
    middle, spread = band_of(window, trial)
    ceiling = middle + _SPREADS * spread
    found = {window.onset}
    for step in window.steps:
        if window.onset < step.step <= window.failing + _BEYOND:
            window.restore()
            loss, norm = window.one(step, Change("older weights"))
            if not (math.isfinite(loss) and math.isfinite(norm)) or loss > ceiling:
                found.add(step.step)
    return frozenset(found)


def onset_of(trial: Trial, failing: int) -> int:
    """The step from which on loss or gradient norm was out of its band, up to the failing one."""
    rows = list(zip(trial.steps, trial.losses, trial.norms, strict=True))
    early = [row for row in rows if row[0] < failing][: max(len(rows) // 2, _FEWEST)]
    if len(early) < _FEWEST:
        return failing
    high = _ceiling([loss for _, loss, _ in early])
    steep = _MANY * statistics.median(norm for _, _, norm in early)
    onset = failing
    for step, loss, norm in reversed([row for row in rows if row[0] < failing]):
        if loss <= high and norm <= steep:
            break
        onset = step
    return onset


def _ceiling(values: Sequence[float]) -> float:
    finite = [each for each in values if math.isfinite(each)]
    if not finite:
        return math.inf
    middle = statistics.median(finite)
    spread = 1.4826 * statistics.median(abs(each - middle) for each in finite)
    return middle + max(_SPREADS * spread, 0.5 * abs(middle))
