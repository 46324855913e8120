"""What holter says of failures whose author had not seen it: `python -m bench.blind_failures`.

Runs `holter run` and `holter try replay` on every script of a round (a folder with `truths.json`)
and prints what was found beside the truth, then a table. Steps and lines are compared; whether a
cause and a cure are right is left to the reader, because the truths are sentences. A script that
takes longer than `--limit` is stopped and the others go on; the answers are in a JSON file after
each script (`--json`, or `blind_failures.json` in the folder that the variable OUT names).
`docs/blind-failures.md` has the judgements of all rounds at first sight.
"""

import argparse
import fnmatch
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
FIRST = ROOT / "zoo" / "blind" / "failures"
LIMIT = 240  # seconds that one script may take, recorded and replayed
NEAR = 2  # steps between the true step of a failure and the step that is named


@dataclass(frozen=True)
class Truth:
    """What is wrong with a script, as its author wrote it down."""

    script: Path
    fails: bool
    cause: str
    causes: tuple[str, ...] = ()  # other wordings that are right as well
    steps: tuple[int, ...] = ()
    operation: str = ""  # "" where nothing is born: a loss that rises
    lines: tuple[str, ...] = ()
    samples: tuple[int, ...] = ()
    cures: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """What holter says of a script."""

    name: str
    alone: str  # leading cause of `holter run`
    leads: str  # leading cause after the replay
    fix: str
    reproduced: str
    failing: int | None
    operation: str
    line: str
    samples: tuple[int, ...]
    says: str  # of the birth
    cure: str
    others: tuple[str, ...]  # changes that cure as well
    seconds: float = 0.0
    stopped: bool = False  # the limit ended one of the commands


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("round", nargs="?", type=Path, default=FIRST, help="folder of a round")
    parser.add_argument("--only", nargs="+", default=[""], metavar="PATTERN", help="names begin so")
    parser.add_argument("--workers", type=int, default=2, help="scripts at a time")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the recorded runs here")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for each script")
    parser.add_argument(
        "--json", type=Path, default=_usual_json(), metavar="FILE", help="write the answers here"
    )
    args = parser.parse_args()
    chosen = [
        truth
        for truth in truths(args.round)
        if any(fnmatch.fnmatch(truth.script.stem, f"{pattern}*") for pattern in args.only)
    ]
    with tempfile.TemporaryDirectory(prefix="holter-") as scratch:
        place = args.keep or Path(scratch)
        pairs: list[tuple[Truth, Answer]] = []
        with ThreadPoolExecutor(args.workers) as pool:
            waiting = {
                pool.submit(answer, truth, place / truth.script.stem, args.limit): truth
                for truth in chosen
            }
            for done in as_completed(waiting):
                pairs.append((waiting[done], done.result()))
                print("\n".join(lines(*pairs[-1])), flush=True)
                if args.json is not None:
                    _write(args.json, pairs)
    print("\n".join(table(pairs)))
    return 0


def _usual_json() -> Path | None:
    folder = os.environ.get("OUT")
    return Path(folder, "blind_failures.json") if folder else None


def _write(file: Path, pairs: Sequence[tuple[Truth, Answer]]) -> None:
    answers = [asdict(told) for _, told in sorted(pairs, key=lambda pair: pair[1].name)]
    file.write_text(json.dumps(answers, indent=1) + "\n")


def truths(folder: Path) -> list[Truth]:
    """Return the truths of a round; the first round names its fields in another way."""
    for name, read in (("truths.json", _truth), ("truth.json", _first_truth)):
        if (folder / name).is_file():
            found = [read(folder, each) for each in json.loads((folder / name).read_text())]
            return [truth for truth in found if truth.script.is_file()]
    raise SystemExit(f"{folder} has no truths.json.")


def _truth(folder: Path, told: dict[str, Any]) -> Truth:
    return Truth(
        script=folder / f"{str(told['name']).removesuffix('.py')}.py",
        fails=bool(told["fails"]),
        cause=str(told["truth"]),
        causes=tuple(map(str, _several(told.get("acceptable")))),
        steps=tuple(_numbers(told.get("step"))),
        operation=str(told.get("operation") or ""),
        lines=tuple(map(str, _several(told.get("line")))),
        samples=tuple(_numbers(told.get("samples"))),
        cures=(
            *map(str, _several(told.get("smallest_cure"))),
            *map(str, _several(told.get("acceptable_cures"))),
        ),
    )


def _first_truth(folder: Path, told: dict[str, Any]) -> Truth:
    birth = told.get("birth") or {}
    return Truth(
        script=folder / told["script"],
        fails=told["kind"] != "healthy",
        cause=told["leading_cause"],
        causes=tuple(told["acceptable_causes"]),
        steps=tuple(_numbers(told.get("steps_ok") or told["fails_at_step"])),
        operation=birth.get("operation", ""),
        lines=(*_several(birth.get("line")), *birth.get("lines_ok", ())),
        samples=tuple(birth.get("samples") or told.get("samples") or ()),
        cures=tuple(told["smallest_cure"]),
    )


def answer(truth: Truth, folder: Path, limit: float = LIMIT) -> Answer:
    """Record a script and replay its failure, if it has one, within a number of seconds."""
    folder.mkdir(parents=True)
    (folder / "train.py").write_text(truth.script.read_text())
    start = time.monotonic()
    end = start + limit
    _holter(folder, end, "run", "--no-check", "--out", "run", "train.py")
    alone = _report(_holter(folder, end, "check", "--format", "json", "run"))
    replayed = _report(_holter(folder, end, "try", "replay", "--json", "run")) or alone
    seconds = time.monotonic() - start
    replay = replayed.get("replay") or {}
    reproduction, birth = replay.get("reproduction") or {}, replay.get("birth") or {}
    ladder = [each["change"] for each in replay.get("ladder", ()) if each["outcome"] == "cures"]
    leading = (replayed.get("diagnosis") or {}).get("leading") or {}
    return Answer(
        name=folder.name,
        alone=_cause(alone),
        leads=_cause(replayed),
        fix=str(leading.get("fix") or ""),
        reproduced=str(reproduction.get("verdict") or "no replay"),
        seconds=round(seconds, 1),
        stopped=seconds >= limit,
        failing=birth.get("step", reproduction.get("failing")),
        operation=f"{birth['kind']}: {birth['operation']}" if birth else "",
        line=str(birth.get("line") or ""),
        samples=tuple(birth.get("indices") or birth.get("samples") or ()),
        says=str(birth.get("says") or ""),
        cure=str(replay.get("smallest_cure") or ""),
        others=tuple(change for change in ladder if change != replay.get("smallest_cure")),
    )


def lines(truth: Truth, told: Answer) -> Iterator[str]:
    """What holter says of a script, and the truth."""
    yield f"## {told.name} ({told.seconds:.0f} s{', stopped at the limit' * told.stopped})"
    yield f"- run alone: {told.alone}"
    if truth.fails or told.reproduced != "no replay":
        yield f"- replay: {told.leads}; {told.reproduced}"
        yield f"- born at step {told.failing}: {told.operation} `{told.line}` {list(told.samples)}"
        yield f"- {told.says or 'no birth'}"
        yield f"- smallest cure: {told.cure or 'none'}; also {', '.join(told.others) or 'none'}"
        yield f"- fix: {told.fix}"
    yield f"- TRUTH: {truth.cause}"
    if truth.fails:
        yield f"- also right: {' | '.join(truth.causes)}"
        yield (
            f"- born at step {_shown(truth.steps)}: {truth.operation} {_shown(truth.lines)}"
            f" {_shown(truth.samples)}"
        )
        yield f"- cures: {' | '.join(truth.cures)}"
    yield ""


def table(pairs: Sequence[tuple[Truth, Answer]]) -> Iterator[str]:
    """What can be compared without a reader."""
    failing = [(truth, told) for truth, told in pairs if truth.fails]
    born = [(truth, told) for truth, told in failing if truth.operation and truth.lines]
    yield "| | |"
    yield "|---|--:|"
    yield f"| failures | {len(failing)} |"
    for title, hits, of in (
        ("replayed", [t.name for _, t in failing if t.reproduced != "no replay"], failing),
        ("reproduced bit for bit", [t.name for _, t in failing if _is_exact(t)], failing),
        ("step as in the truth, within 2", [t.name for tr, t in failing if _near(tr, t)], failing),
        ("line of the birth as in the truth", [t.name for tr, t in born if _same(tr, t)], born),
    ):
        missed = [told.name for _, told in of if told.name not in hits]
        yield f"| {title} | {len(hits)} of {len(of)} | {', '.join(missed)} |"
    healthy = [(truth, told) for truth, told in pairs if not truth.fails]
    alarms = [told.name for _, told in healthy if told.alone != "none"]
    stopped = [told.name for _, told in pairs if told.stopped]
    yield f"| stopped at the limit | {len(stopped)} of {len(pairs)} | {', '.join(stopped)} |"
    yield f"| alarms on healthy scripts | {len(alarms)} of {len(healthy)} | {', '.join(alarms)} |"


def _is_exact(told: Answer) -> bool:
    return told.reproduced == "bit for bit"


def _near(truth: Truth, told: Answer) -> bool:
    failing = told.failing
    return failing is not None and any(abs(failing - step) <= NEAR for step in truth.steps)


def _same(truth: Truth, told: Answer) -> bool:
    """Whether one of the lines is, or holds, the line that is named, or is in the sentence."""
    named, says = "".join(told.line.split()), "".join(told.says.split())
    known = ["".join(line.split()) for line in truth.lines]
    return bool(named) and any(named in k or k in named or k in says for k in known if k)


def _cause(report: dict[str, Any]) -> str:
    """The leading cause of a report, or "none"."""
    if not report:
        return "no report"
    leading = (report.get("diagnosis") or {}).get("leading")
    if leading is None:
        return "none"
    return f"{leading['rule']} · {leading['confidence']}: {leading['summary']}"


def _report(text: str) -> dict[str, Any]:
    return dict(json.loads(text)) if text else {}


def _several(told: object) -> list[Any]:
    if told is None or told == "":
        return []
    return list(told) if isinstance(told, list | tuple) else [told]


def _numbers(told: object) -> list[int]:
    return [int(each) for each in _several(told) if isinstance(each, int | float)]


def _shown(told: Sequence[object]) -> str:
    return " | ".join(map(str, told)) or "-"


def _holter(folder: Path, end: float, *arguments: str) -> str:
    """Standard output of a command; nothing if it could not answer before the end."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
    process = subprocess.Popen(
        [sys.executable, "-m", "holter", *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,  # a replay has children, which are stopped with it
    )
    try:
        output, _ = process.communicate(timeout=max(end - time.monotonic(), 0.0))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return ""
    return output if process.returncode in (0, 1) else ""


if __name__ == "__main__":
    sys.exit(main())
