"""How often holter is right at first sight: `python -m bench.blind ROUND [--doctor]`.

Records every script of a blind round (`zoo/blind`), checks it, and compares the leading cause with
the truth. `--first-sight` adds the figures to docs/blind-rounds.json; what stands there is never
replaced. Every later call prints both.
"""

import argparse
import datetime as dt
import fnmatch
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from holter import Run, check, diagnose
from holter.record.findings import Confidence
from zoo.recording import recording
from zoo.rounds import rounds, specimens_of, visibly_bad
from zoo.specimens import Specimen

KEPT = Path(__file__).parent.parent / "docs" / "blind-rounds.json"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What was said of one script, and whether it is so."""

    specimen: Specimen
    verdict: str  # right, listed, other, silent, failed; clear, hint, alarm
    findings: tuple[str, ...]
    outcome: str

    @property
    def line(self) -> str:
        """A row of the table."""
        said = ", ".join(self.findings) or "nothing"
        return (
            f"| {self.specimen.name} | {self.verdict} | {said} | {self.specimen.why} |"
            f" {self.outcome} |"
        )


def main() -> int:
    """Measure a round and print it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("round", choices=rounds())
    parser.add_argument("--only", default="*", metavar="PATTERN", help="names of specimens")
    parser.add_argument("--workers", type=int, default=2)
    command = parser.add_mutually_exclusive_group()
    command.add_argument("--doctor", action="store_true", help="`holter doctor` on each script")
    command.add_argument("--preflight", action="store_true", help="`holter try preflight` on each")
    command.add_argument(
        "--sampled", action="store_true", help="without the allowance for short runs"
    )
    parser.add_argument("--first-sight", action="store_true", help="keep the figures for good")
    args = parser.parse_args()
    hows = {"doctor": args.doctor, "preflight": args.preflight, "sampled": args.sampled}
    how = next((name for name, chosen in hows.items() if chosen), "run")
    chosen = [
        each for each in specimens_of(args.round) if fnmatch.fnmatch(each.name, f"*{args.only}")
    ]
    judgements = list(measure(chosen, how, workers=args.workers))
    figures = totals(judgements, visibly_bad(args.round))
    print("| script | verdict | found | truth | outcome |\n|---|---|---|---|---|")
    for each in sorted(judgements, key=lambda each: (each.specimen.healthy, each.verdict)):
        print(each.line)
    print()
    for name, value in figures.items():
        print(f"{name}: {value}")
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    first = kept.get(args.round, {}).get(how)
    if first is not None:
        print(f"at first sight: {first}")
    elif args.first_sight:
        kept.setdefault(args.round, {})[how] = {
            "date": str(dt.datetime.now(tz=dt.UTC).date()),
            "torch": version("torch"),
            **figures,
        }
        KEPT.write_text(json.dumps(kept, indent=2) + "\n")
    return 0


def measure(specimens: Sequence[Specimen], how: str, *, workers: int) -> Iterator[Judgement]:
    """Record and judge each script; what is kept from an earlier call is not recorded again."""

    def judged(specimen: Specimen) -> Judgement:
        try:
            path = recording(specimen, experiment=None if how == "run" else how)
        except RuntimeError as error:
            return Judgement(specimen, "failed", (), str(error))
        return judge(specimen, Run.load(path))

    with ThreadPoolExecutor(workers) as pool:
        for number, each in enumerate(pool.map(judged, specimens), start=1):
            print(f"\r{number}/{len(specimens)}", end="", file=sys.stderr, flush=True)
            yield each
    print(file=sys.stderr)


def judge(specimen: Specimen, run: Run) -> Judgement:
    """Compare the diagnosis of a run with the truth."""
    checkup = check(run)
    diagnosis = diagnose(checkup)
    leading = diagnosis.leading
    findings = sorted(checkup.findings, key=lambda each: each is not leading)
    causes = {specimen.cause, *specimen.accepts}
    if specimen.healthy:
        sure = any(each.confidence > Confidence.HINT and not each.preview for each in findings)
        verdict = "alarm" if sure else "hint" if findings else "clear"
    elif leading is not None and leading.rule in causes:
        verdict = "right"
    elif any(each.rule in causes for each in findings):
        verdict = "listed"
    else:
        verdict = "other" if findings else "silent"
    return Judgement(
        specimen,
        verdict,
        tuple(f"{each.rule}/{each.confidence}" for each in findings),
        f"{checkup.outcome.title}: {checkup.outcome.says}",
    )


def totals(judgements: Sequence[Judgement], visible: set[str]) -> dict[str, str]:
    """The figures of a round."""
    faults = Counter(each.verdict for each in judgements if not each.specimen.healthy)
    healthy = Counter(each.verdict for each in judgements if each.specimen.healthy)
    count, sound = sum(faults.values()), sum(healthy.values())
    silent = [
        each
        for each in judgements
        if each.verdict in ("silent", "failed") and each.specimen.name in visible
    ]
    return {
        "leading cause right or acceptable": f"{faults['right']} of {count}",
        "listed below another": f"{faults['listed']} of {count}",
        "another cause": f"{faults['other']} of {count}",
        "silent": f"{faults['silent'] + faults['failed']} of {count}",
        "silent although visibly bad": f"{len(silent)} of {len(visible)}",
        "healthy: alarms (certain or likely)": f"{healthy['alarm']} of {sound}",
        "healthy: hints": f"{healthy['hint']} of {sound}",
    }


if __name__ == "__main__":
    sys.exit(main())
