"""The plan of a sweep: which commands, which seeds, and where their runs are kept."""

import itertools
import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from holter.record import Run
from holter.record.errors import HolterError
from holter.record.portable import lock
from holter.scripts.sweeps.tasks import OUT, State, Task, last_line

PLAN = "sweep.json"
_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}")
_PYTHON = re.compile(r"python(\d+(\.\d+)?)?(\.exe)?")
SEED = "seed"


@dataclass(frozen=True, slots=True)
class Variant:
    """A command; its words may hold `{seed}`."""

    name: str
    words: tuple[str, ...]

    @property
    def command(self) -> str:
        """The command as a line of text."""
        return shlex.join(self.words)


@dataclass(frozen=True, slots=True)
class Job:
    """One run: a variant with a seed."""

    variant: Variant
    seed: int
    folder: Path  # of the run

    @property
    def task(self) -> Task:
        """The command that records the run."""
        script = list(script_of(self.variant.words))
        placed = any("{seed}" in word for word in script)
        own = [word.replace("{seed}", str(self.seed)) for word in script]
        reseed = [] if placed else ["--reseed", str(self.seed)]
        quiet = ("run", "--no-check", "--no-black-box", "--out", OUT, *reseed)
        name = f"{self.variant.name}, seed {self.seed}"
        return Task(name, ("-m", "holter", *quiet, *own), self.folder)


@dataclass(frozen=True, slots=True)
class Sweep:
    """Variants and seeds in a folder."""

    folder: Path
    variants: tuple[Variant, ...]
    seeds: tuple[int, ...]

    @property
    def jobs(self) -> list[Job]:
        """All runs, seed by seed, so that an interrupted sweep has as many of each variant."""
        return [
            Job(variant, seed, self.folder / _slug(variant.name) / f"seed-{seed}")
            for seed in self.seeds
            for variant in self.variants
        ]

    def save(self) -> None:
        """Write the plan; a plan of other commands in the same folder is an error."""
        path = self.folder / PLAN
        mine = [asdict(variant) for variant in self.variants]
        if path.exists():
            before = json.loads(path.read_text())["variants"]
            if before != json.loads(json.dumps(mine)):
                raise HolterError(
                    f"{self.folder} holds a sweep of different commands; use another --out folder."
                )
        self.folder.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(".tmp")
        fresh.write_text(json.dumps({"variants": mine, "seeds": list(self.seeds)}, indent=1))
        fresh.replace(path)

    @classmethod
    def load(cls, folder: Path) -> "Sweep":
        """Read the plan of a sweep."""
        try:
            plan = json.loads((folder / PLAN).read_text())
            variants = tuple(Variant(e["name"], tuple(e["words"])) for e in plan["variants"])
            return cls(folder, variants, tuple(plan["seeds"]))
        except (OSError, ValueError, KeyError) as error:
            raise HolterError(f"{folder} is not a sweep of `holter seeds`.") from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep a second process from running the same sweep."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as file:
            try:
                lock(file.fileno())
            except OSError:
                raise HolterError(
                    f"Another process is running the sweep in {self.folder}."
                ) from None
            yield

    def runs(self) -> dict[tuple[str, int], Run | str]:
        """Return the run of each variant and seed, or why there is none."""
        return {(job.variant.name, job.seed): _run_of(job) for job in self.jobs}


def variants_of(
    words: Sequence[str], vary: Mapping[str, Sequence[str]], against: str | None
) -> tuple[Variant, ...]:
    """Return the variants of a command: one for each value of its placeholders, and another one.

    They are named by what differs: `lr=0.1`, or A and B.
    """
    named = set(_PLACEHOLDER.findall(" ".join(words))) - {SEED}
    if unknown := sorted(named - set(vary)):
        raise HolterError(
            f"{{{unknown[0]}}} has no values: add --vary {unknown[0]}=VALUE,VALUE before the --."
        )
    if unused := sorted(set(vary) - named):
        raise HolterError(f"--vary {unused[0]}: the command has no {{{unused[0]}}}.")
    script_of(words)
    found = []
    for values in itertools.product(*vary.values()):
        given = dict(zip(vary, values, strict=True))
        filled = tuple(_filled(word, given) for word in words)
        name = " ".join(f"{key}={value}" for key, value in given.items())
        found.append(Variant(name or "A", filled))
    if against is not None:
        other = tuple(shlex.split(against))
        if not other:
            raise HolterError("--against needs a command, for example 'python train.py --lr 0.3'.")
        script_of(other)
        found.append(Variant("B" if found[0].name == "A" else "against", other))
    return tuple(found)


def _run_of(job: Job) -> Run | str:
    task = job.task
    state = task.state()
    if state is State.FINISHED:
        return Run.load(job.folder)
    if state is State.FAILED:
        return f"the script failed: {last_line(task.log)}"
    return f"not finished: {last_line(task.log)}" if task.log.exists() else "not run yet"


def _filled(word: str, given: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda match: given.get(match[1], match[0]), word)


def script_of(words: Sequence[str]) -> tuple[str, ...]:
    """Return what follows `python`: a script with its arguments, or `-m` and a module."""
    if words and _PYTHON.fullmatch(Path(words[0]).name):
        rest = tuple(words[1:])
        if rest and (not rest[0].startswith("-") or (rest[0] == "-m" and len(rest) > 1)):
            return rest
    elif words and words[0].endswith(".py"):
        return tuple(words)
    shown = shlex.join(words) or "nothing"
    raise HolterError(
        f"The command is {shown}; write `-- python train.py --lr 0.1`, or `-- python -m package`."
    )


def _slug(name: str) -> str:
    return re.sub(r"[^\w.=+-]+", "_", name).strip("_") or "A"
