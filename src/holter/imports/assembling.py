"""From the readings of a log to a run: which name is which signal, and what was left out."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from holter.imports.log import Column, Log
from holter.imports.names import role_of
from holter.record import Run, Series, Writer
from holter.record.errors import HolterError
from holter.record.meta import LogSource, Meta
from holter.record.signals import ACCURACY, CATALOGUE, LOSS, LR, VAL_ACCURACY, VAL_LOSS, Signal

_SHOWN = 8  # names in a sentence
_MOST_GROUPS = 16  # learning rates
_OFTEN = 0.5  # share of the readings of the most frequent name that a preferred one must have
_PERCENT = 1.5  # accuracy above which it is in percent


def assembled(log: Log, path: Path, kind: str) -> Run:
    """Return the run that a log tells of; raises where it has no loss."""
    log.finish()
    chosen = _chosen(log)
    if not {LOSS, VAL_LOSS} & set(chosen):
        raise HolterError(_no_loss(log, path))
    series = {
        signal: {
            owner: _series(signal, log.columns[name])
            for owner, name in _owners(signal, names).items()
        }
        for signal, names in chosen.items()
    }
    source = LogSource(
        kind=kind,
        path=str(path),
        names={signal.name: ", ".join(map(_printable, names)) for signal, names in chosen.items()},
        ignored=tuple(_printable(name) for name in _left_out(log, chosen)),
        competing=_printable(log.competing),
    )
    meta = Meta(status="finished", source=source, notes=tuple(_notes(log, source)))
    return replace(Run.of(series, meta=meta), path=path)


def saved(run: Run, folder: Path) -> Run:
    """Write an imported run to a folder, and return it from there."""
    writer = Writer(folder)
    for name, table in run.tables.items():
        for owner, series in table.items():
            layout = [(name, (owner,))]
            values = np.asarray(series.values, np.float32)[:, None]
            steps, walls = series.steps.tolist(), [0.0] * len(series)
            writer.write_many(CATALOGUE[name].stream, steps, walls, layout, values)
    writer.update_meta(status=run.meta.status, source=run.meta.source, notes=run.meta.notes)
    writer.close()
    return Run.load(folder)


def summary(run: Run) -> str:
    """Return what was imported, mapped and ignored, in one sentence."""
    source = run.meta.source
    assert source is not None
    mapped = ", ".join(f"{signal} from {names}" for signal, names in source.names.items())
    ignored = f"; ignored {_some(source.ignored)}" if source.ignored else ""
    return f"imported {source.path} ({source.kind}): {mapped}{ignored}"


def _left_out(log: Log, chosen: Mapping[Signal, list[str]]) -> list[str]:
    taken = {name for names in chosen.values() for name in names}
    return sorted({*log.ignored, *log.columns} - taken)


def _chosen(log: Log) -> dict[Signal, list[str]]:
    """Return the names that are taken for each signal: those that were asked for, or the best."""
    for name, signal in log.mapping.items():
        if name not in log.columns:
            seen = sorted({*log.columns, *log.ignored})
            raise HolterError(
                f"The log has no name {name!r} to map to {signal}; it has {_some(seen)}."
            )
    candidates: dict[Signal, list[str]] = {}
    for name in log.columns:
        role = role_of(name)
        if role is not None and role.signal not in log.mapping.values() and name not in log.mapping:
            candidates.setdefault(role.signal, []).append(name)
    chosen = {signal: _best(signal, names, log) for signal, names in candidates.items()}
    for name, signal in log.mapping.items():
        chosen.setdefault(signal, []).append(name)
    return {signal: chosen[signal] for signal in CATALOGUE.values() if signal in chosen}


def _best(signal: Signal, names: list[str], log: Log) -> list[str]:
    """Return the preferred name among those that were read often; of learning rates all."""
    if signal is LR:
        return sorted(names)[:_MOST_GROUPS]
    most = max(len(log.columns[name].places) for name in names)
    often = [name for name in names if len(log.columns[name].places) >= _OFTEN * most]

    def preference(name: str) -> tuple[int, int, str]:
        role = role_of(name)
        assert role is not None
        return role.rank, len(name), name

    return [min(often, key=preference)]


def _owners(signal: Signal, names: list[str]) -> dict[str, str]:
    """Return the owner of each name: groups of one optimizer, or nobody."""
    if signal is LR and len(names) > 1:
        return {f"optimizer group {number}": name for number, name in enumerate(names)}
    return {"": names[0]}


def _series(signal: Signal, column: Column) -> Series:
    values = np.frombuffer(column.values, np.float64)
    if signal in (ACCURACY, VAL_ACCURACY) and np.nanmax(values, initial=0.0) > _PERCENT:
        values = values / 100
    with np.errstate(over="ignore"):
        return Series(np.frombuffer(column.places, np.int64), values.astype(np.float32))


def _notes(log: Log, source: LogSource) -> Iterable[str]:
    yield (
        f"The run was imported from a log ({source.kind}): whatever the log does not hold was not"
        " examined."
    )
    if source.ignored:
        yield f"Names of the log that stand for no signal: {_some(source.ignored)}."
    if log.counts_epochs:
        yield "The log counts epochs: a step of this run is an epoch."
    if log.damaged:
        yield f"{log.damaged:,} records or lines of the log are damaged and were left out."
    if log.dropped:
        yield f"{log.dropped:,} readings of the log have no possible step and were left out."


def _no_loss(log: Log, path: Path) -> str:
    seen = sorted({*log.columns, *log.ignored})
    if not seen:
        damaged = "; its records are damaged" if log.damaged else ""
        return f"{path} holds no names with numbers that could be imported{damaged}."
    return (
        f"No name in {path} is known as a loss; choose one with --map loss=NAME."
        f" It has {_some(seen)}."
    )


def _some(names: Iterable[str]) -> str:
    """Return the first names, and how many more there are."""
    known = [_printable(name) for name in names]
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    return ", ".join(known[:_SHOWN]) + more


def _printable(name: str) -> str:
    """Return a name that does nothing to a terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in name[:80])
