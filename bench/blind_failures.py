"""What replays say of failures whose author had not seen holter: `python -m bench.blind_failures`.

Runs `holter run` and `holter try replay` on every script of zoo/blind/failures and prints what was
found beside the truth. Judging is left to the reader: the truths are sentences.
`docs/blind-failures.md` has the judgement at first sight.
"""

import argparse
import fnmatch
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SCRIPTS = ROOT / "zoo" / "blind" / "failures"
LIMIT = 300  # seconds that one command may take


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="*", metavar="PATTERN", help="names of scripts")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    truths = json.loads((SCRIPTS / "truth.json").read_text())
    chosen = [truth for truth in truths if fnmatch.fnmatch(truth["script"], f"{args.only}*")]
    with tempfile.TemporaryDirectory(prefix="holter-") as folder:

        def shown(truth: dict[str, Any]) -> str:
            return "\n".join(lines(truth, Path(folder) / truth["script"].removesuffix(".py")))

        with ThreadPoolExecutor(args.workers) as pool:
            for text in pool.map(shown, chosen):
                print(text, flush=True)
    return 0


def lines(truth: dict[str, Any], folder: Path) -> list[str]:
    """What holter says of a script, and the truth."""
    folder.mkdir()
    (folder / "train.py").write_text((SCRIPTS / truth["script"]).read_text())
    _holter(folder, "run", "--no-check", "--out", "run", "train.py")
    report = _holter(folder, "try", "replay", "--json", "run") or _holter(
        folder, "check", "--format", "json", "run"
    )
    told = json.loads(report)
    leading = told["diagnosis"]["leading"] or {}
    replay = told.get("replay") or {}
    reproduction, birth = replay.get("reproduction") or {}, replay.get("birth") or {}
    born = f"{birth.get('kind')} `{birth.get('line')}`"
    samples = birth.get("indices") or birth.get("samples")
    cause, step = truth.get("leading_cause", ""), truth.get("fails_at_step")
    return [
        f"## {folder.name}",
        f"- leads: {leading.get('rule')} · {leading.get('confidence')}: {leading.get('summary')}",
        f"- replay: {reproduction.get('verdict')}; born: {born}, samples {samples}",
        f"- smallest cure: {replay.get('smallest_cure')}",
        f"- truth: {truth['kind']} at step {step}: {cause}",
        f"- born: {json.dumps(truth.get('birth'))}; cures: {truth.get('smallest_cure')}",
        "",
    ]


def _holter(folder: Path, *arguments: str) -> str:
    """Standard output of a command; nothing if it could not answer."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
    ran = subprocess.run(
        [sys.executable, "-m", "holter", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    return ran.stdout if ran.returncode in (0, 1) else ""


if __name__ == "__main__":
    sys.exit(main())
