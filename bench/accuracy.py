"""How often the diagnosis is right: `python -m bench.accuracy [--seeds 0 1 2] [--only PATTERN]`.

Records the zoo through `holter run` (kept in .cache, so that a change of rules is measured in
seconds), checks every recording with all rules, and compares with the truth. `--write` replaces
the committed table; every later call prints how findings differ from it.
"""

import argparse
import fnmatch
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path

from holter import Run, check, diagnose
from holter.diagnosis.causes import explained_by, reach
from holter.diagnosis.engine import Checkup, all_rules
from holter.record.findings import Confidence, Finding
from zoo.recording import Recorded, kept, recordings
from zoo.regimes import Regime
from zoo.specimens import Specimen, corpus

ROOT = Path(__file__).parent.parent
TABLES = {
    Regime.WHOLE: ROOT / "bench" / "accuracy.json",
    Regime.STRETCHED: ROOT / "bench" / "accuracy-stretched.json",
    Regime.SAMPLED: ROOT / "bench" / "accuracy-sampled.json",
}
PAGES = {
    Regime.WHOLE: ROOT / "docs" / "accuracy.md",
    Regime.STRETCHED: ROOT / "docs" / "accuracy-stretched.md",
    Regime.SAMPLED: ROOT / "docs" / "accuracy-sampled.md",
}
BLIND = ROOT / "docs" / "blind-rounds.json"
_LOOKS = (5, 10, 20, 30, 50, 75, 100, 150, 200, 300, 400, 600, 800, 1200, 1600)


@dataclass(frozen=True, slots=True)
class Result:
    """What was said of one recording: each finding as `rule/confidence`, the leading one first."""

    specimen: str
    seed: int
    verdict: str  # right, acceptable, missed; clear, hint, alarm
    leading: str
    findings: tuple[str, ...]
    seen: int | None  # the step by which the cause was first named
    steps: int
    exceptions: tuple[str, ...] = ()  # that withheld a finding, as `rule/exception`


def main() -> int:
    """Measure, print, and compare with the committed table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument(
        "--only", nargs="+", default=["*"], metavar="PATTERN", help="names of specimens"
    )
    parser.add_argument(
        "--workers", type=int, default=2, help="processes that record and judge (default 2)"
    )
    parser.add_argument("--no-delay", action="store_true", help="leave out the detection delay")
    parser.add_argument("--write", action="store_true", help="replace the committed table and page")
    parser.add_argument(
        "--kept",
        type=Path,
        metavar="FOLDER",
        help="judge the recordings in this folder, whichever version of holter made them",
    )
    parser.add_argument(
        "--recorded-by",
        default="an earlier version",
        metavar="COMMIT",
        help="what made the recordings of --kept, for the page",
    )
    parser.add_argument(
        "--sampled",
        action="store_true",
        help="as long runs are read: no allowance, ten times the data",
    )
    parser.add_argument(
        "--stretched",
        action="store_true",
        help="the runs of --sampled, read whole: what sampling misses is named here",
    )
    args = parser.parse_args()
    regime = Regime.SAMPLED if args.sampled else Regime.WHOLE
    if args.stretched:
        regime = Regime.STRETCHED
    specimens = [
        each for each in corpus() if any(fnmatch.fnmatch(each.name, only) for only in args.only)
    ]
    if not specimens:
        parser.error(f"no specimen is named like {' or '.join(args.only)}")
    if args.kept:
        runs = kept(specimens, args.seeds, args.kept, regime=regime)
    else:
        runs = recordings(specimens, args.seeds, workers=args.workers, regime=regime)
    results = measure(specimens, runs, workers=args.workers, delay=not args.no_delay)
    truth = {each.name: each for each in specimens}
    page = render(results, truth, regime, by=args.recorded_by if args.kept else "")
    print(page)
    print(difference(results, regime))
    if args.write:
        rows = [json.dumps(asdict(each)) for each in results]
        TABLES[regime].write_text("[\n" + ",\n".join(rows) + "\n]\n")
        PAGES[regime].write_text(page)
    return 0


def measure(
    specimens: Sequence[Specimen], runs: Iterable[Recorded], *, workers: int, delay: bool
) -> list[Result]:
    """Check the recording of every specimen with every seed, in several processes."""
    with ProcessPoolExecutor(workers, get_context("forkserver")) as pool:
        futures = []
        for recorded in runs:
            futures.append(pool.submit(judge, *recorded, delay=delay))
            if sys.stderr.isatty():
                print(f"\r{len(futures)} recordings", end="", file=sys.stderr, flush=True)
        results = [future.result() for future in futures]
    order = {specimen.name: place for place, specimen in enumerate(specimens)}
    return sorted(results, key=lambda result: (order[result.specimen], result.seed))


def judge(specimen: Specimen, seed: int, path: Path, *, delay: bool) -> Result:
    """Compare the diagnosis of a recording with the truth."""
    run = Run.load(path)
    checkup = check(run)
    leading = diagnose(checkup).leading
    named = sorted(checkup.findings, key=lambda each: each is not leading)
    failed = [each.because for each in checkup.not_examined if "the rule itself" in each.because]
    if failed:
        print(f"{specimen.name} seed {seed}: {failed}", file=sys.stderr)
    return Result(
        specimen=specimen.name,
        seed=seed,
        verdict=_verdict(specimen, checkup, leading),
        leading=leading.rule if leading else "",
        findings=tuple(_short(each) for each in named),
        seen=_seen(specimen, run) if delay and specimen.cause else None,
        steps=run.steps,
        exceptions=tuple(
            f"{each.rule}/{each.exception}" for each in checkup.normal if each.exception
        ),
    )


def _verdict(specimen: Specimen, checkup: Checkup, leading: Finding | None) -> str:
    if specimen.healthy:
        if not checkup.findings:
            return "clear"
        sure = any(each.confidence > Confidence.HINT for each in checkup.findings)
        return "alarm" if sure else "hint"
    if leading is not None and leading.rule == specimen.cause:
        return "right"
    if leading is not None and leading.rule in specimen.accepts:
        return "acceptable"
    return "missed"


def _seen(specimen: Specimen, run: Run) -> int | None:
    """The first of some steps at which a check of the growing run leads with a right answer."""
    right = {specimen.cause, *specimen.accepts}
    for step in (*(each for each in _LOOKS if each < run.steps), run.steps):
        leading = diagnose(check(run.until(step - 1))).leading
        if leading is not None and leading.rule in right:
            return step
    return None


def _short(finding: Finding) -> str:
    return f"{finding.rule}/{finding.confidence}" + ("/preview" if finding.preview else "")


_TITLES = {
    Regime.WHOLE: "How often holter is right",
    Regime.STRETCHED: "How often holter is right on long runs that are read whole",
    Regime.SAMPLED: "How often holter is right on long runs",
}
_ABOUT = {
    Regime.WHOLE: (
        "Written by `python -m bench.accuracy --write`: every script of the zoo, recorded"
        " completely, as short runs are. With expensive signals sampled, as in long runs:"
        " [accuracy-sampled.md](accuracy-sampled.md)."
    ),
    Regime.STRETCHED: (
        "Written by `python -m bench.accuracy --stretched --write`: scripts of the zoo on ten"
        " times the data, recorded completely. With expensive signals sampled:"
        " [accuracy-sampled.md](accuracy-sampled.md)."
    ),
    Regime.SAMPLED: (
        "Written by `python -m bench.accuracy --sampled --write`: every script of the zoo on ten"
        " times the data. Expensive signals are sampled from the first step, without the"
        " allowance for short runs. Recorded completely: [accuracy.md](accuracy.md)."
    ),
}


_BLIND = (
    "leading cause right or acceptable",
    "silent",
    "silent although visibly bad",
    "healthy: alarms (certain or likely)",
    "healthy: hints",
)
_SUBJECTS = {
    "r1": "subtle faults in 16 kinds of training",
    "r2": "ranking, distillation, adapters, diffusion, flows, graphs and others",
    "d1": "data and evaluation",
    "r3": "vision, text, tables, VAE, RL, tagging, retrieval, fine-tuning, GAN, translation and"
    " others",
    "d2": "data and evaluation",
    "r4": "metric learning, knowledge graphs, sessions, survival, keypoints, flows, policies,"
    " audio",
    "r5": "semi-supervised, implicit fields, domain adaptation, point sets, event sequences,"
    " super-resolution, link prediction, anomalies, Bayesian and others",
    "d3": "data and evaluation",
    "r6": "retrieval, CTC, Q-learning, forecasting, graphs, segmentation, speech, survival, VAE;"
    " half of the faults in data or evaluation",
    "r7": "CTC, detection, diffusion, distillation, Q-learning, flows, forecasting, LoRA, packed"
    " language models, retrieval, survival",
    "r8": "images, sentences, tables, characters, segmentation, VAE, recommendation, forecasting,"
    " policies, fine-tuning; half of the faults classic",
    "r9": "images, intents, tables, forecasting, fine-tuning, language model, Q-learning,"
    " diffusion, two towers, segmentation; half of the faults classic",
    "d4": "data and evaluation",
    "r10": "sound events, dates, clicks, keypoints, a graph, images, characters, a gridworld,"
    " wind power, ratings; half of the faults classic",
    "r11": "prices, sentiment, images with an EMA, a character model, dates, load, cells, films, a"
    " pole, pictures with captions; half of the faults classic",
    "r12": "energy, symbols, names, sensors, clicks, glyphs, transliteration, tickets, a pole,"
    " fine-tuning; half of the faults classic",
}


def render(
    results: Sequence[Result], truth: dict[str, Specimen], regime: Regime, *, by: str = ""
) -> str:
    """The page: totals, misses, false alarms, and the error rate of each rule.

    `by` names what made the recordings, if not the present code.
    """
    faults = [each for each in results if not truth[each.specimen].healthy]
    sound = [each for each in results if truth[each.specimen].healthy]
    verdicts = Counter(each.verdict for each in results)
    seeds = sorted({each.seed for each in results})
    right, acceptable = verdicts["right"], verdicts["acceptable"]
    lines = [
        f"# {_TITLES[regime]}",
        "",
        (
            f"{_ABOUT[regime]} Recorded through `holter run` with torch {version('torch')}, seeds"
            f" {', '.join(map(str, seeds))}"
            + (f", by {by}; judged by the rules of the present code." if by else ".")
        ),
        "",
        (
            f"- faults: {len({each.specimen for each in faults})} x {len(seeds)} seeds; leading"
            f" cause right {_share(right, len(faults))}, right or acceptable"
            f" {_share(right + acceptable, len(faults))}"
        ),
        (
            f"- healthy runs: {len({each.specimen for each in sound})} x {len(seeds)} seeds; false"
            f" alarms (certain or likely) {_share(verdicts['alarm'], len(sound))}, hints only"
            f" {_share(verdicts['hint'], len(sound))}"
        ),
        *_delays(faults, truth),
        "",
        (
            "These are in-sample figures: the rules were written with these faults at hand. What"
            " to expect on unseen faults: [blind rounds](accuracy.md#blind-rounds)."
        ),
        "",
        *(_blind_rounds() if regime is Regime.WHOLE else ()),
        "## Missed faults",
        "",
        "| fault | true cause | seeds | reported instead |",
        "|---|---|---|---|",
        *_grouped((each for each in faults if each.verdict == "missed"), truth),
        "",
        "## Findings on healthy runs",
        "",
        "| run | seeds | findings |",
        "|---|---|---|",
        *_alarms(each for each in sound if each.verdict != "clear"),
        "",
        "## Rule by rule",
        "",
        (
            "A finding is true if its rule is the cause, an accepted alternative, or a consequence"
            " of the cause (`diagnosis/causes.py`). On a healthy run every finding is false."
            " `beside` counts the other findings on faulty runs."
        ),
        "",
        "| rule | faults it should name | names | leads | true | beside | false |",
        "|---|--:|--:|--:|--:|--:|--:|",
        *_rules(results, truth),
        "",
        "| confidence | true | beside | false | precision |",
        "|---|--:|--:|--:|--:|",
        *_confidences(results, truth),
        "",
        "## Exceptions",
        "",
        (
            "An exception is a named reason not to report a rule whose condition holds. `no-damage`"
            " means that the training learned nevertheless. An exception that withholds a finding"
            " on a faulty run is not necessarily wrong: another finding may be the cause."
        ),
        "",
        "| rule | exception | healthy runs | faulty runs | example |",
        "|---|---|--:|--:|---|",
        *_exceptions(results, truth),
        "",
        "## Every fault",
        "",
        "| fault | mistake | cause | leading cause reported | detected by step |",
        "|---|---|---|---|--:|",
        *_every(faults, truth),
        "",
    ]
    return "\n".join(lines)


def _blind_rounds() -> list[str]:
    """The figures of blind rounds at first sight, which no later measurement replaces."""
    rounds = json.loads(BLIND.read_text())
    rows = [
        f"| {name} | {_SUBJECTS.get(name, '')} | {how} | {figures['date']} |"
        f" {' | '.join(figures[key] for key in _BLIND)} |"
        for name, commands in rounds.items()
        for how, figures in commands.items()
    ]
    sums = " | ".join(_sum(each["run"][key] for each in rounds.values()) for key in _BLIND)
    return [
        "## Blind rounds",
        "",
        (
            "Scripts by authors who had not seen holter (`zoo/blind`). Each round was measured"
            " once, before anything was changed for it; the figures are not updated later. Which"
            " rules agree with an author's description of the fault was decided before the"
            " measurement. After a round, its misses are worked on, and the round is in-sample."
            " `python -m bench.blind ROUND` repeats a round with the present code."
        ),
        "",
        (
            "*Of visibly bad* counts the silent ones among faults whose failure the script's own"
            " metrics show. Rounds differ in how subtle their faults are: most runs of r5, d3 and"
            " r6 learn, with a metric that is wrong or a part of the data or model that is lost."
            " The alarms of r3 (a probe trained beside an encoder in eval mode; a mask of -1e9 in"
            " the outputs), d3 (a fixed baseline computed at each validation) and r6 (a convolution"
            " that reaches into padding; a model that uses a part of the dict it is given) are"
            " fixed since. *sampled* is `--sampled`: expensive signals are sampled from the first"
            " step, as in long runs; it was measured after one repair of the recorder (46632ffb)."
        ),
        "",
        (
            "| round | subjects | command | date | leading cause right | silent | of visibly bad |"
            " alarms (healthy scripts) | hints (healthy scripts) |"
        ),
        "|---|---|---|---|--:|--:|--:|--:|--:|",
        *rows,
        f"| all | | run | | {sums} |",
        "",
    ]


def _sum(shares: Iterable[str]) -> str:
    """The sum of shares such as `24 of 72`."""
    pairs = [share.split(" of ") for share in shares]
    return f"{sum(int(part) for part, _ in pairs)} of {sum(int(whole) for _, whole in pairs)}"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%} ({part} of {whole})" if whole else "- (none)"


def _delays(faults: Sequence[Result], truth: dict[str, Specimen]) -> list[str]:
    seen = [(each.seen, truth[each.specimen].by) for each in faults if each.seen is not None]
    if not seen:
        return []
    delays = sorted(step for step, _ in seen)
    late = sum(by is not None and step > by for step, by in seen)
    return [
        (
            f"- median step of detection: {delays[len(delays) // 2]}; later than expected in"
            f" {_share(late, len(seen))}"
        )
    ]


def _grouped(missed: Iterable[Result], truth: dict[str, Specimen]) -> list[str]:
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for each in missed:
        said = ", ".join(each.findings) or "nothing"
        groups[each.specimen, said].append(each.seed)
    return [
        f"| {name} | {truth[name].cause} | {_seeds(seeds)} | {said} |"
        for (name, said), seeds in groups.items()
    ]


def _alarms(results: Iterable[Result]) -> list[str]:
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for each in results:
        groups[each.specimen, ", ".join(each.findings)].append(each.seed)
    return [f"| {name} | {_seeds(seeds)} | {said} |" for (name, said), seeds in groups.items()]


def _seeds(seeds: Sequence[int]) -> str:
    return ", ".join(map(str, seeds))


def _kind(rule: str, result: Result, truth: dict[str, Specimen]) -> str:
    """Whether a finding is true, false, or beside the point."""
    specimen = truth[result.specimen]
    if specimen.healthy:
        return "false"
    follows = {specimen.cause, *specimen.accepts}
    return "true" if rule in follows | _consequences(follows) else "beside"


def _consequences(causes: Iterable[str]) -> set[str]:
    return reach(effect for cause in causes for effect in explained_by(cause))


def _rules(results: Sequence[Result], truth: dict[str, Specimen]) -> list[str]:
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    for each in results:
        for finding in each.findings:
            rule = finding.partition("/")[0]
            kinds[rule][_kind(rule, each, truth)] += 1
            kinds[rule]["names"] += truth[each.specimen].cause == rule
        kinds[each.leading]["leads"] += truth[each.specimen].cause == each.leading
        kinds[truth[each.specimen].cause]["due"] += 1
    return [
        f"| {rule} | {n['due']} | {n['names']} | {n['leads']} | {n['true']} | {n['beside']} |"
        f" {n['false']} |"
        for rule in all_rules()
        for n in [kinds[rule]]
    ]


def _exceptions(results: Sequence[Result], truth: dict[str, Specimen]) -> list[str]:
    """How often each exception applied, and on what; all that are declared are listed."""
    applied: dict[tuple[str, str], list[str]] = {
        (rule.name, each.name): [] for rule in all_rules().values() for each in rule.exceptions
    }
    for result in results:
        for name in result.exceptions:
            rule, _, reason = name.partition("/")
            applied.setdefault((rule, reason), []).append(result.specimen)
    lines = []
    for (rule, reason), specimens in sorted(applied.items()):
        sound = sum(truth[each].healthy for each in specimens)
        example = min(specimens, default="-", key=lambda each: not truth[each].healthy)
        lines.append(f"| {rule} | {reason} | {sound} | {len(specimens) - sound} | {example} |")
    return lines


def _confidences(results: Sequence[Result], truth: dict[str, Specimen]) -> list[str]:
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    for each in results:
        for finding in each.findings:
            rule, confidence, *_ = finding.split("/")
            kinds[confidence][_kind(rule, each, truth)] += 1
    lines = []
    for confidence in map(str, reversed(Confidence)):
        n = kinds[confidence]
        precision = _share(n["true"], n["true"] + n["beside"] + n["false"])
        lines.append(f"| {confidence} | {n['true']} | {n['beside']} | {n['false']} | {precision} |")
    return lines


def _every(faults: Sequence[Result], truth: dict[str, Specimen]) -> list[str]:
    lines = []
    for name in dict.fromkeys(each.specimen for each in faults):
        own = [each for each in faults if each.specimen == name]
        said = ", ".join(dict.fromkeys(each.leading or "nothing" for each in own))
        seen = sorted(each.seen for each in own if each.seen is not None)
        fault = truth[name]
        lines.append(
            f"| {name} | {fault.why} | {fault.cause} | {said} | {seen[-1] if seen else '-'} |"
        )
    return lines


def difference(results: Sequence[Result], regime: Regime) -> str:
    """How findings differ from the committed table."""
    table = TABLES[regime]
    if not table.exists():
        return "there is no committed table yet: --write makes one"
    before = {(each["specimen"], each["seed"]): each for each in json.loads(table.read_text())}
    lines = []
    for each in results:
        old = before.get((each.specimen, each.seed))
        if old is None:
            lines.append(f"  {each.specimen} {each.seed}: new, {each.verdict} {[*each.findings]}")
        elif sorted(old["findings"]) != sorted(each.findings) or old["leading"] != each.leading:
            lines.append(
                f"  {each.specimen} {each.seed}: {old['verdict']} {old['findings']} ->"
                f" {each.verdict} {[*each.findings]}"
            )
    return "\n".join(["changes against the committed table:", *(lines or ["  none"])])


if __name__ == "__main__":
    sys.exit(main())
