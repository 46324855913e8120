"""Families of symptoms: what explains one member explains them all."""

from collections.abc import Mapping
from types import MappingProxyType

FAMILIES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "no-learning": (
            "beaten-by-baseline",
            "collapsed-embeddings",
            "collapsed-outputs",
            "flat-loss",
            "imbalance-collapse",
            "loss-at-constant-predictor",
            "loss-plateau",
            "underfitting",
            "unexplained-failure",
            "unfittable-batch",
            "unimproved-metrics",  # what keeps a model from learning keeps its metrics low, too
        ),
        "non-finite": ("nonfinite-gradient", "nonfinite-loss", "nonfinite-weights"),
        "unstable": (
            "diverging-loss",
            "heavy-tailed-weights",
            "loss-spike",
            "oscillating-gradients",
            "oscillating-loss",
        ),
        "too-large": (
            "constant-clipping",
            "exploding-gradients",
            "exploding-weights",
            "huge-updates",
            "large-initial-loss",
        ),
        "growing-outputs": (
            "drifting-output-logits",
            "growing-attention-logits",
            "growing-residuals",
        ),
        "motionless": (
            "large-epsilon",
            "motionless-weights",
            "rounded-away-updates",
            "tiny-updates",
        ),
        "fading": (
            "all-zero-gradients",
            "dead-gradients",
            "dead-units",
            "dominating-gradient",
            "fading-activations",
            "saturated-units",
            "vanishing-gradients",
        ),
        "half-precision": (
            "collapsing-loss-scale",
            "hidden-nonfinite",
            "overflow-headroom",
            "skipped-steps",
        ),
        "bad-validation": (
            "beaten-by-baseline",
            "constant-validation",
            "contradicted-validation",  # what the weights do is not what the script measures
            "erratic-validation",
            "loss-accuracy-parting",
            "overfitting",
            "unimproved-metrics",
            "validation-mismatch",
        ),
    }
)
