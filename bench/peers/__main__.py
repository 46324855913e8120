"""What holter and its peers say of the zoo: `python -m bench.peers [--only PATTERN ...]`.

holter and SageMaker's rules read the recordings of the zoo (made through `holter run` where they
are not kept). torchmortem and torch-audit are attached to the same plain scripts, one at a time;
`pip install torchmortem torch-audit` first: one that is missing is left out, and that is said.
"""

import argparse
import datetime as dt
import fnmatch
import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.peers import sagemaker, torch_audit, torchmortem
from bench.peers.listening import ATTACHED, installed, listen
from bench.peers.peer import Alarm, Peer
from bench.peers.report import Row, render
from holter import Run, check, diagnose
from holter.diagnosis.engine import all_rules
from holter.record.findings import Confidence
from zoo.recording import recordings
from zoo.specimens import WORKLOADS, Specimen, corpus

RESULTS = Path(__file__).with_name("results.json")
PEERS = {each.PEER.name: each.PEER for each in (sagemaker, torchmortem, torch_audit)}

Said = dict[tuple[str, int], list[Alarm]]


def main() -> int:
    """Gather what everyone says, print it side by side."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--only", nargs="+", default=["*"], metavar="PATTERN", help="of specimens")
    parser.add_argument(
        "--sample",
        type=int,
        metavar="N",
        help="the plain workloads, N faults and N oddities, drawn by the digests of their names",
    )
    parser.add_argument("--peers", nargs="*", choices=list(PEERS), default=list(PEERS))
    parser.add_argument("--workers", type=int, default=2, help="processes that record (default 2)")
    parser.add_argument("--write", action="store_true", help=f"renew {RESULTS.name}")
    args = parser.parse_args()
    specimens = [
        each
        for each in corpus()
        if any(fnmatch.fnmatch(each.name, pattern) for pattern in args.only)
    ]
    if args.sample is not None:
        specimens = _drawn(specimens, args.sample)
    if not specimens:
        parser.error(f"no specimen is named like {' or '.join(args.only)}")
    rows = _from_recordings(specimens, args.seeds, args.workers, sagemaker.PEER.name in args.peers)
    for name in args.peers:
        if name in ATTACHED and installed(name):
            rows += _attached(PEERS[name], specimens, args.seeds)
        elif name in ATTACHED:
            print(f"{name} is not installed: left out\n")
    print(render(rows, {each.name: each for each in specimens}))
    if args.write:
        RESULTS.write_text(_as_json(rows))
    return 0


def _drawn(specimens: Sequence[Specimen], count: int) -> list[Specimen]:
    """A sample that does not change where others are added, and is part of any larger one."""
    changed = sorted(
        (each for each in specimens if each.edits),
        key=lambda each: hashlib.sha256(each.name.encode()).digest(),
    )
    faults = [each for each in changed if not each.healthy][:count]
    oddities = [each for each in changed if each.healthy][:count]
    plain = [each for each in specimens if not each.edits and each.path.parent == WORKLOADS]
    return [*plain, *faults, *oddities]


def _from_recordings(
    specimens: Sequence[Specimen], seeds: Sequence[int], workers: int, with_sagemaker: bool
) -> list[Row]:
    """Holter itself, all that it finds and its leading finding alone; and SageMaker's rules."""
    found: Said = {}
    leading: Said = {}
    fired: Said = {}
    for specimen, seed, path in recordings(specimens, seeds, workers=workers):
        run = Run.load(path)
        checkup = check(run)
        first = diagnose(checkup).leading
        found[specimen.name, seed] = [
            Alarm(each.rule, note=each.confidence <= Confidence.HINT) for each in checkup.findings
        ]
        leading[specimen.name, seed] = (
            [Alarm(first.rule, note=first.confidence <= Confidence.HINT)] if first else []
        )
        fired[specimen.name, seed] = sagemaker.alarms(run)
        _progress("holter", len(found))
    own = Peer("holter", "everything below and the loop, the data, the head", _own_names())
    rows = [Row("holter, all findings", own, found), Row("holter, the leading one", own, leading)]
    return [*rows, Row("sagemaker", sagemaker.PEER, fired)] if with_sagemaker else rows


def _own_names() -> dict[str, tuple[str, ...]]:
    return {rule: (rule,) for rule in all_rules()}


def _attached(peer: Peer, specimens: Sequence[Specimen], seeds: Sequence[int]) -> list[Row]:
    """A peer that was attached to the scripts; runs that it broke count as silent."""
    said: Said = {}
    broke = 0
    for specimen, seed, heard in listen(peer.name, specimens, seeds):
        said[specimen.name, seed] = list(heard.alarms)
        if heard.error:
            broke += 1
            print(f"{peer.name} on {specimen.name}: {heard.error}", file=sys.stderr)
        _progress(peer.name, len(said))
    rows = [Row(peer.name, peer, said, broke)]
    if peer is torch_audit.PEER:
        # Its default, one audit every 1,000 steps, sees the first step alone of runs so short.
        seldom = {key: [each for each in alarms if not each.step] for key, alarms in said.items()}
        rows.append(Row("torch-audit, every 1,000 steps", peer, seldom, broke))
    return rows


def _progress(name: str, count: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{name} {count}", end="", file=sys.stderr, flush=True)


def _as_json(rows: Sequence[Row]) -> str:
    """One line a run: when it was measured, and what each tool said."""
    lines = []
    for key in rows[0].said:
        said = {row.title: [str(each) for each in row.said[key]] for row in rows}
        lines.append(json.dumps({"specimen": key[0], "seed": key[1], "said": said}))
    measured = dt.datetime.now(dt.UTC).date().isoformat()
    head = json.dumps({"date": measured, "command": " ".join(sys.argv[1:])})
    return f"[\n{head},\n" + ",\n".join(lines) + "\n]\n"


if __name__ == "__main__":
    sys.exit(main())
