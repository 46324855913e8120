"""The preflight list: what to look at before a long training, a line each, answered by rules."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from holter.diagnosis.engine import Checkup, all_rules
from holter.record import Run
from holter.record.findings import Confidence, Finding, Severity, Verdict
from holter.record.signals import LR, Signal


class Status(StrEnum):
    """How a check came out. `WARN` is a hint, or a rule that is not measured yet."""

    FAIL = "FAIL"
    WARN = "WARN"
    PASS = "PASS"  # noqa: S105  (no password)
    NOT_APPLICABLE = "n/a"


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the list: a question, and the rules that answer it, the most telling first."""

    name: str
    question: str
    rules: tuple[str, ...]
    records: Signal | None = None  # it is enough that this was recorded


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
    Check("data-scale", "Are inputs and targets scaled?", ("unscaled-inputs", "unscaled-targets")),
    Check(
        "data-order",
        "Are batches mixed, and each another one?",
        ("sorted-batches", "repeated-batches"),
    ),
    Check("splits", "Do training and validation share no sample?", ("overlapping-splits",)),
    Check(
        "preprocessing",
        "Is validation prepared like training?",
        ("mismatched-validation-inputs", "validation-mismatch"),
    ),
    Check(
        "augmentation",
        "Is augmentation random in training only?",
        ("augmented-validation", "identical-augmentation"),
    ),
    Check(
        "features",
        "Do features tell something, but not the answer?",
        ("leaking-features", "constant-features"),
    ),
    Check(
        "labels",
        "Are labels plausible?",
        (
            *("out-of-range-labels", "improper-probabilities"),
            *("imbalanced-classes", "duplicate-samples"),
        ),
    ),
    Check("targets", "Is the target something to predict?", ("targets-equal-inputs",)),
    Check("shapes", "Do outputs and targets have one shape?", ("broadcast-loss",)),
    Check(
        "loss-and-head",
        "Do loss and last layer fit together?",
        (
            *("doubled-softmax", "doubled-sigmoid", "unnormalised-nll", "single-class-softmax"),
            *("limited-outputs", "unbounded-loss", "summed-loss"),
        ),
    ),
    Check("initial-loss", "Is the first loss that of a guess?", ("large-initial-loss",)),
    Check(
        "initialisation",
        "Do activations and gradients keep their size with depth?",
        (
            *("identical-rows", "fading-activations", "growing-activations"),
            *("vanishing-gradients", "exploding-gradients", "saturated-units", "dead-units"),
            "growing-attention-logits",
        ),
    ),
    Check("samples", "Does each sample stand for itself?", ("mixed-samples",)),
    Check("future", "Does the model not see the future?", ("leaking-future",)),
    Check("padding", "Does padding change nothing?", ("leaking-padding",)),
    Check("inputs-matter", "Does the output depend on the input?", ("ignored-inputs",)),
    Check("labels-matter", "Are true labels easier to learn than noise?", ("unrelated-labels",)),
    Check(
        "gradients",
        "Does every parameter get a gradient, and move?",
        (
            *("parameters-outside-optimizer", "parameters-outside-model", "unreached-parameters"),
            *("all-zero-gradients", "dead-gradients", "motionless-weights"),
        ),
    ),
    Check(
        "finite",
        "Do losses, gradients and weights stay finite?",
        ("nonfinite-loss", "nonfinite-gradient", "nonfinite-weights", "hidden-nonfinite"),
    ),
    Check(
        "loop",
        "Are clearing, backward, clipping and steps in order?",
        (
            *("uncleared-gradients", "step-without-backward", "repeated-backward"),
            *("late-clipping", "scaled-clipping", "reset-optimizer-state"),
            *("scheduler-before-optimizer", "misreported-loss"),
        ),
    ),
    Check(
        "mode",
        "Is training in train mode, validation in eval mode?",
        ("training-in-eval-mode", "validation-in-train-mode", "validation-with-gradients"),
    ),
    Check(
        "eval-gap",
        "Is the model the same in train and eval mode?",
        ("eval-mode-gap", "tiny-batch-norm"),
    ),
    Check(
        "accumulation",
        "Do small batches add up to a large one?",
        ("undivided-accumulation", "uneven-accumulation"),
    ),
    Check(
        "loss-falls",
        "Does the loss fall in the first steps?",
        ("diverging-loss", "loss-at-constant-predictor", "flat-loss"),
    ),
    Check("overfit", "Can the model learn a single batch by heart?", ("unfittable-batch",)),
    Check(
        "learning-rate",
        "Are updates of a sensible size?",
        (
            *("huge-updates", "tiny-updates", "unusable-learning-rate", "missing-warmup"),
            *("large-epsilon", "rounded-away-updates", "collapsed-weights", "exploding-weights"),
            *("unsuitable-learning-rate", "unstable-curvature"),
        ),
    ),
    Check(
        "clipping",
        "Does clipping take hold of outliers only?",
        ("constant-clipping", "idle-clipping", "misplaced-clip-threshold"),
    ),
    Check(
        "schedule",
        "Does the schedule count what it is stepped by?",
        ("rushed-schedule", "stalled-schedule", "decayed-learning-rate", "restarted-schedule"),
    ),
    Check(
        "mixed-precision",
        "Does the loss scale hold?",
        ("collapsing-loss-scale", "skipped-steps", "overflow-headroom"),
    ),
    Check(
        "checkpoint",
        "Does the checkpoint hold all that resuming needs?",
        ("incomplete-checkpoint",),
    ),
    Check("learning-rate-logged", "Is the learning rate on record?", (), records=LR),
)


def rows(run: Run, checkup: Checkup, checks: Sequence[Check] = CHECKS) -> tuple[Row, ...]:
    """Each check that rules were asked of, with what they say; findings on no list come last."""
    verdicts: list[Verdict] = [*checkup.findings, *checkup.normal]
    verdicts += [*checkup.clear, *checkup.not_examined]
    asked = {each.rule for each in verdicts}
    listed = {rule for check in CHECKS for rule in check.rules}
    others = dict.fromkeys(each.rule for each in checkup.findings if each.rule not in listed)
    beside = [Check("other", "Is there anything else?", (rule,)) for rule in others]
    return tuple(_row(run, checkup, c) for c in (*checks, *beside) if _is_asked(c, asked))


def _is_asked(check: Check, asked: set[str]) -> bool:
    if check.records is None:
        return bool(asked & set(check.rules))
    rules = all_rules()
    return any(check.records in rules[name].needs for name in asked if name in rules)


def _row(run: Run, checkup: Checkup, check: Check) -> Row:
    if check.records is not None:
        return _recorded(run, check, check.records)
    found = [each for each in checkup.findings if each.rule in check.rules]
    if found:
        failing = [each for each in found if _fails(each)]
        worst = (failing or found)[0]
        status = Status.FAIL if failing else Status.WARN
        beside = dict.fromkeys(each.rule for each in found if each.rule != worst.rule)
        also = f" (also {', '.join(beside)})" if beside else ""
        return Row(check, status, f"{worst.rule}{also}: {worst.summary}", worst)
    normal = {each.rule: each.summary for each in checkup.normal}
    clear = {each.rule: each.because for each in checkup.clear if each.because}
    for rule in check.rules:
        if rule in normal or rule in clear:
            return Row(check, Status.PASS, normal.get(rule) or clear[rule])
    if any(each.rule in check.rules for each in checkup.clear):
        return Row(check, Status.PASS, "nothing was found")
    reasons = {each.rule: each for each in checkup.not_examined}
    known = [reasons[rule] for rule in check.rules if rule in reasons]
    # What an experiment says of itself tells more than a signal that is missing.
    told = [each for each in known if not each.because.startswith("no ")] or known
    return Row(check, Status.NOT_APPLICABLE, told[0].because if told else "not examined")


def _recorded(run: Run, check: Check, signal: Signal) -> Row:
    if signal not in run:
        return Row(check, Status.NOT_APPLICABLE, f"no {signal.name} in this run")
    first = next(iter(run[signal].values()))
    return Row(check, Status.PASS, f"{signal.name} {first.values[0]:.3g} at step {first.first}")


def _fails(finding: Finding) -> bool:
    return (
        not finding.preview
        and finding.severity >= Severity.WARNING
        and finding.confidence >= Confidence.LIKELY
    )
