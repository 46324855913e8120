"""The setup of a script's training, put together from what was seen of it."""

import gc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
from torch import Tensor, nn
from torch.optim.lr_scheduler import LRScheduler
from torch.utils import _pytree as pytree

from holter.lab.calls import with_entry
from holter.lab.setup import Batch, KnowsSetup, LossPhase, ScriptWrite, Setup
from holter.lab.state import State
from holter.scripts.discovery import live_models
from holter.scripts.recognition.capturing import Row
from holter.scripts.recognition.declining import (
    NotRecognisedError,
    WayOut,
    declined,
    first_line,
    with_callback,
)
from holter.scripts.recognition.kinds import involves_model, is_model, is_users, tensors
from holter.scripts.recognition.phases import Pattern, patterns
from holter.scripts.recognition.preparing import preparation
from holter.scripts.recognition.replaying import Replay
from holter.scripts.recognition.rewriting import repeatable
from holter.scripts.recognition.session import Seen, Session
from holter.scripts.recognition.sites import visible
from holter.scripts.recognition.validating import with_validation
from holter.scripts.recognition.verifying import compare, require_repeatable, same
from holter.scripts.recognition.writes import Write


@dataclass(frozen=True, slots=True)
class Assembled:
    """The setup of a script, and what was seen of it."""

    setup: Setup
    exact: bool  # whether a replay gave the script's own loss bit for bit
    notes: tuple[str, ...]  # for people
    drawn: Mapping[int, Sequence[Batch]]  # what each step that was seen was given, by its number


def assemble(session: Session) -> Assembled:
    """Put the setup together from what was seen.

    Everything is afterwards as it was before the first update of the script.
    """
    try:
        return _assemble(session)
    except Exception as error:
        refusal = error if session.otherwise is None else session.otherwise
        told = _told(session, refusal)
        if told is not None:
            return told
        if isinstance(refusal, NotRecognisedError):
            raise with_callback(refusal) from None
        raise


def _told(session: Session, refusal: Exception) -> Assembled | None:
    """Return the setup that something alive in the script knows, such as a callback of holter."""
    if not session.start.kept:
        return None
    for source in [each for each in gc.get_objects() if issubclass(type(each), KnowsSetup)]:
        session.start.restore()
        with suppress(Exception):
            setup = source.training_setup()
            session.start.restore()
            note = f"The step was not extracted ({first_line(refusal)}); {type(source).__name__}"
            return Assembled(setup, False, (f"{note} gives the setup.",), {})
    return None


def _assemble(session: Session) -> Assembled:
    roster = {model.label: model.module for model in session.watch.roster.models}
    session.close()
    session.watch.close()
    if session.failure is not None:
        raise session.failure
    found = patterns(session.timeline.whole())
    if not found:
        raise _nothing(session)
    notes: list[str] = []
    found = [_with_optimizer(each, session, notes) for each in found]
    roster = roster or {str(n) if n else "": each for n, each in enumerate(session.start.modules)}
    reached = {name: _weights(model) for name, model in roster.items()}
    order = [key for each in found for key in each.sites]
    for key in order:
        if key in session.refusals:
            raise session.refusals[key]
    seen = {key: session.sites[key] for key in order}
    for each in seen.values():
        if each.capture.proof is None:
            raise each.site.declined(
                each.site.statement,
                f"ran {_times(each)}; extracting a step needs two complete ones",
                WayOut.LONGER,
            )
    replays = {key: _replay(each) for key, each in seen.items()}
    batches = _batches(list(seen.values()), list(replays.values()))
    exact = True
    for key, replay in replays.items():
        session.start.restore()
        proof = seen[key].capture.proof
        assert proof is not None
        exact = compare(replay, proof) and exact
    session.start.restore()
    trained = {
        id(p)
        for each in found
        for o in each.optimizers
        for g in o.param_groups
        for p in g["params"]
    }
    for each in seen.values():
        assert each.capture.proof is not None
        trained |= each.capture.proof.reached
    models = {n: m for n, m in roster.items() if any(id(p) in trained for p in m.parameters())}
    if not models:
        raise seen[order[0]].site.declined(
            seen[order[0]].site.statement,
            "trains tensors that belong to no torch.nn.Module",
            WayOut.MODULE,
        )
    phases = tuple(_phase(each, session, replays) for each in found)
    notes += _notes(session, seen, batches, exact=exact)
    notes += _notes_on_writes(phases, by_value=session.by_value)
    setup = Setup(
        models=models,
        phases=phases,
        train=batches,
        loaders={} if session.loader is None else {"train": session.loader},
        schedulers=_schedulers(session),
        others=_others(session, models, found),
        objects=_objects(seen.values(), trained),
        accumulation=max(each.accumulation for each in found),
        source=seen[order[0]].site.place,
        reached={name: reached[name] for name in models},
    )
    state = State(setup)
    for replay in replays.values():
        require_repeatable(replay, batches[0], state.restore)
    setup = with_validation(with_entry(setup, batches[0]), list(seen.values()), notes)
    state.restore()
    return Assembled(setup, exact, tuple(notes), _drawn(seen, replays))


def _weights(model: nn.Module) -> dict[str, Tensor]:
    """Return copies of the parameters and buffers of a model."""
    return {
        name: value.detach().clone()
        for name, value in model.state_dict().items()
        if isinstance(value, Tensor)
    }


def _drawn(
    seen: Mapping[Any, Seen], replays: Mapping[Any, Replay]
) -> dict[int, list[dict[str, Any]]]:
    """What each step was given: a dictionary for each batch that it accumulates."""
    drawn: dict[int, list[dict[str, Any]]] = {}
    for key, each in seen.items():
        rows = [] if each.first is None else [each.first]
        rows += zip(each.steps, (row for _, row in each.rows), strict=True)
        places: Counter[int] = Counter()
        for step, row in rows:
            batches = drawn.setdefault(step, [])
            if places[step] == len(batches):
                batches.append({})
            batches[places[step]].update(replays[key].drawn(row))
            places[step] += 1
    return drawn


def _nothing(session: Session) -> Exception:
    if session.refusals:
        return next(iter(session.refusals.values()))
    if session.sites:
        site = next(iter(session.sites.values())).site
        return site.declined(
            site.statement,
            "is followed by no optimizer.step(), and no weights changed after it",
            WayOut.OPTIMIZER,
        )
    if session.processes:
        return declined(
            f"The script trains in {session.processes} other"
            f" process{'es' if session.processes > 1 else ''} that it starts itself; holter looks"
            " for the step only in the first process.",
            WayOut.ONE_PROCESS,
        )
    return declined(
        "The script never called backward(): no training step was seen.", WayOut.NO_TRAINING
    )


def _times(seen: Seen) -> str:
    return "only once" if not seen.rows else f"{len(seen.rows) + 1} times, never completely"


def _with_optimizer(pattern: Pattern, session: Session, notes: list[str]) -> Pattern:
    """Put the optimizer of torch that does the same in the place of updates without one."""
    if session.own not in pattern.optimizers:
        return pattern
    made = session.own.optimizer()
    if made is None:
        site = session.sites[pattern.sites[-1]].site
        raise site.declined(
            site.statement,
            "is followed by updates that match no torch optimizer: neither SGD nor Adam changes"
            " the weights like this in its first step",
            WayOut.OPTIMIZER,
        )
    rate = made.param_groups[0]["lr"]
    notes.append(
        "The weights are updated without a torch optimizer; experiments use"
        f" torch.optim.{type(made).__name__}(lr={rate:g}), whose first update is the same."
    )
    return replace(pattern, optimizers=(made,))


def _replay(seen: Seen) -> Replay:
    proof = seen.capture.proof
    assert proof is not None
    if (name := seen.capture.changing) is not None:
        raise seen.site.declined(
            seen.site.statement,
            f"trains several models in turn: `{name}` changes",
            WayOut.ONE_MODEL,
        )
    seen.capture.bind_models(seen.frame.f_globals, besides=seen.names or {})
    return Replay(
        seen.capture.plan,
        seen.frame.f_globals,
        seen.names,
        proof.belongings,
        carries=seen.capture.carries,
    )


def _batches(seen: Sequence[Seen], replays: Sequence[Replay]) -> list[dict[str, Any]]:
    """What the steps of a script were given: one dictionary for all losses of a step."""
    merged: list[list[Row]] = []
    for when, row in seen[-1].rows:
        earlier = [
            next((r for t, r in reversed(each.rows) if t < when), each.rows[0][1])
            for each in seen[:-1]
        ]
        merged.append([*earlier, row])
    taken: dict[str, int] = {}
    for number, replay in enumerate(replays):
        for name, key in list(replay.keys.items()):
            first = taken.setdefault(key, number)
            if first != number and not all(
                _is(r[first].get(name), r[number][name]) for r in merged
            ):
                line = replay.plan.site.call.lineno
                replay.keys[name] = f"{key} (line {line})"
    made = []
    for rows in merged:
        batch: dict[str, Any] = {}
        for replay, row in zip(replays, rows, strict=True):
            batch.update(replay.batch(row))
        made.append(batch)
    return made[:1] if all(_is(each, made[0]) for each in made) else made


def _is(one: Any, other: Any) -> bool:
    a, b = tensors(one), tensors(other)
    if not a and not b:
        x, y = pytree.tree_leaves(one), pytree.tree_leaves(other)
        return len(x) == len(y) and all(map(np.array_equal, x, y))
    return len(a) == len(b) and all(x is y or same([x], [y]) for x, y in zip(a, b, strict=True))


def _phase(pattern: Pattern, session: Session, replays: Mapping[Any, Replay]) -> LossPhase:
    parts = [replays[key] for key in pattern.sites]
    loss: Callable[[Batch], Tensor] = parts[0] if len(parts) == 1 else _Sum(parts)

    def given() -> dict[str, Any]:
        return {name: value for part in parts for name, value in part.given.items()}

    writes = session.writes
    return LossPhase(
        loss,
        pattern.optimizers,
        max_norm=pattern.max_norm,
        scaler=pattern.scaler,
        stepped_at=pattern.stepped_at,
        backward_at=session.sites[pattern.sites[-1]].site.place,
        prepare=preparation([session.sites[key] for key in pattern.sites], parts),
        regrade=_written(writes.gradients, pattern, given, gradients=True),
        rewrite=_written(writes.weights, pattern, given, gradients=False),
    )


def _written(
    writes: Mapping[int, Write],
    pattern: Pattern,
    given: Callable[[], dict[str, Any]],
    *,
    gradients: bool,
) -> ScriptWrite | None:
    """What the script itself writes around the update of a pattern."""
    found = [writes[id(each)] for each in pattern.optimizers if id(each) in writes]
    return repeatable(found[-1], given, gradients=gradients) if found else None


class _Sum:
    """The step has several losses: their gradients are accumulated; experiments sum the losses."""

    def __init__(self, parts: Sequence[Replay]) -> None:
        self._parts = parts

    def __call__(self, batch: Batch) -> Tensor:
        total = self._parts[0](batch)
        for part in self._parts[1:]:
            total = total + part(batch)
        return total


def _schedulers(session: Session) -> tuple[LRScheduler, ...]:
    """Those there were at the start, and those that were made since."""
    live = [each for each in gc.get_objects() if issubclass(type(each), LRScheduler)]
    return tuple({id(each): each for each in (*session.start.schedulers, *live)}.values())


def _others(
    session: Session, models: Mapping[str, nn.Module], found: Sequence[Pattern]
) -> tuple[Any, ...]:
    known = {id(model) for model in models.values()}
    modules = {id(each): each for each in (*session.start.modules, *live_models())}
    used = {id(o) for each in found for o in each.optimizers}
    return (
        *(each for key, each in modules.items() if key not in known),
        *(optimizer for optimizer in session.start.optimizers if id(optimizer) not in used),
    )


def _objects(seen: Iterable[Seen], trained: set[int]) -> tuple[str, ...]:
    """Name the numbers that change and the objects that the step reads, data apart.

    Models count if they are not trained: a target network has a state that no capture holds.
    """
    found: dict[str, None] = {}
    for each in seen:
        names, plan = visible(each.frame), each.capture.plan
        for name in (variable.name for variable in plan.variables if variable.code is None):
            if isinstance(names.get(name), int | float):
                found[name] = None
        for name in sorted(plan.others):
            value = names.get(name)
            plain = isinstance(value, type | FunctionType | ModuleType) or value is None
            if not plain and is_users(value) and not involves_model(value):
                found[name] = None
            own = value.parameters() if isinstance(value, nn.Module) else ()
            if is_model(value) and not any(id(parameter) in trained for parameter in own):
                found[name] = None
    return tuple(found)


def _notes(
    session: Session, seen: Mapping[Any, Seen], batches: Sequence[Batch], *, exact: bool
) -> list[str]:
    notes = [note for each in seen.values() for note in each.site.notes]
    if not exact:
        notes.append("A repeated step reproduces the script's loss up to rounding.")
    notes += [
        f"{place}: backward is called again on the same loss; experiments call it once."
        for place in sorted(session.repeated)
    ]
    proofs = [each.capture.proof for each in seen.values()]
    if any(proof is not None and not proof.belongings.complete for proof in proofs):
        notes.append("The step uses more objects than can be put back between two repetitions.")
    if any(each.capture.carries for each in seen.values()):
        notes.append(
            "Calls before the step compute a part of its loss; experiments repeat them as well."
        )
    if not any(tensors(batch) for batch in batches):
        why = "Batches are objects without tensors" if batches[0] else "The step draws its own data"
        notes.append(
            f"{why}: batches have no visible tensors, and experiments on them are skipped."
        )
    elif len(batches) == 1 and all(len(each.rows) > 1 for each in seen.values()):
        notes.append("Every step uses the same data: it is treated as one batch.")
    return notes


def _notes_on_writes(phases: Sequence[LossPhase], *, by_value: bool) -> Iterator[str]:
    """Say what the script does to gradients that a repeated step does not do."""
    for phase in phases:
        if phase.regrade is not None and phase.regrade.run is None:
            yield f"{phase.regrade.where} changes gradients before the update; experiments do not."
    if by_value and all(phase.regrade is None for phase in phases):
        yield "The script clips gradients one by one; experiments do not clip them."
