"""What a replay of a captured failure has shown, read from the events it left."""

from collections.abc import Mapping
from dataclasses import dataclass

from holter.record import Run
from holter.record.births import Birth
from holter.record.events import BirthFound, LadderClimbed, Reproduced, RungClimbed, TriageMade

SYMPTOMS = (
    *("nonfinite-loss", "nonfinite-gradient", "nonfinite-weights", "hidden-nonfinite"),
    *("loss-spike", "diverging-loss", "exploding-gradients", "exploding-weights", "huge-updates"),
    *("skipped-steps", "collapsing-loss-scale", "unbounded-loss", "oscillating-loss"),
)  # what the causes of a failure explain


@dataclass(frozen=True, slots=True)
class Replayed:
    """The last replay of a run."""

    failing: int  # the step that fails
    onset: int  # the step from which on it went wrong
    first: int  # of the window
    alarm: str
    verdict: str
    says: str
    birth: Birth | None
    rungs: Mapping[str, RungClimbed]  # by name
    ladder: LadderClimbed | None
    triage: TriageMade | None

    def cured_by(self, *families: str) -> list[str]:
        """The interventions of these families that cure."""
        return [
            name
            for name, rung in self.rungs.items()
            if rung.family in families and rung.outcome == "cures"
        ]

    @property
    def is_data(self) -> bool:
        """Whether the batch fails on older weights, too, and another on these does not."""
        return self.fails_on_older_weights and (
            self.triage is not None and self.triage.older_batch_on_these_weights is False
        )

    @property
    def fails_on_older_weights(self) -> bool:
        """Whether the batch is known to fail on older weights, too."""
        return self.triage is not None and bool(self.triage.batch_on_older_weights)

    def not_cured_by(self, *families: str) -> list[str]:
        """The interventions of these families that were tried and do not."""
        return [
            name
            for name, rung in self.rungs.items()
            if rung.family in families and rung.outcome in ("does not", "worsens")
        ]


def replayed(run: Run) -> Replayed | None:
    """What the last replay showed; None where there was none."""
    about: Reproduced | None = None
    birth: Birth | None = None
    rungs: dict[str, RungClimbed] = {}
    ladder: LadderClimbed | None = None
    triage: TriageMade | None = None
    for event in run.events:
        match event.what:
            case Reproduced():  # another replay begins
                about, birth, rungs, ladder, triage = event.what, None, {}, None, None
            case BirthFound():
                birth = event.what.birth
            case RungClimbed():
                rungs[event.what.name] = event.what
            case LadderClimbed():
                ladder = event.what
            case TriageMade():
                triage = event.what
    if about is None:
        return None
    return Replayed(
        failing=about.failing,
        onset=about.onset,
        first=about.state_step,
        alarm=about.alarm,
        verdict=about.verdict,
        says=about.says,
        birth=birth,
        rungs=rungs,
        ladder=ladder,
        triage=triage,
    )


def fails(found: Replayed) -> bool:
    """Whether the replay failed as the training did."""
    return found.verdict != "not reproduced" and found.alarm not in ("asked", "exception")


def listed(names: list[str]) -> str:
    """`a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def since(found: Replayed) -> str:
    """Where it began, if that was earlier."""
    return f", which began with step {found.onset}," if found.onset < found.failing else ""
