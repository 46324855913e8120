"""What explains what, by family: symptoms belong to families, causes explain families.

A new symptom goes into one family; every cause that explains the family explains it. A new cause
goes into one line of `CAUSES`.
"""

from collections.abc import Iterable
from functools import cache

from holter.diagnosis.families import FAMILIES

# What is seen in loss curves whatever the cause.
CURVES = ("no-learning", "non-finite", "unstable")
# What the cause of a captured failure explains.
FAILURES = ("non-finite", "unstable", "too-large", "half-precision", "unbounded-loss")

_LEARNING = ("no-learning", "motionless", "fading", "bad-validation")
_SIZE = ("too-large", "growing-outputs", "unstable", "non-finite")

# What the source shows. A measured cause that says the same explains the finding, not its effects.
FROM_SOURCE = frozenset(
    {
        "confused-splits",
        "counted-padding",
        "discarded-results",
        "exhausted-iterators",
        "ineffective-freeze",
        "ineffective-updates",
        "inverted-masks",
        "misassigned-credit",
        "miscounted-metrics",
        "misordered-decoding",
        "misplaced-indices",
        "misplaced-windows",
        "misread-axes",
        "misread-numbers",
        "mistaken-formulas",
        "mistaken-sampling",
        "mistimed-schedule",
        "one-sided-temperature",
        "overwritten-samples",
        "refitted-preprocessing",
        "repeated-seeds",
        "reversed-objective",
        "reversed-selection",
        "rounded-shares",
        "separated-pairs",
        "trivial-targets",
        "stale-records",
        "uncalled-methods",
        "uniform-noise",
        "unopposed-positives",
        "unregistered-layers",
        "unused-parts",
        "wrapped-ids",
    }
)

# Each line: causes, and the families or single rules whose findings follow from them.
CAUSES: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    # what the model is given, and what the loss makes of it
    (
        ("unscaled-inputs", "unscaled-targets", "improper-probabilities"),
        (*_LEARNING, *_SIZE, "half-precision"),
    ),
    (
        ("unscaled-inputs", "identical-rows", "unbounded-loss", "unnormalised-nll"),
        ("growing-activations",),
    ),
    (("unscaled-inputs",), ("dominating-feature",)),
    (("dominating-feature",), (*_LEARNING, *_SIZE, "saturated-units", "unused-inputs")),
    (("unscaled-targets",), ("limited-outputs",)),
    (("improper-probabilities",), ("doubled-sigmoid", "unbounded-loss", "unscaled-inputs")),
    (("summed-loss", "unbounded-loss", "unnormalised-nll"), (*_LEARNING, *_SIZE)),
    (("unbounded-loss",), ("identical-rows",)),
    (("unnormalised-nll", "unnormalised-distributions"), ("unbounded-loss",)),
    (("unnormalised-distributions", "impossible-alignments"), (*_LEARNING, *_SIZE)),
    (("exclusive-probabilities",), ("no-learning", "bad-validation")),
    (("impossible-alignments",), ("fading", "motionless")),
    (("sorted-batches",), (*_LEARNING, *_SIZE, "repeated-order")),
    (
        ("drifting-inputs", "collapsed-batch", "few-distinct-samples", "misused-sampler-weights"),
        (*_LEARNING, *_SIZE, "sorted-batches", "mismatched-validation-inputs", "eval-mode-gap"),
    ),
    (("misused-sampler-weights",), ("few-distinct-samples", "repeated-batches")),
    (("collapsed-batch",), ("validation-better-than-training", "few-distinct-samples")),
    (("duplicated-workers",), ("bad-validation",)),
    (
        ("unrelated-labels",),
        ("no-learning", "bad-validation", "missing-warmup", "independent-labels"),
    ),
    (("independent-labels",), ("no-learning", "bad-validation")),
    (
        ("mispaired-batches", "misaligned-labels", "torn-pairs"),
        ("no-learning", "bad-validation", "unrelated-labels", "independent-labels"),
    ),
    (("aliased-samples",), ("no-learning", "bad-validation", "oscillating-loss")),
    (("nonfinite-samples",), ("nonfinite-inputs",)),
    (
        ("nonfinite-inputs", "empty-targets"),
        (*_SIZE, "half-precision", "no-learning", "motionless", "bad-validation"),
    ),
    # what the source shows; where a measurement says the same, that leads
    (
        ("separated-pairs",),
        ("no-learning", "bad-validation", "unrelated-labels", "independent-labels"),
    ),
    (
        ("mispaired-batches", "misaligned-labels", "torn-pairs"),
        ("separated-pairs",),
    ),
    (
        ("uncalled-methods",),
        (*_LEARNING, *_SIZE, "uncleared-gradients", "step-without-backward", "unapplied-gradients"),
    ),
    (
        ("uncalled-methods",),
        ("stalled-schedule",),
    ),
    (
        ("uncalled-methods",),
        ("training-in-eval-mode", "validation-in-train-mode", "dropout-in-evaluation"),
    ),
    (("discarded-results",), (*_LEARNING, *_SIZE, "unused-inputs", "ignored-inputs")),
    (("discarded-results",), ("unreached-parameters", "unbounded-loss")),
    (
        ("exhausted-iterators",),
        ("no-learning", "motionless", *_SIZE, "idle-clipping", "parameters-outside-optimizer"),
    ),
    (("exhausted-iterators",), ("stale-target-network", "lagging-average")),
    (
        ("unregistered-layers",),
        (*_LEARNING, "parameters-outside-model", "parameters-outside-optimizer"),
    ),
    (("unregistered-layers",), ("unreached-parameters", "incomplete-checkpoint")),
    (("ineffective-freeze",), ("bad-validation", "unstable", "huge-updates")),
    (
        ("ineffective-updates",),
        (*_LEARNING, *_SIZE, "step-without-backward", "unapplied-gradients"),
    ),
    (
        (
            *("late-clipping", "scaled-clipping", "training-in-eval-mode"),
            *("parameters-outside-optimizer", "dropout-in-evaluation", "lasting-freeze"),
        ),
        ("ineffective-updates",),
    ),
    (("stale-records",), ("bad-validation", "worst-checkpoint")),
    (("aliased-checkpoint", "partial-resume"), ("stale-records",)),
    (("inverted-plateau",), ("mistimed-schedule",)),
    (("repeated-order",), ("repeated-seeds",)),
    (
        ("inverted-masks",),
        (*_LEARNING, "leaking-padding", "leaking-future", "unused-inputs", "ignored-inputs"),
    ),
    (("inverted-masks",), ("identical-rows", "unreached-parameters", "non-finite")),
    (
        ("overwritten-samples",),
        (*_LEARNING, "unstable", "identical-rows", "few-distinct-samples", "duplicate-samples"),
    ),
    (("overwritten-samples",), ("unrelated-labels", "independent-labels", "collapsed-batch")),
    (
        ("drifting-inputs", "aliased-samples", "targets-equal-inputs", "constant-labels"),
        ("overwritten-samples",),
    ),
    (
        ("refitted-preprocessing",),
        ("bad-validation", "unseen-classes", "augmented-validation", "eval-mode-gap"),
    ),
    (("inconsistent-columns", "mismatched-validation-inputs"), ("refitted-preprocessing",)),
    (("reversed-selection",), ("no-learning", "bad-validation", "damaging-weight-edits")),
    (("worst-checkpoint", "stale-target-network"), ("reversed-selection",)),
    (
        ("misread-axes",),
        ("no-learning", "bad-validation", "unrelated-labels", "independent-labels"),
    ),
    (
        ("mixed-samples", "misreported-metric", "leaking-future", "scrambled-axes"),
        ("misread-axes",),
    ),
    (("misplaced-indices",), (*_LEARNING, "unrelated-labels", "independent-labels")),
    (("unused-inputs", "ignored-inputs", "unreached-parameters"), ("misplaced-indices",)),
    (
        ("misplaced-windows",),
        ("no-learning", "bad-validation", "leaking-features", "few-distinct-samples"),
    ),
    (("misplaced-windows",), ("repeated-batches", "unrelated-labels")),
    (("targets-equal-inputs", "leaking-future", "shifted-targets"), ("misplaced-windows",)),
    (("uniform-noise",), ("no-learning", "bad-validation", "unstable")),
    (("rounded-shares",), ("no-learning", "motionless", "unstable")),
    (("misread-numbers", "mistaken-formulas"), ("no-learning", "bad-validation", "unstable")),
    (("mistaken-formulas",), ("unbounded-loss", "outweighed-term", "collapsed-embeddings")),
    (("narrow-logits",), ("mistaken-formulas",)),
    (("mistaken-sampling", "trivial-targets"), ("no-learning", "bad-validation", "unstable")),
    (("trivial-targets",), ("collapsed-embeddings", "targets-equal-inputs")),
    (
        ("misassigned-credit", "reversed-objective"),
        (*_LEARNING, *_SIZE, "unbounded-loss", "stale-target-network", "outweighed-term"),
    ),
    (("reversed-objective",), ("collapsed-embeddings", "worst-checkpoint")),
    (("misread-numbers",), ("constant-features", "placeholder-values", "unscaled-inputs")),
    (("mistimed-schedule",), ("no-learning", "motionless")),
    (("rushed-schedule", "stalled-schedule"), ("mistimed-schedule",)),
    (("unusable-learning-rate", "stalled-schedule"), ("rounded-shares",)),
    (
        ("counted-padding",),
        ("no-learning", "bad-validation", "imbalanced-classes", "leaking-padding"),
    ),
    (("one-sided-temperature",), ("bad-validation", "validation-better-than-training")),
    (
        ("repeated-seeds",),
        ("bad-validation", "few-distinct-samples", "repeated-batches", "identical-noise"),
    ),
    (("unused-parts",), ("no-learning", "bad-validation", "unreached-parameters")),
    (("unused-parts",), ("imbalance-collapse", "imbalanced-classes", "outweighed-term")),
    (("wrapped-ids",), ("bad-validation", "no-learning", "few-distinct-samples")),
    (("misordered-decoding", "unopposed-positives"), ("bad-validation", "misreported-metric")),
    (
        ("confused-splits",),
        ("bad-validation", "augmented-validation", "validation-better-than-training"),
    ),
    (("overlapping-splits", "related-splits", "duplicate-samples"), ("confused-splits",)),
    (
        ("miscounted-metrics",),
        ("misreported-metric", "misreported-loss", "loss-accuracy-parting", "unimproved-metrics"),
    ),
    (("miscounted-metrics",), ("validation-mismatch", "constant-validation", "erratic-validation")),
    (("unopposed-positives",), ("constant-labels", "improper-probabilities", "imbalance-collapse")),
    # the model
    (
        ("broadcast-loss", "doubled-sigmoid", "doubled-softmax", "limited-outputs"),
        (*_LEARNING, "oscillating-loss"),
    ),
    (("batch-axis-softmax",), (*_LEARNING, "oscillating-loss", "unnormalised-nll")),
    (("outweighed-term", "inverted-class-weights"), ("no-learning", "bad-validation")),
    (("term-without-gradient", "cancelled-ratio"), (*_LEARNING, "unreached-parameters")),
    (("unused-rows",), ("no-learning", "bad-validation", "identical-rows")),
    (("single-class-softmax", "ignored-inputs"), (*_LEARNING, "unreached-parameters")),
    (("ignored-inputs",), ("unrelated-labels",)),
    (("identical-rows",), (*_LEARNING, "too-large")),
    (("growing-activations",), (*_SIZE, "no-learning", "fading")),
    (("oversized-weights",), ("no-learning", "too-large", "unstable", "bad-validation")),
    (("oversized-weights",), ("non-finite", "fading", "tiny-updates", "growing-attention-logits")),
    (("growing-activations",), ("oversized-weights",)),
    (("fading-activations", "vanishing-gradients", "collapsed-weights"), ("fading", "no-learning")),
    (("fading-activations", "vanishing-gradients", "collapsed-weights"), ("tiny-updates",)),
    (("vanishing-gradients",), ("large-epsilon",)),
    (("saturated-units",), ("vanishing-gradients", "oscillating-loss")),
    (("saturated-units", "dead-units"), ("no-learning", "dead-gradients", "dominating-gradient")),
    (("saturated-units", "dead-units", "dead-gradients"), ("no-learning", "tiny-updates")),
    (("dead-units",), ("all-zero-gradients", "motionless-weights")),
    (("all-zero-gradients",), ("no-learning", "motionless-weights")),
    (("dominating-gradient",), ("no-learning", "tiny-updates", "constant-clipping")),
    (("growing-attention-logits", "growing-residuals", "drifting-output-logits"), ("unstable",)),
    (
        ("growing-attention-logits", "growing-residuals", "drifting-output-logits"),
        ("non-finite", "exploding-gradients", "loss-plateau"),
    ),
    (("growing-residuals",), ("growing-activations", "vanishing-gradients")),
    (("mixed-samples", "unused-inputs"), ("no-learning", "bad-validation")),
    (
        ("scrambled-predictions", "misordered-targets", "shifted-targets"),
        ("no-learning", "bad-validation", "unrelated-labels"),
    ),
    (("tiny-batch-norm",), ("no-learning", "bad-validation", "unstable", "eval-mode-gap")),
    (("tiny-batch-norm", "eval-mode-gap", "dead-units", "saturated-units"), ("unused-inputs",)),
    (("collapsed-weights", "identical-rows", "huge-updates"), ("unused-inputs",)),
    (("eval-mode-gap", "validation-in-train-mode", "dropout-in-evaluation"), ("bad-validation",)),
    (
        ("unset-running-statistics",),
        ("bad-validation", "lagging-average", "eval-mode-gap"),
    ),
    (("dropout-in-evaluation",), ("eval-mode-gap",)),
    (
        ("excessive-dropout",),
        ("no-learning", "bad-validation", "validation-better-than-training"),
    ),
    # the loop and the optimizer
    (("parameters-outside-model",), ("parameters-outside-optimizer",)),
    (
        ("parameters-outside-model", "parameters-outside-optimizer", "unreached-parameters"),
        ("no-learning", "motionless-weights"),
    ),
    # What the model does not hold stays in train mode: its batch norm mixes samples.
    (
        ("parameters-outside-model", "parameters-outside-optimizer"),
        ("unreached-parameters", "mixed-samples"),
    ),
    (
        ("lasting-freeze", "frozen-weights", "discarded-gradients"),
        ("no-learning", "bad-validation"),
    ),
    (
        (
            *("severed-gradients", "maximum-in-loss", "stale-target-network", "scrambled-axes"),
            "reversed-objective",
        ),
        ("no-learning", "bad-validation"),
    ),
    (("unreached-parameters",), ("severed-gradients",)),
    (("motionless-weights",), ("no-learning", "constant-validation")),
    (
        ("step-without-backward",),
        ("no-learning", "all-zero-gradients", "motionless-weights", "uncleared-gradients"),
    ),
    (("step-without-backward",), ("huge-updates", "unstable")),
    (("uncleared-gradients",), ("no-learning", "non-finite", "huge-updates", "unstable")),
    (
        ("repeated-backward", "undivided-accumulation"),
        ("too-large", "unstable", "non-finite", "misreported-loss"),
    ),
    (("training-in-eval-mode",), ("unfittable-batch",)),
    (("late-clipping", "idle-clipping"), ("too-large", "unstable", "non-finite")),
    (("late-clipping",), ("idle-clipping",)),
    (
        ("constant-clipping", "scaled-clipping", "misplaced-clip-threshold"),
        ("no-learning", "motionless"),
    ),
    (("scaled-clipping", "misplaced-clip-threshold"), ("constant-clipping",)),
    (("scaled-clipping",), ("vanishing-gradients",)),
    # the learning rate and its schedule
    (("huge-updates",), ("too-large", "unstable", "non-finite", "no-learning", "fading")),
    (
        ("huge-updates",),
        (
            "drifting-output-logits",
            "growing-attention-logits",
            "tiny-updates",
            "erratic-validation",
        ),
    ),
    (("exploding-weights",), ("unstable", "non-finite", "no-learning", "fading", "tiny-updates")),
    (
        ("exploding-gradients",),
        ("unstable", "non-finite", "no-learning", "fading", "exploding-weights"),
    ),
    (("exploding-gradients",), ("constant-clipping", "erratic-validation", "unrelated-labels")),
    (("unstable-curvature", "unsuitable-learning-rate"), ("too-large", "unstable", "non-finite")),
    (("unstable-curvature", "unsuitable-learning-rate"), ("no-learning", "fading", "tiny-updates")),
    (("missing-warmup",), ("no-learning", "unstable", "fading", "exploding-gradients")),
    (("missing-warmup",), ("growing-attention-logits",)),
    (
        ("restarted-schedule", "reset-optimizer-state", "partial-resume"),
        ("unstable", "huge-updates"),
    ),
    (("partial-resume",), ("erratic-validation", "exploding-gradients", "overfitting")),
    (("lagging-average",), ("bad-validation",)),
    (("aliased-checkpoint",), ("worst-checkpoint",)),
    (
        ("unmatched-checkpoint",),
        ("no-learning", "bad-validation", "unstable", "large-initial-loss", "unrelated-labels"),
    ),
    (
        ("restarted-schedule", "reset-optimizer-state"),
        ("erratic-validation", "exploding-gradients"),
    ),
    (("reset-optimizer-state",), ("no-learning",)),
    (
        ("rushed-schedule", "stalled-schedule"),
        ("no-learning", "motionless", "bad-validation", "unusable-learning-rate"),
    ),
    (("rushed-schedule", "stalled-schedule"), ("oscillating-loss",)),
    (("rushed-schedule", "inverted-plateau"), ("decayed-learning-rate",)),
    (("inverted-plateau",), ("no-learning", "motionless", "constant-validation")),
    (("decayed-learning-rate",), ("no-learning", "motionless", "constant-validation")),
    (("unusable-learning-rate",), ("no-learning", "motionless-weights", "non-finite")),
    (("tiny-updates",), ("no-learning", "constant-validation", "validation-mismatch")),
    (("large-epsilon", "rounded-away-updates"), ("no-learning", "tiny-updates")),
    (("rounded-away-updates",), ("motionless-weights",)),
    (("large-epsilon",), ("validation-mismatch",)),
    (("swapped-betas",), ("too-large", "unstable", "non-finite", "no-learning")),
    (("decayed-norms-and-biases",), ("loss-plateau", "underfitting")),
    # numerics
    (("singular-operations",), ("non-finite", "no-learning", "unstable", "skipped-steps")),
    (
        ("huge-updates", "exploding-gradients", "unscaled-inputs", "nonfinite-inputs"),
        ("singular-operations",),
    ),
    (("empty-targets", "nonfinite-birth"), ("singular-operations",)),
    (
        ("collapsing-loss-scale",),
        ("skipped-steps", "no-learning", "motionless", "fading", "non-finite"),
    ),
    (("skipped-steps",), ("no-learning", "motionless-weights", "nonfinite-gradient")),
    (("overflow-headroom",), ("collapsing-loss-scale", "skipped-steps", "non-finite")),
    (("overflow-headroom",), ("growing-activations",)),
    (
        ("hidden-nonfinite",),
        ("no-learning", "non-finite", "motionless-weights", "fading", "misreported-loss"),
    ),
    (("hidden-nonfinite",), ("diverging-loss", "loss-spike")),
    (
        ("nonfinite-birth", "oversized-steps", "poisonous-batch", "irreproducible-failure"),
        FAILURES,
    ),
    (
        ("changed-accumulation", "changed-settings", "damaging-weight-edits", "swapped-betas"),
        (*FAILURES, "nonfinite-birth", "oversized-steps", "poisonous-batch"),
    ),
    (("nonfinite-birth",), ("poisonous-batch",)),
    (("oversized-steps",), ("nonfinite-birth",)),
    # several processes
    (("unreduced-gradients", "rank-settings-apart"), ("diverged-ranks",)),
    (("unequal-batch-counts",), ("hung-rank", "missing-rank", "rank-settings-apart")),
    (("unsynchronised-batch-norm",), ("tiny-batch-norm",)),
    (("same-data-on-ranks",), ("bad-validation",)),
    (("diverged-ranks", "unreduced-gradients"), (*CURVES, "bad-validation")),
    (("hung-rank", "missing-rank"), ("unexplained-failure",)),
    # an intervention
    (("curable-failure",), (*_LEARNING, *_SIZE, "half-precision", "unbounded-loss")),
    (("weak-learning",), ("no-learning",)),
    # validation and the data behind it
    (("repeated-batches", "mismatched-validation-inputs"), ("bad-validation",)),
    (("inconsistent-columns",), ("bad-validation",)),
    (("augmented-validation",), ("erratic-validation",)),
    (("indistinct-classes", "unseen-classes"), ("bad-validation",)),
    (("validation-mismatch",), ("overfitting", "erratic-validation", "loss-accuracy-parting")),
    (("validation-mismatch",), ("underfitting",)),
    (("constant-validation",), ("validation-mismatch", "contradicted-validation")),
    (
        ("contradicted-validation",),
        ("validation-mismatch", "overfitting", "erratic-validation", "unimproved-metrics"),
    ),
    (
        ("overlapping-splits", "related-splits", "targets-equal-inputs", "drifting-inputs"),
        ("validation-better-than-training",),
    ),
    (("validation-better-than-training",), ("no-learning",)),
    # time and memory
    (("kept-graphs", "growing-memory", "fragmented-memory"), ("out-of-memory",)),
    (("kept-graphs",), ("growing-memory",)),
    # between symptoms: the one that began first
    (("loss-spike", "diverging-loss"), ("unstable", "non-finite", "loss-plateau")),
    (("large-initial-loss",), ("no-learning", "oscillating-loss")),
    (("heavy-tailed-weights",), ("unstable", "loss-at-constant-predictor")),
    (("oscillating-gradients",), ("unstable", "no-learning")),
    (("nonfinite-loss", "nonfinite-gradient", "nonfinite-weights"), ("non-finite",)),
    (("nonfinite-loss",), ("unfittable-batch",)),
    (("unfittable-batch",), ("no-learning", "constant-validation")),
    (("imbalance-collapse",), ("no-learning", "imbalanced-classes")),
    (("loss-at-constant-predictor",), ("flat-loss", "loss-plateau", "underfitting")),
    (("outweighed-term",), ("collapsed-embeddings",)),
    (("collapsed-embeddings", "collapsed-outputs"), ("flat-loss", "loss-plateau")),
    (("loss-accuracy-parting",), ("loss-at-constant-predictor",)),
    (("underfitting",), ("loss-plateau",)),
)


def members(names: Iterable[str]) -> set[str]:
    """These rules, with families replaced by their members."""
    return {rule for name in names for rule in FAMILIES.get(name, (name,))}


@cache
def explained_by(cause: str) -> frozenset[str]:
    """Return the rules whose findings follow directly from those of `cause`."""
    targets = [name for causes, effects in CAUSES if cause in causes for name in effects]
    return frozenset(members(targets) - {cause})


def reach(names: Iterable[str]) -> set[str]:
    """These rules, and every rule whose findings may follow from theirs."""
    reached: set[str] = set()
    frontier = list(names)
    while frontier:
        name = frontier.pop()
        if name not in reached:
            reached.add(name)
            if name not in FROM_SOURCE:
                frontier += explained_by(name)
    return reached
