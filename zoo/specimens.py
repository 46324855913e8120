"""A specimen: a plain training script, the small change made to it, and the truth about it."""

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from holter.record.findings import Level

WORKLOADS = Path(__file__).parent / "workloads"
CASES = Path(__file__).parent.parent / "cases"

Edit = tuple[str, str]  # a piece of the workload that occurs once, and what stands there instead


@dataclass(frozen=True, slots=True)
class Specimen:
    """One script of the corpus: a workload of the zoo with `edits`, or the healthy twin of a case.

    Those of a blind round (`zoo/rounds.py`) are edits of scripts in `zoo/blind/<round>`.

    A fault names the rule that has to lead (`cause`), the rules that are an equally right answer
    (`accepts`), the level it lies at, and the step by which it should be seen. A healthy run has
    none of these: `why` says what looks odd about it and why it is none the less sound.
    """

    name: str
    workload: str
    edits: tuple[Edit, ...]
    why: str
    cause: str = ""
    accepts: tuple[str, ...] = ()
    level: Level | None = None
    by: int | None = None
    source: str = ""

    @property
    def path(self) -> Path:
        """Where the workload is."""
        if self.workload.startswith("blind/"):
            return WORKLOADS.parent / f"{self.workload}.py"
        folder = CASES if "/" in self.workload else WORKLOADS
        return folder / f"{self.workload}.py"

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong with it."""
        return not self.cause

    @property
    def script(self) -> str:
        """The workload's source with the edits made."""
        text = self.path.read_text()
        for old, new in self.edits:
            if text.count(old) != 1:
                raise ValueError(f"{self.name}: {old!r} is {text.count(old)} times in the workload")
            text = text.replace(old, new)
        return text


def fault(
    name: str,
    workload: str,
    *edits: Edit,
    why: str,
    cause: str,
    level: Level,
    by: int,
    accepts: tuple[str, ...] = (),
    source: str = "",
) -> Specimen:
    """A mistake: what was done wrong (`why`), and what has to be said of it."""
    return Specimen(name, workload, edits, why, cause, accepts, level, by, source)


def healthy(name: str, workload: str, *edits: Edit, why: str) -> Specimen:
    """A sound run that looks odd."""
    return Specimen(name, workload, edits, why)


@cache
def corpus() -> tuple[Specimen, ...]:
    """All specimens: each workload as it is, the faults, the oddities, and the healthy cases."""
    plain = [
        Specimen(f"{path.stem}", path.stem, (), "the workload as it is")
        for path in sorted(WORKLOADS.glob("*.py"))
    ]
    listed = [
        specimen
        for folder in ("faults", "oddities")
        for module in iter_modules([str(Path(__file__).parent / folder)])
        for specimen in import_module(f"zoo.{folder}.{module.name}").SPECIMENS
    ]
    twins = [
        Specimen(f"twin-of-{path.parent.name}", f"{path.parent.name}/healthy", (), "a healthy twin")
        for path in sorted(CASES.glob("*/healthy.py"))
    ]
    odd = [
        Specimen(
            f"odd-{path.parent.name}-{path.stem.removeprefix('odd_').replace('_', '-')}",
            f"{path.parent.name}/{path.stem}",
            (),
            "the specimen of an exception",
        )
        for path in sorted(CASES.glob("*/odd_*.py"))
    ]
    names = [each.name for each in (*plain, *listed)]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"specimens share a name: {', '.join(sorted(twice))}")
    return (*plain, *listed, *twins, *odd)
