"""The preflight checklist: questions to ask before a long training, answered by rules."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from holter.diagnosis.absent import absent
from holter.diagnosis.engine import Checkup, all_rules
from holter.record import Run
from holter.record.findings import Confidence, Finding, Severity, Verdict
from holter.record.signals import LR, Signal


class Status(StrEnum):
    """The result of a check; `WARN` is a hint, or a finding of a preview rule.

    `ERROR` is an internal error: the check has no result.
    """

    ERROR = "ERROR"
    FAIL = "FAIL"
    WARN = "WARN"
    PASS = "PASS"  # noqa: S105  (no password)
    NOT_APPLICABLE = "n/a"


@dataclass(frozen=True, slots=True)
class Check:
    """A question, and the rules that answer it, the most informative first."""

    name: str
    question: str
    rules: tuple[str, ...]
    records: Signal | None = None  # passes if this signal was recorded


@dataclass(frozen=True, slots=True)
class Row:
    """A check with its answer."""

    check: Check
    status: Status
    says: str
    finding: Finding | None = None


CHECKS = (
    Check(
        "data-finite",
        "Are inputs and targets finite?",
        ("nonfinite-inputs", "nonfinite-samples", "empty-targets"),
    ),
    Check(
        "data-scale",
        "Are inputs and targets on a sensible scale?",
        ("unscaled-inputs", "unscaled-targets"),
    ),
    Check(
        "data-order",
        "Are batches shuffled and distinct?",
        (
            *("sorted-batches", "repeated-batches", "few-distinct-samples", "collapsed-batch"),
            *("misused-sampler-weights", "duplicated-workers", "drifting-inputs"),
            "identical-noise",
        ),
    ),
    Check(
        "splits",
        "Are training and validation disjoint, and do they have the same classes?",
        ("overlapping-splits", "related-splits", "unseen-classes"),
    ),
    Check(
        "preprocessing",
        "Is validation data preprocessed like training data?",
        ("mismatched-validation-inputs", "inconsistent-columns", "validation-mismatch"),
    ),
    Check(
        "augmentation",
        "Is augmentation random, applied in training only, and to inputs and targets alike?",
        ("augmented-validation", "identical-augmentation", "torn-pairs"),
    ),
    Check(
        "features",
        "Are features informative without leaking the target?",
        ("leaking-features", "constant-features", "placeholder-values"),
    ),
    Check(
        "labels",
        "Are labels plausible?",
        (
            *("out-of-range-labels", "improper-probabilities"),
            *("imbalanced-classes", "duplicate-samples"),
        ),
    ),
    Check("targets", "Do targets differ from inputs?", ("targets-equal-inputs",)),
    Check("shapes", "Do outputs and targets have the same shape?", ("broadcast-loss",)),
    Check(
        "loss-and-head",
        "Does the last layer fit the loss function?",
        (
            *("doubled-softmax", "doubled-sigmoid", "unnormalised-nll", "single-class-softmax"),
            *("limited-outputs", "limited-generator", "unbounded-loss", "summed-loss"),
            "exclusive-probabilities",
        ),
    ),
    Check("initial-loss", "Is the initial loss at the level of guessing?", ("large-initial-loss",)),
    Check(
        "initialisation",
        "Do activations and gradients keep their scale with depth?",
        (
            *("identical-rows", "fading-activations", "growing-activations"),
            *("vanishing-gradients", "exploding-gradients", "saturated-units", "dead-units"),
            *("growing-attention-logits", "oversized-weights"),
        ),
    ),
    Check("samples", "Is each output independent of the other samples?", ("mixed-samples",)),
    Check("future", "Are predictions independent of future tokens?", ("leaking-future",)),
    Check("padding", "Are outputs independent of padding?", ("leaking-padding",)),
    Check(
        "inputs-matter",
        "Does the output depend on every part of the input?",
        ("ignored-inputs", "unused-inputs"),
    ),
    Check(
        "alignment",
        "Do predictions and targets belong together?",
        ("scrambled-predictions", "misordered-targets", "shifted-targets", "mispaired-batches"),
    ),
    Check(
        "labels-matter",
        "Are true labels easier to learn than shuffled ones?",
        ("unrelated-labels",),
    ),
    Check(
        "gradients",
        "Does every parameter get gradients and change?",
        (
            *("parameters-outside-optimizer", "parameters-outside-model", "unreached-parameters"),
            *("all-zero-gradients", "dead-gradients", "motionless-weights", "frozen-weights"),
        ),
    ),
    Check(
        "finite",
        "Do losses, gradients and weights stay finite?",
        ("nonfinite-loss", "nonfinite-gradient", "nonfinite-weights", "hidden-nonfinite"),
    ),
    Check(
        "loop",
        "Are zero_grad, backward, clipping and step in order?",
        (
            *("uncleared-gradients", "step-without-backward", "repeated-backward"),
            *("late-clipping", "scaled-clipping", "reset-optimizer-state"),
            *("scheduler-before-optimizer", "misreported-loss"),
        ),
    ),
    Check(
        "mode",
        "Is training in train mode and validation in eval mode?",
        ("training-in-eval-mode", "validation-in-train-mode", "validation-with-gradients"),
    ),
    Check(
        "eval-gap",
        "Does the model agree in train and eval mode?",
        ("eval-mode-gap", "tiny-batch-norm", "dropout-in-evaluation"),
    ),
    Check(
        "accumulation",
        "Is gradient accumulation equivalent to one large batch?",
        ("undivided-accumulation", "uneven-accumulation"),
    ),
    Check(
        "loss-falls",
        "Does the loss fall in the first steps?",
        ("diverging-loss", "loss-at-constant-predictor", "flat-loss"),
    ),
    Check("overfit", "Can the model memorise one batch?", ("unfittable-batch",)),
    Check(
        "learning-rate",
        "Is the learning rate sensible?",
        (
            *("huge-updates", "tiny-updates", "unusable-learning-rate", "missing-warmup"),
            *("large-epsilon", "rounded-away-updates", "collapsed-weights", "exploding-weights"),
            *("unsuitable-learning-rate", "unstable-curvature", "swapped-betas"),
        ),
    ),
    Check(
        "clipping",
        "Does clipping affect only outliers?",
        ("constant-clipping", "idle-clipping", "misplaced-clip-threshold"),
    ),
    Check(
        "schedule",
        "Is the schedule stepped as often as it expects?",
        ("rushed-schedule", "stalled-schedule", "decayed-learning-rate", "restarted-schedule"),
    ),
    Check(
        "mixed-precision",
        "Is the loss scale stable?",
        ("collapsing-loss-scale", "skipped-steps", "overflow-headroom"),
    ),
    Check(
        "checkpoint",
        "Does the checkpoint hold everything needed to resume?",
        ("incomplete-checkpoint",),
    ),
    Check("state-dicts", "Do the state_dicts hold all state of the training?", ("unsaved-state",)),
    Check("learning-rate-logged", "Is the learning rate recorded?", (), records=LR),
)


def rows(run: Run, checkup: Checkup, checks: Sequence[Check] = CHECKS) -> tuple[Row, ...]:
    """Answer every check that has a verdict; unlisted findings and internal errors come last."""
    verdicts: list[Verdict] = [*checkup.findings, *checkup.normal]
    verdicts += [*checkup.clear, *checkup.not_examined]
    asked = {verdict.rule for verdict in verdicts}
    listed = {rule for check in CHECKS for rule in check.rules}
    others = dict.fromkeys(f.rule for f in checkup.findings if f.rule not in listed)
    beside = [Check("other", "Are there other problems?", (rule,)) for rule in others]
    answered = [_row(run, checkup, c) for c in (*checks, *beside) if _is_asked(c, asked)]
    told = {row.says for row in answered}
    failed = Check("internal", "Did every experiment run to its end?", ())
    answered += [Row(failed, Status.ERROR, each) for each in checkup.failures if each not in told]
    return tuple(answered)


def exit_code(
    checkup: Checkup, fail_on: Severity | None, answered: Sequence[Row] | None = None
) -> int:
    """Return 1 if a problem is reported, 2 if something failed inside holter, else 0.

    A checklist (`answered`) reports a problem by FAIL, other reports by a finding of a stable rule
    that is at least as severe as `fail_on`. With None there is no failure.
    """
    if fail_on is None:
        return 0
    if checkup.failures:
        return 2
    if answered is None or fail_on < Severity.ERROR:
        return int(bool(checkup.at_least(fail_on)))
    return int(any(row.status is Status.FAIL for row in answered))


def _is_asked(check: Check, asked: set[str]) -> bool:
    if check.records is None:
        return bool(asked & set(check.rules))
    rules = all_rules()
    return any(check.records in rules[name].needs for name in asked if name in rules)


def _row(run: Run, checkup: Checkup, check: Check) -> Row:
    if check.records is not None:
        return _recorded(run, check, check.records)
    findings = [finding for finding in checkup.findings if finding.rule in check.rules]
    if findings:
        failing = [finding for finding in findings if fails(finding)]
        worst = (failing or findings)[0]
        status = Status.FAIL if failing else Status.WARN
        beside = dict.fromkeys(f.rule for f in findings if f.rule != worst.rule)
        also = f" (also {', '.join(beside)})" if beside else ""
        return Row(check, status, f"{worst.rule}{also}: {worst.summary}", worst)
    for unexamined in checkup.not_examined:
        if unexamined.is_failure and unexamined.rule in check.rules:
            return Row(check, Status.ERROR, unexamined.because)
    normal = {note.rule: note.summary for note in checkup.normal}
    clear = {verdict.rule: verdict.because for verdict in checkup.clear if verdict.because}
    for rule in check.rules:
        if rule in normal or rule in clear:
            return Row(check, Status.PASS, normal.get(rule) or clear[rule])
    if any(verdict.rule in check.rules for verdict in checkup.clear):
        return Row(check, Status.PASS, "no problem found")
    reasons = {verdict.rule: verdict for verdict in checkup.not_examined}
    given = [reasons[rule] for rule in check.rules if rule in reasons]
    # The reason that an experiment gives is more informative than a missing signal.
    best = [verdict for verdict in given if not verdict.lacks] or given
    return Row(check, Status.NOT_APPLICABLE, best[0].because if best else "not examined")


def _recorded(run: Run, check: Check, signal: Signal) -> Row:
    if signal not in run:
        return Row(check, Status.NOT_APPLICABLE, absent(run, (signal.name,)))
    first = next(iter(run[signal].values()))
    return Row(check, Status.PASS, f"{signal.name} {first.values[0]:.3g} at step {first.first}")


def fails(finding: Finding) -> bool:
    """Whether a finding makes a check FAIL; else it is one to look at."""
    return (
        not finding.preview
        and finding.severity >= Severity.WARNING
        and finding.confidence >= Confidence.LIKELY
    )
