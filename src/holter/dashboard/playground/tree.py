"""The diagnosis tree: questions in the order in which an engineer asks them, ending at rules."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from holter.diagnosis.engine import all_rules

ROOT = "start"


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: where it leads, another question or the rules that look for the cause."""

    text: str
    to: str = ""
    rules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """A question, how to find its answer, and the command that answers it."""

    text: str
    how: str
    replies: tuple[Reply, ...]
    command: str = ""


def _leaf(text: str, *rules: str) -> Reply:
    return Reply(text, rules=rules)


TREE: Mapping[str, Question] = MappingProxyType(
    {
        ROOT: Question(
            "What do you see?",
            "Look at the training loss and the validation loss over the whole run.",
            (
                Reply("The training loss does not fall", "flat"),
                Reply("It fell, then stopped early with little learned", "plateau"),
                Reply("The loss becomes NaN or infinite", "nonfinite"),
                Reply("The loss spikes, oscillates or rises", "unstable"),
                Reply("Training is fine, validation is not", "validation"),
                Reply("Both look too good", "leak"),
                Reply("It learns, but slowly", "slow"),
                Reply("It failed after a resume", "resume"),
            ),
            "holter run train.py",
        ),
        "flat": Question(
            "Can the model memorise one small batch?",
            "Train on the same 8 samples, without augmentation, until the loss is near zero.",
            (
                Reply("Yes, it memorises it", "data"),
                Reply("No, the loss stays where it is", "weights"),
            ),
            "holter try overfit-batch train.py",
        ),
        "data": Question(
            "Model and step work. What is different about the real data?",
            "Look at one batch as the model receives it: shapes, ranges, labels, order.",
            (
                _leaf(
                    "Labels do not belong to their inputs",
                    "unrelated-labels",
                    "loss-accuracy-parting",
                ),
                _leaf("Each batch has one class only", "sorted-batches"),
                _leaf("Inputs or targets are huge or tiny", "unscaled-inputs", "unscaled-targets"),
                _leaf("One class dominates", "imbalanced-classes", "constant-labels"),
                _leaf("The same few batches repeat", "repeated-batches"),
                _leaf("Some columns are constant", "constant-features"),
            ),
            "holter try data train.py",
        ),
        "weights": Question(
            "Do the weights change from step to step?",
            "Compare a parameter before and after optimizer.step().",
            (
                Reply("No, not at all", "motionless"),
                Reply("Yes", "gradients"),
            ),
            "holter check --all",
        ),
        "motionless": Question(
            "Why do the weights not change?",
            "Look at which parameters the optimizer holds, at their gradients and at the rate.",
            (
                _leaf(
                    "The optimizer holds other parameters",
                    "parameters-outside-model",
                    "parameters-outside-optimizer",
                ),
                _leaf("No gradient reaches them", "unreached-parameters", "all-zero-gradients"),
                _leaf(
                    "The optimizer never steps, or before backward",
                    "unapplied-gradients",
                    "step-without-backward",
                ),
                _leaf(
                    "The learning rate is zero",
                    "unusable-learning-rate",
                    "rushed-schedule",
                    "decayed-learning-rate",
                ),
                _leaf("Updates are lost to rounding", "rounded-away-updates", "large-epsilon"),
                _leaf("The scaler skips the steps", "skipped-steps", "collapsing-loss-scale"),
            ),
        ),
        "gradients": Question(
            "How large are the gradients, from the first layer to the last?",
            "Print p.grad.norm() of each layer after one backward; the simulator shows examples.",
            (
                _leaf(
                    "They shrink towards the first layers",
                    "vanishing-gradients",
                    "fading-activations",
                ),
                _leaf(
                    "They grow by orders of magnitude", "exploding-gradients", "growing-activations"
                ),
                _leaf("Exactly zero in some layers", "dead-units", "dead-gradients"),
                _leaf("The activations are saturated", "saturated-units"),
                _leaf("One layer has nearly all of it", "dominating-gradient", "identical-rows"),
                Reply("They look normal", "head"),
            ),
            "holter run train.py",
        ),
        "head": Question(
            "Do the outputs fit the loss function?",
            "Print the shapes and ranges of the loss inputs.",
            (
                _leaf("Softmax before cross-entropy", "doubled-softmax", "narrow-logits"),
                _leaf("Sigmoid before a loss on logits", "doubled-sigmoid"),
                _leaf(
                    "Softmax over a single unit or over the batch",
                    "single-class-softmax",
                    "batch-axis-softmax",
                ),
                _leaf("Shapes differ and broadcast", "broadcast-loss"),
                _leaf("NLL without log-probabilities", "unnormalised-nll"),
                _leaf("The outputs cannot reach the targets", "limited-outputs"),
                _leaf("The outputs ignore the inputs", "ignored-inputs", "training-in-eval-mode"),
                Reply("All of that is right", "rate"),
            ),
            "holter try preflight train.py",
        ),
        "rate": Question(
            "Which learning rate lowers the loss fastest?",
            "Raise the rate at every step until the loss diverges, and compare.",
            (
                _leaf("One far from mine", "unsuitable-learning-rate", "missing-warmup"),
                _leaf("None: updates are tiny at every rate", "tiny-updates", "constant-clipping"),
                _leaf("Mine", "unexplained-failure", "unfittable-batch"),
            ),
            "holter try lr-range train.py",
        ),
        "plateau": Question(
            "What happens to the learning rate at the plateau?",
            "Draw the learning rate over the loss curve.",
            (
                _leaf("It has decayed to almost nothing", "decayed-learning-rate"),
                _leaf(
                    "The schedule runs too fast or too slow", "rushed-schedule", "stalled-schedule"
                ),
                _leaf("Clipping leaves little of each step", "misplaced-clip-threshold"),
                _leaf("It is as planned; the loss is near guessing", "loss-at-constant-predictor"),
                _leaf("It is as planned; one loss term wins", "outweighed-term"),
                _leaf("It is as planned; the model is small or stopped early", "underfitting"),
                _leaf("Weights shrink", "collapsed-weights", "decayed-norms-and-biases"),
            ),
            "holter check",
        ),
        "nonfinite": Question(
            "What became non-finite first?",
            "The black box keeps the last steps: a replay names operation, line and sample.",
            (
                _leaf("The inputs", "nonfinite-inputs", "nonfinite-samples"),
                _leaf("A log or square root of zero, or a division by zero", "singular-operations"),
                _leaf("A batch without a target", "empty-targets", "poisonous-batch"),
                _leaf("Half precision overflowed", "overflow-headroom", "collapsing-loss-scale"),
                Reply("The loss grew before that", "unstable"),
                _leaf("I do not know", "nonfinite-birth", "hidden-nonfinite"),
            ),
            "holter try replay RUN",
        ),
        "unstable": Question(
            "When does it begin?",
            "Look at gradient norm and relative update around the first spike.",
            (
                _leaf(
                    "With the first steps",
                    "huge-updates",
                    "summed-loss",
                    "large-initial-loss",
                    "missing-warmup",
                ),
                _leaf(
                    "Gradients grow over time",
                    "exploding-gradients",
                    "exploding-weights",
                    "growing-attention-logits",
                ),
                _leaf(
                    "Gradients add up",
                    "uncleared-gradients",
                    "repeated-backward",
                    "undivided-accumulation",
                ),
                _leaf("At single batches", "loss-spike", "poisonous-batch"),
                _leaf("It oscillates all the time", "unstable-curvature", "oscillating-loss"),
                _leaf("Clipping is on but has no effect", "idle-clipping", "late-clipping"),
                _leaf("The loss falls without bound, below zero", "unbounded-loss"),
            ),
            "holter try sharpness train.py",
        ),
        "validation": Question(
            "How does the validation loss differ?",
            "Compare both curves on one axis, and the loss of one batch in both modes.",
            (
                _leaf("It falls, then rises", "overfitting"),
                _leaf(
                    "Bad from the start, never better than guessing",
                    "validation-mismatch",
                    "mismatched-validation-inputs",
                ),
                _leaf(
                    "Bad in eval mode even on training data",
                    "eval-mode-gap",
                    "tiny-batch-norm",
                    "mixed-samples",
                ),
                _leaf(
                    "It jumps from pass to pass",
                    "erratic-validation",
                    "validation-in-train-mode",
                    "augmented-validation",
                ),
                _leaf("It never changes", "constant-validation"),
                _leaf("The logged loss is not the loss", "misreported-loss"),
            ),
            "holter try eval-gap train.py",
        ),
        "leak": Question(
            "How could the answer have leaked?",
            "Look for the target among the inputs, and for shared samples.",
            (
                _leaf("Validation samples are in the training set", "overlapping-splits"),
                _leaf("Validation shares groups or times with training", "related-splits"),
                _leaf("A column gives the target away", "leaking-features", "targets-equal-inputs"),
                _leaf("The model sees the future", "leaking-future"),
                _leaf("Padding counts", "leaking-padding"),
                _leaf(
                    "Validation is better than training",
                    "validation-better-than-training",
                    "duplicate-samples",
                ),
            ),
            "holter try preflight train.py",
        ),
        "slow": Question(
            "What limits each step?",
            "Compare the relative update (healthy: about 0.1 % per step) and the schedule.",
            (
                _leaf("Relative updates are tiny", "tiny-updates", "large-epsilon"),
                _leaf("Clipping cuts every step", "constant-clipping", "misplaced-clip-threshold"),
                _leaf("The batch is very large", "inefficient-batch-size"),
                _leaf("The optimizer state is reset", "reset-optimizer-state"),
                _leaf("Every epoch has the same order", "repeated-order", "identical-augmentation"),
            ),
            "holter try batch-size train.py",
        ),
        "resume": Question(
            "What was restored?",
            "Weights, optimizer, schedule, scaler and random state all belong to a checkpoint.",
            (
                _leaf("Only the weights", "partial-resume"),
                _leaf("The schedule starts from the beginning", "restarted-schedule"),
                _leaf("Scheduler or scaler were not saved", "incomplete-checkpoint"),
                _leaf("Everything", "changed-accumulation", "irreproducible-failure"),
            ),
            "holter try resume train.py",
        ),
    }
)


def document() -> dict[str, Any]:
    """Return the tree with what the page shows of each rule at its ends."""
    rules = all_rules()
    named = {
        name for question in TREE.values() for reply in question.replies for name in reply.rules
    }
    return {
        "root": ROOT,
        "questions": {
            key: {
                "text": question.text,
                "how": question.how,
                "command": question.command,
                "replies": [
                    {"text": reply.text, "to": reply.to, "rules": list(reply.rules)}
                    for reply in question.replies
                ],
            }
            for key, question in TREE.items()
        },
        "rules": {
            name: {
                "title": rules[name].title,
                "severity": str(rules[name].severity),
                "fix": " ".join(rules[name].section("What to do").split()),
                "confirm": list(rules[name].experiments),
            }
            for name in sorted(named)
        },
    }
