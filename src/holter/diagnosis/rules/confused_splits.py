"""The source uses training data as held-out data, or held-out data for training."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "evaluated on training": Mistake(
        "`{code}` reports a value computed on training data as `{subject}`",
        "pass the validation data to the evaluation",
    ),
    "held-out as training": Mistake(
        "`{code}` creates the held-out data set with `{subject}`, like the training set",
        "set it to False for held-out data",
        Confidence.HINT,
    ),
    "split twice": Mistake(
        "`{code}` draws a second random split, different from the one that defines the training"
        " data: the splits share samples",
        "split once, or pass the same seed to both: `generator=torch.Generator().manual_seed(0)`",
    ),
    "same seed": Mistake(
        "`{code}` generates `{subject}` from the seed of the training data: it repeats them",
        "give each split its own seed",
    ),
    "shared cache": Mistake(
        "`{code}` caches samples of all data sets in `{subject}` by row number only: one data set"
        " returns samples of another",
        "make the cache an attribute: `self.cache = {{}}` in `__init__`",
    ),
    "threshold of test": Mistake(
        "`{code}` chooses a threshold on the same test data (`{subject}`) that it is applied to",
        "choose it on validation scores: `np.quantile(valid_scores, 0.99)`",
    ),
    "copied before split": Mistake(
        "`{code}` adds copies of rows to `{subject}` before the split: copies of one row end up in"
        " both splits",
        "split first, and copy or augment training rows only",
    ),
    "drawn again": Mistake(
        "`{code}` draws `{subject}` from a different permutation than the training rows: they"
        " share most rows",
        "draw one permutation, and slice it: `order[:n]`, `order[n:]`",
    ),
    "shared rows": Mistake(
        "`{code}` takes rows that are in both splits, {subject}",
        "let the second slice begin where the first one ends: `x[:n]`, `x[n:]`",
    ),
    "test among training": Mistake(
        "`{code}` trains on everything outside the validation split, including all rows of"
        " `{subject}`",
        "exclude both: `train_mask = ~(val_mask | test_mask)`",
    ),
    "windows at random": Mistake(
        "`{code}` splits overlapping windows at random: almost every held-out window shares rows"
        " with training windows",
        "split the series by time, then cut windows within each split",
    ),
    "groups at random": Mistake(
        "`{code}` splits individual rows at random: rows of the same `{subject}` end up in both"
        " splits",
        "split by group: `GroupShuffleSplit`, or shuffle the groups and take all rows of each",
        Confidence.HINT,  # rows of a group may be independent
    ),
    "series at random": Mistake(
        "`{code}` shuffles rows of a time series: the training data contain rows adjacent in time"
        " to each held-out row",
        "split by time: `train_test_split(x, y, shuffle=False)`",
        Confidence.HINT,  # rows may be independent in spite of their lags
    ),
    "held-out edges": Mistake(
        "`{code}` passes messages over all of `{subject}`, including the edges to predict",
        "build the adjacency from the training edges",
    ),
    "all nodes": Mistake(
        "`{code}` trains on all nodes; `{subject}` is never used",
        "index by the mask: `F.cross_entropy(out[train_mask], y[train_mask])`",
    ),
    "chosen on test": Mistake(
        "`{code}` selects the weights by the best `{subject}`: the reported test result is the"
        " best of many",
        "select by the validation metric, and test once at the end",
    ),
    "held-out of training": Mistake(
        "`{code}` uses the wrong split: it receives `{subject}`",
        "pass the split that the name says",
    ),
    "target among inputs": Mistake(
        "`{code}` lists `{subject}`, the target of the model, among the inputs",
        "remove it from the list",
    ),
    "trained on held-out": Mistake(
        "`{code}` trains on `{subject}`",
        "train on the training split only, and evaluate the others without a backward pass",
    ),
    "chosen on training": Mistake(
        "`{code}` selects the weights by `{subject}`, a metric of the training data; the"
        " validation metric of the same loop is not used",
        "compare the validation metric with the best one so far",
        Confidence.HINT,
    ),
    "target hidden": Mistake(
        "`{code}` excludes the items of `{subject}` from the ranking, although these are the ones"
        " to retrieve",
        "exclude only the items of the earlier splits",
    ),
    "negatives know the test": Mistake(
        "`{code}` never draws test items as negatives (`{subject}`): they are the only unseen"
        " items whose scores are not lowered",
        "reject negatives by the training rows only",
    ),
    "trained on all rows": Mistake(
        "`{code}` takes the training rows from `{subject}` after it was split: they include"
        " held-out rows",
        "take them from the training split",
    ),
    "first held out": Mistake(
        "`{code}` counts each user's rows from the first one: the earliest are held out, and"
        " training sees what follows",
        "count from the end: `cumcount(ascending=False)`",
    ),
    "sorted without time": Mistake(
        "`{code}` does not sort by `{subject}`: the last rows of each user are not the latest ones",
        "sort by the user and by `{subject}`",
    ),
    "classes beside features": Mistake(
        "`{code}` includes the target `{subject}` in the features",
        "remove it from the inputs",
    ),
}


@rule(severity=Severity.WARNING, level=Level.DATA, needs=(LOSS,), preview=True)
def confused_splits(facts: Facts) -> Iterator[Verdict]:
    """The source uses training data as held-out data, or held-out data for training.

    ## What it does
    Reads the source of the script and of the modules next to it. It reports validation metrics
    computed on training data, held-out data sets created like the training set or from its seed,
    parts of two different random splits, and caches shared by several data sets. It also reports
    copies made before the split, splits that share rows, groups or overlapping windows, test nodes
    and edges in training, and weights and thresholds chosen on test data.

    ## Why it matters
    The validation result hides overfitting, or measures the wrong samples. Checkpoints and
    hyperparameters are chosen by it.

    ## Example
    ```python
    val_loss = evaluate(model, train_loader)  # bad
    val_loss = evaluate(model, val_loader)    # good
    ```

    ## What to do
    Split once, keep the splits, and evaluate on the one that is not trained on.

    ## When it is wrong
    The names in the script mean something else, or augmentation is deliberately part of the
    evaluation.

    ## How to confirm
    - Compare the samples of both loaders: no sample may be in both.
    """
    yield from concluded(confused_splits, facts, _MISTAKES)
