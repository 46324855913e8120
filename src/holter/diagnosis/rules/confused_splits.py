"""The source uses training data as held-out data, or the other way round."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "evaluated on training": Mistake(
        "`{code}` calls a figure `{subject}` that is computed on training data",
        "pass the validation data to the evaluation",
    ),
    "held-out as training": Mistake(
        "`{code}` makes the held-out data set with `{subject}`, as the training set",
        "set it to False for held-out data",
        Confidence.HINT,
    ),
    "split twice": Mistake(
        "`{code}` draws another split than the one whose first part is the training data: both"
        " parts share samples",
        "split once, or pass the same seed to both: `generator=torch.Generator().manual_seed(0)`",
    ),
    "same seed": Mistake(
        "`{code}` generates `{subject}` from the seed of the training data: it repeats them",
        "give each split a seed of its own",
    ),
    "shared cache": Mistake(
        "`{code}` keeps samples of all data sets in `{subject}` under the row number alone: one"
        " data set returns samples of another",
        "make the cache an attribute: `self.cache = {{}}` in `__init__`",
    ),
    "threshold of test": Mistake(
        "`{code}` sets a threshold by the test data (`{subject}`) to which it is applied",
        "choose it by the scores of validation data: `np.quantile(valid_scores, 0.99)`",
    ),
    "copied before split": Mistake(
        "`{code}` adds copies of rows to `{subject}` before it is split: copies of one row"
        " are on both sides",
        "split first, and copy or augment training rows only",
    ),
    "drawn again": Mistake(
        "`{code}` draws `{subject}` from another permutation than the training rows: both"
        " share most rows",
        "draw one permutation, and slice it: `order[:n]`, `order[n:]`",
    ),
    "shared rows": Mistake(
        "`{code}` takes rows that are in both parts, {subject}",
        "let the second slice begin where the first one ends: `x[:n]`, `x[n:]`",
    ),
    "test among training": Mistake(
        "`{code}` trains on whatever is not in the validation part, with all rows of `{subject}`",
        "exclude both: `train_mask = ~(val_mask | test_mask)`",
    ),
    "windows at random": Mistake(
        "`{code}` splits overlapping windows at random: almost every held-out window has"
        " neighbours in the training data that share its rows",
        "split the series by time, and cut windows of each part",
    ),
    "groups at random": Mistake(
        "`{code}` splits single rows at random, and rows of the same `{subject}` are on both sides",
        "split by group: `GroupShuffleSplit`, or shuffle the groups and take all rows of each",
        Confidence.HINT,  # rows of a group may be independent
    ),
    "series at random": Mistake(
        "`{code}` shuffles rows of a time series: the training data have neighbours in time"
        " of each held-out row",
        "split by time: `train_test_split(x, y, shuffle=False)`",
        Confidence.HINT,  # rows may be independent in spite of their lags
    ),
    "held-out edges": Mistake(
        "`{code}` passes messages over all of `{subject}`, with the edges that are to be predicted",
        "build the adjacency from the training edges",
    ),
    "all nodes": Mistake(
        "`{code}` trains on all nodes; `{subject}` is used nowhere",
        "index by the mask: `F.cross_entropy(out[train_mask], y[train_mask])`",
    ),
    "chosen on test": Mistake(
        "`{code}` keeps the weights with the best `{subject}`: the test figure is the best of many",
        "choose by the validation figure, and test once at the end",
    ),
    "held-out of training": Mistake(
        "`{code}` mixes up the parts: it is given `{subject}`",
        "pass the data of the part that the name says",
    ),
    "target among inputs": Mistake(
        "`{code}` lists `{subject}` among the inputs, which is what the model is trained to"
        " predict",
        "remove it from the list",
    ),
    "trained on held-out": Mistake(
        "`{code}` trains on `{subject}`",
        "train on the training data, and evaluate on the others without a backward pass",
    ),
    "chosen on training": Mistake(
        "`{code}` keeps the weights by `{subject}`, a figure of the training data; the"
        " validation figure of the same loop decides nothing",
        "compare the validation figure with the best one so far",
        Confidence.HINT,
    ),
    "target hidden": Mistake(
        "`{code}` hides the items of `{subject}` from the ranking, which are the ones to be found",
        "hide the rows of the earlier parts alone",
    ),
    "negatives know the test": Mistake(
        "`{code}` never draws the test items as negatives (`{subject}`): they are the only"
        " unseen items that are not pushed down",
        "reject negatives by the training rows alone",
    ),
    "trained on all rows": Mistake(
        "`{code}` takes the rows to train on from `{subject}`, which was split before:"
        " held-out rows are among them",
        "take them from the training part",
    ),
    "first held out": Mistake(
        "`{code}` counts each user's rows from the first one: the earliest are held out, and"
        " the training knows what follows",
        "count from the end: `cumcount(ascending=False)`",
    ),
    "sorted without time": Mistake(
        "`{code}` sorts without `{subject}`: the last rows of each user are not the latest ones",
        "sort by the user and by `{subject}`",
    ),
    "classes beside features": Mistake(
        "`{code}` puts `{subject}`, which is to be predicted, among the features",
        "leave it out of the inputs",
    ),
}


@rule(severity=Severity.WARNING, level=Level.DATA, needs=(LOSS,), preview=True)
def confused_splits(facts: Facts) -> Iterator[Verdict]:
    """The source uses training data as held-out data, or the other way round.

    ## What it does
    Reads the source of the script and of modules beside it. It reports figures that are named as
    validation and computed on training data, held-out data sets that are made as the training set
    or from its seed, parts of two different random splits, and caches that several data sets share.
    It also reports copies that are made before the split, parts that share rows, groups or
    overlapping windows, test nodes and edges in training, and weights and thresholds that are
    chosen on test data.

    ## Why it matters
    The validation result hides overfitting, or measures augmented or foreign samples. Checkpoints
    and hyperparameters are chosen by it.

    ## Example
    ```python
    val_loss = evaluate(model, train_loader)  # bad
    val_loss = evaluate(model, val_loader)    # good
    ```

    ## What to do
    Split once, keep the parts, and evaluate on the part that is not trained on.

    ## When it is wrong
    The names of the script mean something else, or augmentation is part of the evaluation on
    purpose.

    ## How to confirm
    - Compare the samples of both loaders: none may be in both.
    """
    yield from concluded(confused_splits, facts, _MISTAKES)
