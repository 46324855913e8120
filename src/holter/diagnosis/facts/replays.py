"""What a replay of a captured failure has shown, read from the events it left."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holter.record import Run

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
    birth: Mapping[str, Any] | None
    rungs: Mapping[str, tuple[str, str, str]]  # family, outcome and what it says, by name
    ladder: Mapping[str, Any] | None
    triage: Mapping[str, Any] | None

    def cured_by(self, *families: str) -> list[str]:
        """The interventions of these families that cure."""
        return [
            n for n, (f, outcome, _) in self.rungs.items() if f in families and outcome == "cures"
        ]

    @property
    def is_data(self) -> bool:
        """Whether the batch fails on older weights, too, and another on these does not."""
        told = self.triage or {}
        return bool(told.get("batch_on_older_weights")) and (
            told.get("older_batch_on_these_weights") is False
        )

    def not_cured_by(self, *families: str) -> list[str]:
        """The interventions of these families that were tried and do not."""
        return [
            n
            for n, (f, outcome, _) in self.rungs.items()
            if f in families and outcome in ("does not", "worsens")
        ]


def replayed(run: Run) -> Replayed | None:
    """What the last replay showed; None where there was none."""
    places = [n for n, event in enumerate(run.events) if event.kind == "reproduction"]
    if not places:
        return None
    events = run.events[places[-1] :]
    about = events[0].data
    last = {event.kind: event.data for event in events}
    return Replayed(
        failing=int(about["failing"]),
        onset=int(about["onset"]),
        first=int(about["state_step"]),
        alarm=str(about["alarm"]),
        verdict=str(about["verdict"]),
        says=str(about["says"]),
        birth=last.get("birth", {}).get("birth"),
        rungs={
            e.data["name"]: (e.data["family"], e.data["outcome"], e.data["says"])
            for e in events
            if e.kind == "rung"
        },
        ladder=last.get("ladder"),
        triage=last.get("triage"),
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
