"""Simple models beside the network on the same held-out rows, as the experiment measured them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holter.diagnosis.facts.data_sets import measured
from holter.record import Run
from holter.record.signals import (
    BASELINE_BALANCED,
    BASELINE_CHANCE,
    BASELINE_LOSS,
    BASELINE_RANKING,
    BASELINE_ROWS,
    BASELINE_SCORE,
    Signal,
)

if TYPE_CHECKING:
    from holter.diagnosis.facts import Facts

_NETWORK, _CONSTANT = "network", "constant"


@dataclass(frozen=True, slots=True)
class Scores:
    """A metric of three models: larger is better."""

    network: float
    simple: float
    constant: float

    @property
    def gain(self) -> float:
        """What the simple model has beyond the best constant prediction."""
        return self.simple - self.constant

    @property
    def share(self) -> float:
        """What the network has of that gain."""
        return (self.network - self.constant) / self.gain if self.gain > 0 else 1.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """The best simple model and the network."""

    name: str  # of the simple model
    rows: int  # held out
    fitted: int  # training rows
    scores: Scores
    others: tuple[Scores, ...]  # by balanced accuracy and by rank, where there are classes
    is_class: bool
    on_training: float | None  # score of the network on training rows
    log_chance: float  # log10 of the chance that the network only seems worse
    loss: float | None  # of the network on the held-out rows

    @property
    def share(self) -> float:
        """What the network has of the simple model's gain, by the metric that favours it most."""
        return max(each.share for each in (self.scores, *self.others))

    @property
    def gain(self) -> float:
        """What the simple model has beyond constant predictions, by the least of the metrics."""
        return min(each.gain for each in (self.scores, *self.others))


def comparison_of(facts: "Facts") -> Comparison | None:
    """Return the simple model with the best score beside the network; None without one."""
    run = facts.run
    network = measured(run, BASELINE_SCORE, _NETWORK)
    constant = measured(run, BASELINE_SCORE, _CONSTANT)
    rows, fitted = (measured(run, BASELINE_ROWS, split) for split in ("valid", "train"))
    names = list(run[BASELINE_CHANCE]) if BASELINE_CHANCE in run else []
    if network is None or constant is None or rows is None or fitted is None or not names:
        return None
    known = {name: measured(run, BASELINE_SCORE, name) or 0.0 for name in names}
    best = max(known, key=lambda name: known[name])
    others = (
        _scores(run, BASELINE_BALANCED, best, measured(run, BASELINE_BALANCED, _CONSTANT)),
        _scores(run, BASELINE_RANKING, best, 0.5),
    )
    return Comparison(
        name=best,
        rows=int(rows),
        fitted=int(fitted),
        scores=Scores(network, known[best], constant),
        others=tuple(each for each in others if each is not None),
        is_class=BASELINE_BALANCED in run,
        on_training=measured(run, BASELINE_SCORE, f"{_NETWORK}, training rows"),
        log_chance=measured(run, BASELINE_CHANCE, best) or 0.0,
        loss=measured(run, BASELINE_LOSS, _NETWORK),
    )


def _scores(run: Run, signal: Signal, name: str, constant: float | None) -> Scores | None:
    network, simple = measured(run, signal, _NETWORK), measured(run, signal, name)
    if network is None or simple is None or constant is None:
        return None
    return Scores(network, simple, constant)
