"""Simple models on a sample of the training data, beside the network on the same held-out rows."""

from holter.record.signals._signal import Per, Phase, Signal


def _signal(name: str, unit: str, doc: str) -> Signal:
    return Signal(name, Per.TRIAL, Phase.AFTERWARDS, unit, doc)


BASELINE_ROWS = _signal(
    "baseline.rows",
    "rows",
    "Training rows that simple models were fitted to (trial `train`), and held-out rows that they"
    " and the network were scored on (trial `valid`).",
)
BASELINE_SCORE = _signal(
    "baseline.score",
    "",
    "Score on the held-out rows: the share of right answers, or the share of what the best constant"
    " prediction leaves that is explained. Trials: `network`, in eval mode, and `network, training"
    " rows`; the best `constant`; each simple model: `linear`, `neighbours`, `naive Bayes`, `token"
    " table`.",
)
BASELINE_BALANCED = _signal(
    "baseline.balanced",
    "share",
    "Mean recall of the classes on the held-out rows, of the same trials; only of classes.",
)
BASELINE_RANKING = _signal(
    "baseline.ranking",
    "share",
    "Area under the ROC curve on the held-out rows, of the same trials; only of two classes.",
)
BASELINE_CHANCE = _signal(
    "baseline.chance",
    "",
    "Decimal logarithm of the chance that the network's errors are so much larger than those of a"
    " simple model by chance: a paired test on the held-out rows, times the number of simple"
    " models. The trial is the simple model.",
)
BASELINE_LOSS = _signal(
    "baseline.loss",
    "",
    "Mean loss of the network on the batches of held-out rows, in eval mode (trial `network`).",
)
