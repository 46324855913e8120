"""Two runs compared: their readings, and what they were started with."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

from holter.diagnosis.comparing.deviations import (
    Departure,
    Deviation,
    comparable_signals,
    compared_phases,
    departures,
    first_deviations,
)
from holter.record import Run
from holter.record.meta import Environment, Git
from holter.record.signals import (
    BETA1,
    BETA2,
    DATA_BATCH_SIZE,
    EPSILON,
    LOSS,
    LR,
    MOMENTUM,
    VAL_ACCURACY,
    VAL_LOSS,
    WEIGHT_DECAY,
    Phase,
    Signal,
)

_SETTINGS = (LR, MOMENTUM, BETA1, BETA2, EPSILON, WEIGHT_DECAY, DATA_BATCH_SIZE)
_ENDS = (LOSS, VAL_LOSS, VAL_ACCURACY)
_BEFORE = {
    Phase.DATA: "the batches differ: other data, another order, or other augmentation",
    Phase.FORWARD: "the batches are equal, but not what the model computes from them: other"
    " weights, dropout, or a kernel",
    Phase.BACKWARD: "the losses are equal, but not the gradients: a nondeterministic kernel, or the"
    " loss scale",
    Phase.UPDATE: "the gradients are equal, but not the update: settings of the optimizer",
    Phase.AFTERWARDS: "the training is equal, but not what follows a step, such as validation",
}


@dataclass(frozen=True, slots=True)
class Change:
    """Something that two runs were started with, as text; empty where one has none."""

    name: str
    a: str
    b: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs, compared."""

    a: str
    b: str
    steps: tuple[int, int]
    compared: int  # signals
    first: tuple[Deviation, ...]  # at the first step with any difference; none if all are equal
    meaning: str  # of the earliest of them
    departures: tuple[Departure, ...]
    configuration: tuple[Change, ...]
    environment: tuple[Change, ...]
    code: tuple[Change, ...]
    changed_files: tuple[str, ...]  # whose uncommitted changes differ
    only: tuple[tuple[str, ...], tuple[str, ...]]  # signals that one run alone has
    ends: tuple[tuple[str, float | None, float | None], ...]  # last readings

    @property
    def is_equal(self) -> bool:
        """Whether the runs have the same length and no reading differs."""
        return not self.first and self.compared > 0 and self.steps[0] == self.steps[1]


def compare(a: Run, b: Run) -> Comparison:
    """Compare two runs."""
    ours, theirs = comparable_signals(a), comparable_signals(b)
    first = first_deviations(a, b)
    return Comparison(
        a=str(a.path or "A"),
        b=str(b.path or "B"),
        steps=(a.steps, b.steps),
        compared=len(ours.keys() & theirs.keys()),
        first=first,
        meaning=_meaning(a, b, first),
        departures=departures(a, b),
        configuration=tuple(_configuration(a, b)),
        environment=tuple(_environment(a.meta.environment, b.meta.environment)),
        code=tuple(_code(a.meta.environment, b.meta.environment)),
        changed_files=_changed_files(a.meta.environment.git, b.meta.environment.git),
        only=(
            tuple(name for name in ours if name not in theirs),
            tuple(name for name in theirs if name not in ours),
        ),
        ends=tuple(_ends(a, b)),
    )


def _meaning(a: Run, b: Run, first: tuple[Deviation, ...]) -> str:
    """Return what the phase of the first deviation says, where the phases before were read."""
    if not first:
        return ""
    phase = min(deviation.signal.phase for deviation in first)
    if phase is not Phase.DATA:
        before = {each for each in compared_phases(a, b, first[0].step) if each < phase}
        if phase - 1 not in before and phase is not Phase.AFTERWARDS:
            return ""
    return _BEFORE[phase]


def _configuration(a: Run, b: Run) -> Iterator[Change]:
    """Yield the arguments and the settings of optimizers and loaders that differ."""
    ours, theirs = _arguments(a.meta.environment), _arguments(b.meta.environment)
    yield from _differing(ours, theirs)
    if a.meta.seed != b.meta.seed:
        yield Change("seed at the end of the setup", _text(a.meta.seed), _text(b.meta.seed))
    yield from _differing(_settings(a), _settings(b))
    yield from _differing(_architecture(a), _architecture(b))


def _environment(a: Environment, b: Environment) -> Iterator[Change]:
    yield from _differing({"python": a.python}, {"python": b.python})
    yield from _differing(a.versions, b.versions)
    machines = [
        {field.name: getattr(each.machine, field.name) for field in fields(each.machine)}
        for each in (a, b)
    ]
    yield from _differing(*machines)
    yield from _differing(a.variables, b.variables)


def _code(a: Environment, b: Environment) -> Iterator[Change]:
    ours, theirs = a.git, b.git
    yield from _differing(
        {"commit": ours and ours.commit[:10]}, {"commit": theirs and theirs.commit[:10]}
    )
    if a.script_digest != b.script_digest:
        yield Change("script (SHA-256)", _text(a.script_digest)[:10], _text(b.script_digest)[:10])
    if ours is not None and theirs is not None and ours.diff != theirs.diff:
        yield Change(
            "uncommitted changes",
            _lines(ours),
            _lines(theirs),
        )


def _lines(git: Git) -> str:
    changed = [line for line in git.diff.splitlines() if re.match(r"[+-](?![+-]{2})", line)]
    return f"{len(changed)} lines" if changed else "none"


def _changed_files(a: Git | None, b: Git | None) -> tuple[str, ...]:
    """Return the files of which the uncommitted changes are not the same."""
    ours, theirs = _by_file(a), _by_file(b)
    return tuple(name for name in sorted({*ours, *theirs}) if ours.get(name) != theirs.get(name))


def _by_file(git: Git | None) -> dict[str, str]:
    if git is None:
        return {}
    parts = re.split(r"^diff --git a/(\S+) b/\S+$", git.diff, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def _arguments(environment: Environment) -> dict[str, str]:
    """Return the command line by option: `--lr` -> `0.1`; positional words by their place."""
    named: dict[str, str] = {}
    words = list(environment.command)
    if environment.module is not None and words:
        words[0] = environment.module
    place, option = 0, ""
    for word in words:
        is_number = re.fullmatch(r"-[\d.][\d.e+-]*", word) is not None
        if word.startswith("-") and not is_number:
            option, equals, value = word.partition("=")
            named[option] = value if equals else "given"
            option = "" if equals else option
        elif option:
            named[option] = word if named[option] == "given" else f"{named[option]} {word}"
        else:
            named["script" if place == 0 else f"argument {place}"] = word
            place += 1
    return named


def _settings(run: Run) -> dict[str, str]:
    """Return the first readings of settings that a training has."""
    found = {}
    for signal in _SETTINGS:
        for owner, series in run[signal].items() if signal in run else ():
            if len(series):
                found[f"{signal.name} {owner}".strip()] = f"{series.values[0]:.6g}"
    return found


def _architecture(run: Run) -> dict[str, str]:
    found = {f"optimizer {each.label}".strip(): each.class_name for each in run.meta.optimizers}
    for model in run.meta.model:
        name = f"model {model.name}".strip()
        found[name] = f"{model.class_name}, {model.parameters:,} parameters"
    for name, parameter in run.meta.parameters.items():
        found[f"parameter {name}"] = f"{parameter.shape} {parameter.dtype}"
    return found


def _differing(a: Mapping[str, object], b: Mapping[str, object]) -> Iterator[Change]:
    for name in {**a, **b}:
        if a.get(name) != b.get(name):
            yield Change(name, _text(a.get(name)), _text(b.get(name)))


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _ends(a: Run, b: Run) -> Iterator[tuple[str, float | None, float | None]]:
    for signal in _ENDS:
        ours, theirs = _last(a, signal), _last(b, signal)
        for owner in {**ours, **theirs}:
            yield f"{signal.name} {owner}".strip(), ours.get(owner), theirs.get(owner)


def _last(run: Run, signal: Signal) -> dict[str, float]:
    if signal not in run:
        return {}
    return {owner: float(series.values[-1]) for owner, series in run[signal].items() if len(series)}
