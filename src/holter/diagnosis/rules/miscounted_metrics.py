"""The source computes a metric with a wrong threshold, argument or count."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "overwritten sum": Mistake(
        "`{code}` replaces `{subject}` in every iteration: only the last batch counts, and it is"
        " divided by the number of all samples",
        "add the batches up: `{subject} += ...`",
    ),
    "samples by batches": Mistake(
        "`{code}` divides a sum over samples by the number of batches, `{subject}`",
        "divide by the number of samples: `len(loader.dataset)`",
    ),
    "batches by samples": Mistake(
        "`{code}` divides a sum of batch means by the number of samples, `{subject}`: the result is"
        " too small by the batch size",
        "weight each batch: `total += loss.item() * len(y)`, or divide by `len(loader)`",
        Confidence.HINT,
    ),
    "exponent of sum": Mistake(
        "`{code}` is the exponential of the sum of all batch losses, `{subject}`",
        "divide first: `math.exp({subject} / len(loader))`",
    ),
    "exchanged arguments": Mistake(
        "`{code}` passes predictions first (`{subject}`); the first argument is the true labels",
        "swap them: `metric(y_true, y_pred)`",
    ),
    "truth first": Mistake(
        "`{code}` passes the true labels first (`{subject}`); this library takes the predictions"
        " first",
        "swap them: `metric(preds, target)`",
    ),
    "averaged metrics": Mistake(
        "`{code}` averages a per-batch metric, `{subject}`: such a mean is not the metric of all"
        " samples, and a batch without positives counts as much as any other",
        "accumulate the counts or all predictions, and compute the metric once after the loop",
    ),
    "averaged roots": Mistake(
        "`{code}` averages the roots of batches: the result is smaller than the root of the mean",
        "average the squared errors over all samples, and take the root once",
        Confidence.HINT,
    ),
    "ranks with ties": Mistake(
        "`{code}` rounds the scores before ranking (`{subject}`): tie-breaking decides the ranks,"
        " not the model",
        "rank by the scores themselves, or count half of the ties: `+ 0.5 * (s == own).sum(1)`",
    ),
    "scale in root": Mistake(
        "`{code}` multiplies by `{subject}` inside the root: the error is too small by the root of"
        " the scale",
        "multiply after the root: `mse ** 0.5 * {subject}`",
    ),
    "sorted predictions": Mistake(
        "`{code}` reorders the data by `{subject}`; the predictions keep that order, but the"
        " labels do not",
        "restore the order: `restored[{subject}] = predictions`, or"
        " `predictions[argsort({subject})]`",
    ),
    "hard ranking": Mistake(
        "`{code}` ranks by predicted classes (`{subject}`), not by scores: there are only two"
        " ranks",
        "pass the probabilities or logits of the positive class",
    ),
    "threshold of zero": Mistake(
        "`{code}` compares probabilities with 0: all of them are larger",
        "compare probabilities with 0.5, logits with 0",
    ),
    "softmax threshold": Mistake(
        "`{code}` thresholds `{subject}`, a softmax that sums to 1; the loss trains independent"
        " labels, several of which may be true",
        "take the sigmoid: `torch.sigmoid(logits) > 0.5`",
    ),
    "logits threshold": Mistake(
        "`{code}` compares `{subject}` with 0.5; the loss treats the same tensor as logits, whose"
        " threshold is 0",
        "compare logits with 0, or `torch.sigmoid({subject})` with 0.5",
        Confidence.HINT,
    ),
    "sigmoid twice": Mistake(
        "`{code}` applies a sigmoid to the output of a model that ends in a sigmoid: all values"
        " are above 0.5",
        "compare the model output with 0.5",
    ),
    "one-sided union": Mistake(
        "`{code}` counts only `{subject}` as the union: the ratio is a recall or a precision, and"
        " ignores the other kind of error",
        "combine both: `((pred == c) | (mask == c)).sum()`",
    ),
    "self match": Mistake(
        "`{code}` ranks all rows of `{subject}` for each query: the first hit is the query itself,"
        " whose label always matches",
        "exclude it: `similarity.fill_diagonal_(float('-inf'))`",
    ),
    "averaged perplexity": Mistake(
        "`{code}` sums exponentials of batch losses: their mean is larger than the perplexity, the"
        " exponential of the mean loss",
        "average the losses, then take `math.exp(total / n)`",
    ),
    "lost at end": Mistake(
        "`{code}` stores a span in `{subject}` when the next tag ends it: a span at the end of"
        " the sequence is lost",
        "add an outside tag at the end: `for i, tag in enumerate(list(tags) + ['O'])`",
    ),
    "union as count": Mistake(
        "`{code}` counts the union of predicted and true spans as the true ones: `{subject}` is"
        " too large, so the ratio is too small",
        "count only the true spans: `{subject} += len(gold)`",
    ),
    "same denominator": Mistake(
        "`{code}` is the same ratio as the precision",
        "divide by the number of true elements, the other axis of the confusion matrix",
    ),
    "exchanged margins": Mistake(
        "`{code}` divides by the sum over the wrong axis of a matrix of (true, predicted):"
        " precision and recall are swapped",
        "divide by `sum(0)` (predicted) for the precision, and by `sum(1)` (true) for the recall",
    ),
    "union with overlap": Mistake(
        "`{code}` adds both areas (`{subject}`) and so counts the overlap twice: the IoU is at"
        " most 0.5",
        "subtract the intersection: `union = a.sum() + b.sum() - inter`",
    ),
    "dice without two": Mistake(
        "`{code}` divides the overlap by the sum of both areas: a perfect mask scores 0.5",
        "`dice = 2 * inter / (a.sum() + b.sum())`",
    ),
    "exchanged ratio": Mistake(
        "`{code}` has the wrong denominator for its name (expected: {subject})",
        "`precision = tp / (tp + fp)`, `recall = tp / (tp + fn)`, `r2 = 1 - ss_res / ss_tot`",
    ),
    "shifted error": Mistake(
        "`{code}` adds `{subject}` to an error: undoing standardisation only scales an error, it"
        " does not shift it",
        "only multiply by the standard deviation",
    ),
    "order as ranks": Mistake(
        "`{code}` uses the sort order (the element at each place) as the rank of each element",
        "`ranks = np.argsort(np.argsort(score))`, or `scipy.stats.rankdata(score)`",
    ),
    "recall by cut": Mistake(
        "`{code}` divides by `{subject}`, which gives the precision at k",
        "divide by the number of relevant items, at most k",
    ),
    "means by samples": Mistake(
        "`{code}` sums batch means and divides by the number of samples",
        "sum over samples, or divide by the number of batches",
    ),
    "reversed concordance": Mistake(
        "`{code}` counts pairs in which the earlier event has the lower risk as concordant",
        "in a concordant pair the earlier event has the higher risk",
    ),
    "unscaled predictions": Mistake(
        "`{code}` applies the exponential to standardised outputs ({subject})",
        "undo the standardisation first: `torch.exp(model(x) * y_std + y_mean)`",
    ),
    "discount from one": Mistake(
        "`{code}` counts ranks from 0: the first one divides by the logarithm of 1, which is 0",
        "add 2: `1 / torch.log2(torch.arange(k) + 2)`",
    ),
    "rank of the worse": Mistake(
        "`{code}` counts the items that score below the target: the worst model gets the best rank",
        "count those that score higher: `{subject} = (scores > own).sum(1)`",
    ),
    "ranked ascending": Mistake(
        "`{code}` selects the items with the lowest `{subject}` as the best ones",
        "select the highest: `{subject}.topk(k)`, or `np.argsort(-{subject})[:k]`",
    ),
    "ideal of the retrieved": Mistake(
        "`{code}` computes the ideal ranking from the retrieved items only: missed relevant items"
        " are not penalised",
        "take the best k of all items: `gain.topk(k).values`",
    ),
    "padding in ranks": Mistake(
        "`{code}` ranks padding among the items: the mask is applied only to the gains",
        "mask it first: `{subject} = {subject}.masked_fill(~mask, float('-inf'))`",
    ),
    "share of all rows": Mistake(
        "`{code}` divides the correct predictions among the selected rows by the number of all"
        " rows, `{subject}`",
        "divide by the number of selected rows: `.float().mean()`, or `mask.sum()`",
    ),
}


@rule(severity=Severity.WARNING, level=Level.PROCEDURE, needs=(LOSS,), preview=True)
def miscounted_metrics(facts: Facts) -> Iterator[Verdict]:
    """The source computes a metric with a wrong threshold, argument or count.

    ## What it does
    Reads the source of the script and of the modules next to it, and traces values back to the
    model or the data. It reports thresholds on the wrong scale, metric arguments in the wrong
    order, unions that count one of two arrays, scores that are rounded before ranking, and
    predictions in a different order than the labels. It also reports sums over batches that keep
    only the last batch or are divided by the wrong count, and means over batches of metrics that
    cannot be averaged (F1, AUC, R²); and IoU, Dice, precision and recall with the wrong
    denominator, sort orders used as ranks, and errors in the wrong unit.

    ## Why it matters
    The metric is wrong even if the model is right, and so is everything selected by it: the
    checkpoint, the threshold, the learning rate.

    ## Example
    ```python
    for x, y in loader: right = (model(x).argmax(1) == y).sum()   # bad
    for x, y in loader: right += (model(x).argmax(1) == y).sum()  # good
    ```

    ## What to do
    Compute the metric with a library once, on all predictions, and compare.

    ## When it is wrong
    A variable holds something other than its name suggests.

    ## How to confirm
    - Compute the metric on perfect predictions: it must be 1.
    """
    yield from concluded(miscounted_metrics, facts, _MISTAKES)
