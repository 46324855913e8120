"""Distributed trainings that stopped: who is gone, who the others wait for, and where."""

from collections.abc import Sequence
from dataclasses import dataclass

from holter.diagnosis.facts.ending import first_line
from holter.diagnosis.facts.ranks import Rank, Ranks, named
from holter.record.flight_recorder import Collective, last_collective
from holter.record.heartbeat import Activity

_DOING = {
    Activity.STARTED: "before its first step",
    Activity.VALIDATED: "in validation",
    Activity.FETCHED: "before backward",
    Activity.BACKWARD: "in backward",
    Activity.GRADIENTS: "between backward and the update",
    Activity.UPDATED: "after the update",
}


@dataclass(frozen=True, slots=True)
class Absence:
    """Ranks that are gone while others went on, or wait for them."""

    ranks: tuple[int, ...]
    step: int
    says: str
    is_certain: bool = True


@dataclass(frozen=True, slots=True)
class Stall:
    """Ranks that do nothing: those that the others wait for, and the others."""

    held_by: tuple[int, ...]  # empty if it is not known
    waiting: tuple[int, ...]
    seconds: float
    step: int
    says: str


def absence(ranks: Ranks) -> Absence | None:
    """Return who is gone, or None."""
    members = ranks.members
    raised = [rank for rank in members if rank.exception is not None and not rank.lost_others]
    raised = [rank for rank in raised if rank.run.meta.status == "failed"]
    if raised and len(raised) < len(members):
        error, step = raised[0].exception, raised[0].run.steps
        assert error is not None
        where = f" at {error.where.rpartition('/')[2]}" if error.where else ""
        return Absence(
            _numbers(raised),
            step,
            f"{named(_numbers(raised))} raised {error.type}{where} after {step} steps:"
            f" {first_line(error.message, limit=120)}",
        )
    return _dead(ranks) or _done_early(ranks) or _unrecorded(ranks)


def _dead(ranks: Ranks) -> Absence | None:
    """Return ranks whose process ended without an end of its recording."""
    dead = [rank for rank in ranks.members if not rank.run.finished and not rank.is_alive]
    beats = [rank.heartbeat for rank in dead]
    if not dead or None in beats:
        return None
    positions = {rank.number: rank.heartbeat.position for rank in dead if rank.heartbeat}
    lowest = min(positions.values())
    first = [rank for rank in dead if positions[rank.number] == lowest]
    others = [rank for rank in ranks.members if rank not in first]
    if not others or (len(dead) == len(ranks.members) and any(rank.is_waiting for rank in first)):
        return None  # all stopped at one point: the job was killed as a whole
    if first[0].silence is not None:  # it hung before it was killed
        return None
    step, doing = lowest[0], _doing(first[0])
    lost = [rank for rank in others if rank.lost_others]
    error = f"; {named(_numbers(lost))} then lost the connection to it" if lost else ""
    return Absence(
        _numbers(first),
        step,
        f"{named(_numbers(first))} ended at step {step} {doing} without an exception, like a"
        f" killed process{error}",
        is_certain=bool(lost) or any(rank.is_alive for rank in others),
    )


def _done_early(ranks: Ranks) -> Absence | None:
    """Return ranks that finished while others still trained."""
    done = [rank for rank in ranks.members if rank.run.meta.status == "finished"]
    stuck = [rank for rank in ranks.members if rank.lost_others or rank.silence is not None]
    if not done or not stuck:
        return None
    step = max(rank.run.steps for rank in done)
    return Absence(
        _numbers(done),
        step,
        f"{named(_numbers(done))} finished after {step} steps while {named(_numbers(stuck))} still"
        " trained",
    )


def _unrecorded(ranks: Ranks) -> Absence | None:
    """Return ranks that left no recording although others of their machine did."""
    first = ranks.members[0].run
    local = first.meta.environment.variables.get("LOCAL_WORLD_SIZE", "")
    size = int(local) if local.isdigit() and int(local) else ranks.world
    recorded = {rank.number for rank in ranks.members}
    machines = {number // size for number in recorded}
    absent = [n for n in range(ranks.world) if n not in recorded and n // size in machines]
    if not absent or not any(rank.run.steps for rank in ranks.members):
        return None
    return Absence(
        tuple(absent),
        0,
        f"{named(absent)} recorded nothing, of {ranks.world} ranks in the training",
    )


def stall(ranks: Ranks) -> Stall | None:
    """Return how the training hangs, or None if no rank was silent to the end."""
    members = [rank for rank in ranks.members if rank.run.meta.status != "finished"]
    silent = [rank for rank in members if rank.silence is not None]
    if not silent or absence(ranks) is not None:
        return None
    active = [rank for rank in members if rank.silence is None and rank.is_alive]
    if active:  # the others wait for it, and it is at work
        return None
    collectives = {rank.number: _collective(rank) for rank in members}
    held_by = _held_by(silent, collectives)
    waiting = [rank for rank in silent if rank not in held_by]
    seconds = max(rank.heartbeat.silence for rank in silent if rank.heartbeat is not None)
    step = min(rank.heartbeat.step for rank in silent if rank.heartbeat is not None)
    return Stall(
        _numbers(held_by),
        _numbers(waiting),
        seconds,
        step,
        _says(held_by, waiting, collectives),
    )


def _held_by(silent: Sequence[Rank], collectives: dict[int, Collective | None]) -> list[Rank]:
    """Return the ranks that others wait for, or none if all are at one point."""
    numbers = {rank.number: found.number for rank in silent if (found := collectives[rank.number])}
    if len(numbers) == len(silent) and len(set(numbers.values())) > 1:
        lowest = min(numbers.values())
        return [rank for rank in silent if numbers[rank.number] == lowest]
    elsewhere = [rank for rank in silent if not rank.is_waiting]
    if elsewhere and len(elsewhere) < len(silent):
        return elsewhere
    positions = [rank.heartbeat.position for rank in silent if rank.heartbeat is not None]
    if len(set(positions)) > 1:
        lowest_position = min(positions)
        return [r for r in silent if r.heartbeat and r.heartbeat.position == lowest_position]
    return []


def _says(
    held_by: Sequence[Rank], waiting: Sequence[Rank], collectives: dict[int, Collective | None]
) -> str:
    if not held_by:
        return f"{named(_numbers(waiting))} all wait {_at(waiting[0], collectives)}"
    says = f"{named(_numbers(held_by))} is {_at(held_by[0], collectives)}"
    if len(held_by) > 1:
        says = f"{named(_numbers(held_by))} are {_at(held_by[0], collectives)}"
    if waiting:
        verb = "wait" if len(waiting) > 1 else "waits"
        says = f"{named(_numbers(waiting))} {verb} {_at(waiting[0], collectives)}; {says}"
    return says


def _at(rank: Rank, collectives: dict[int, Collective | None]) -> str:
    """Return where a rank is: function, line of the script, and step."""
    seen, beat, found = rank.silence, rank.heartbeat, collectives[rank.number]
    parts = []
    if found is not None and not found.is_completed:
        parts.append(f"in {found.name} number {found.number}")
    elif seen is not None and seen.collective:
        parts.append(f"in {seen.collective}")
    elif rank.is_waiting:
        parts.append("in backward")
    elif seen is not None and seen.function:
        parts.append(f"in {seen.function}")
    if seen is not None and seen.where:
        parts.append(f"at {seen.where}")
    if beat is not None:
        is_after = beat.activity is Activity.UPDATED
        parts.append(f"after step {beat.step}" if is_after else f"in step {beat.step}")
    return " ".join(parts)


def _doing(rank: Rank) -> str:
    return _DOING[rank.heartbeat.activity] if rank.heartbeat is not None else ""


def _collective(rank: Rank) -> Collective | None:
    path = rank.run.path
    variables = rank.run.meta.environment.variables
    return None if path is None else last_collective(path, rank.number, variables)


def _numbers(ranks: Sequence[Rank]) -> tuple[int, ...]:
    return tuple(rank.number for rank in ranks)
