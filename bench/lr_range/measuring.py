"""What every finder suggests for a workload, and what that is worth; kept once measured."""

import hashlib
import json
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from bench.lr_range import peers, training
from bench.lr_range.workloads import task
from holter.diagnosis.facts import rate_range
from holter.lab import running
from holter.record.signals import LR_RANGE_RATE

ROOT = Path(__file__).parent.parent.parent
CACHE = ROOT / ".cache" / "lr_range"
HOLTER, SWEEPS_ONLY = "holter", "holter, sweeps only"
ORDERS = 2  # further trainings at holter's rate with other orders of batches: the noise

_HERE = Path(__file__).parent
_OWN = (
    *("diagnosis/facts/rate_range.py", "diagnosis/facts/sweep.py"),
    *("lab/experiments/lr_range.py", "lab/experiments/_learning_rates/trials.py"),
    "lab/experiments/_learning_rates/planning.py",
)


@dataclass(frozen=True, slots=True)
class Row:
    """One workload with one seed: rates and held losses by rule, and the same rate again."""

    workload: str
    noisy: bool
    seed: int
    start: float  # the held loss before training
    rates: dict[str, float | None]
    scores: dict[str, float]
    again: list[float]  # holter's rate, if it gave one, with other orders of batches
    steps: dict[str, int]  # training steps that a search took


def measured(names: Sequence[str], seeds: Sequence[int]) -> Iterator[Row]:
    """The rows of all workloads, plain and noisy."""
    for name in names:
        for noisy in (False, True):
            for seed in seeds:
                yield _row(name, seed, noisy)


def as_json(rows: Sequence[Row], head: dict[str, Any]) -> str:
    """One line a row, after one that says when and how they were measured."""
    lines = [json.dumps(head)]
    for row in rows:
        fields = asdict(row)
        fields["scores"] = {k: v if math.isfinite(v) else None for k, v in row.scores.items()}
        lines.append(json.dumps(fields, allow_nan=False))
    return "[\n" + ",\n".join(lines) + "\n]\n"


def from_json(text: str) -> tuple[list[Row], dict[str, Any]]:
    """The rows that were kept, and what was said of them."""
    head, *rows = json.loads(text)
    for each in rows:
        each["scores"] = {k: math.inf if v is None else v for k, v in each["scores"].items()}
    return [Row(**each) for each in rows], head


def _row(name: str, seed: int, noisy: bool) -> Row:
    own = _kept("holter", (name, seed, noisy), _OWN, lambda: _holter(name, seed, noisy))
    rates: dict[str, float | None] = dict(own["rates"])
    steps: dict[str, int] = {HOLTER: own["steps"]}
    for peer, ask in peers.installed().items():

        def suggested(ask: Callable[..., peers.Suggestions] = ask) -> Any:
            return ask(task(name, seed, noisy=noisy))

        rates |= _kept(peer, (name, seed, noisy), (), suggested)

    def worth(rate: float | None, order: int = 0) -> float:
        if rate is None:
            return float("inf")
        key = (name, seed, noisy, f"{rate:.4g}", order)
        return float(
            _kept(
                "score",
                key,
                (),
                lambda: training.score(name, seed, float(f"{rate:.4g}"), noisy=noisy, order=order),
            )
        )

    return Row(
        name,
        noisy,
        seed,
        worth(0.0),
        rates,
        {rule: worth(rate) for rule, rate in rates.items()},
        [worth(rates[HOLTER], n) for n in range(1, ORDERS + 1) if rates[HOLTER] is not None],
        steps,
    )


def _holter(name: str, seed: int, noisy: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        run = running.run("lr-range", task(name, seed, noisy=noisy).setup(), Path(folder) / "run")
        test = rate_range.read(run)
        steps = sum(len(each) for each in run[LR_RANGE_RATE].values())
    sweeps = replace(test, trials=())
    rates = {HOLTER: test, SWEEPS_ONLY: sweeps}
    return {
        "rates": {k: None if each.problem else each.suggestion.rate for k, each in rates.items()},
        "steps": steps,
    }


def _kept(what: str, key: Any, own: Sequence[str], make: Callable[[], Any]) -> Any:
    """A value from the cache; made where the code that makes it has changed, or never was."""
    sources = [_HERE / "workloads.py", *(ROOT / "src" / "holter" / each for each in own)]
    sources += [_HERE / "training.py"] if what == "score" else []
    sources += [_HERE / "peers.py"] if not own and what != "score" else []
    digest = hashlib.sha256(repr((what, key)).encode())
    for each in sources:
        digest.update(each.read_bytes())
    path = CACHE / f"{digest.hexdigest()[:24]}.json"
    if path.exists():
        return json.loads(path.read_text())
    began = time.process_time()
    value = make()
    CACHE.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    _spent.append(time.process_time() - began)
    return value


_spent: list[float] = []


def spent() -> float:
    """Seconds of the processor that the measurements of this process took."""
    return sum(_spent)
