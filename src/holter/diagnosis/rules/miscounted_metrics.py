"""The source computes a metric by a wrong threshold, argument or count."""

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
        "weigh each batch: `total += loss.item() * len(y)`, or divide by `len(loader)`",
        Confidence.HINT,
    ),
    "exponent of sum": Mistake(
        "`{code}` is the exponent of the sum of the losses of all batches, `{subject}`",
        "divide first: `math.exp({subject} / len(loader))`",
    ),
    "exchanged arguments": Mistake(
        "`{code}` passes predictions first (`{subject}`); the first argument is the true labels",
        "exchange them: `metric(y_true, y_pred)`",
    ),
    "truth first": Mistake(
        "`{code}` passes the true labels first (`{subject}`); this library takes the predictions"
        " first",
        "exchange them: `metric(preds, target)`",
    ),
    "averaged metrics": Mistake(
        "`{code}` is a metric of each batch, `{subject}`, and its mean over batches is reported: it"
        " does not add up, and a batch without positives counts as much as any other",
        "add up the counts, or keep all predictions, and compute the metric once after the loop",
    ),
    "averaged roots": Mistake(
        "`{code}` takes the root of each batch, and its mean is reported: it is at most the root of"
        " the mean",
        "average the squared errors over all samples, and take the root once",
        Confidence.HINT,
    ),
    "ranks with ties": Mistake(
        "`{code}` rounds the scores before they are ranked (`{subject}`): the comparison decides"
        " the places of equal scores, not the model",
        "rank by the scores themselves, or count half of the ties: `+ 0.5 * (s == own).sum(1)`",
    ),
    "scale in root": Mistake(
        "`{code}` multiplies by `{subject}` inside the root: the error is too small by the root of"
        " the scale",
        "multiply after the root: `mse ** 0.5 * {subject}`",
    ),
    "sorted predictions": Mistake(
        "`{code}` puts the data into another order, `{subject}`, and the predictions stay in it,"
        " while the labels do not",
        "put them back: `restored[{subject}] = predictions`, or `predictions[argsort({subject})]`",
    ),
    "hard ranking": Mistake(
        "`{code}` ranks by classes (`{subject}`), not by scores: there are two ranks only",
        "pass the probabilities or logits of the positive class",
    ),
    "threshold of zero": Mistake(
        "`{code}` compares probabilities with 0: all of them are above",
        "compare probabilities with 0.5, logits with 0",
    ),
    "softmax threshold": Mistake(
        "`{code}` thresholds `{subject}`, whose classes sum to 1; the loss trains independent"
        " labels, of which several may be true",
        "take the sigmoid: `torch.sigmoid(logits) > 0.5`",
    ),
    "logits threshold": Mistake(
        "`{code}` compares `{subject}` with 0.5; the loss takes the same tensor for logits, whose"
        " threshold is 0",
        "compare logits with 0, or `torch.sigmoid({subject})` with 0.5",
        Confidence.HINT,
    ),
    "sigmoid twice": Mistake(
        "`{code}` takes a sigmoid of what the model returns, which ends in a sigmoid: all values"
        " are above 0.5",
        "compare the output of the model itself with 0.5",
    ),
    "one-sided union": Mistake(
        "`{code}` counts `{subject}` alone as the union: the ratio is a recall or a precision, and"
        " ignores the other kind of mistakes",
        "join both: `((pred == c) | (mask == c)).sum()`",
    ),
    "self match": Mistake(
        "`{code}` ranks all rows of `{subject}` for each of them: the first hit is the query"
        " itself, which always has its own label",
        "exclude it: `similarity.fill_diagonal_(float('-inf'))`",
    ),
    "averaged perplexity": Mistake(
        "`{code}` adds exponentials of batch losses: their mean is more than the perplexity,"
        " which is the exponential of the mean loss",
        "average the losses, then take `math.exp(total / n)`",
    ),
    "lost at end": Mistake(
        "`{code}` stores a span in `{subject}` when the next tag ends it: a span at the end of"
        " the sequence is lost",
        "add an outside tag at the end: `for i, tag in enumerate(list(tags) + ['O'])`",
    ),
    "union as count": Mistake(
        "`{code}` counts the union of predicted and true spans as the true ones: `{subject}` is"
        " too large, and so the ratio too small",
        "count the true spans alone: `{subject} += len(gold)`",
    ),
    "same denominator": Mistake(
        "`{code}` is the same ratio as the precision",
        "divide by the number of true elements: the other axis of the confusion matrix",
    ),
    "exchanged margins": Mistake(
        "`{code}` divides by the sum over the wrong axis of a matrix of (true, predicted):"
        " precision and recall are exchanged",
        "divide the precision by `sum(0)`, what was predicted, and the recall by `sum(1)`, what"
        " is true",
    ),
    "union with overlap": Mistake(
        "`{code}` adds both areas (`{subject}`), and counts the overlap twice: the IoU is at"
        " most 0.5",
        "subtract the intersection: `union = a.sum() + b.sum() - inter`",
    ),
    "dice without two": Mistake(
        "`{code}` divides the overlap by both areas: a perfect mask has 0.5",
        "`dice = 2 * inter / (a.sum() + b.sum())`",
    ),
    "exchanged ratio": Mistake(
        "`{code}` has another denominator than its name says: {subject} belong there",
        "`precision = tp / (tp + fp)`, `recall = tp / (tp + fn)`, `r2 = 1 - ss_res / ss_tot`",
    ),
    "shifted error": Mistake(
        "`{code}` adds `{subject}` to an error: an error has a scale, and no offset",
        "multiply by the standard deviation only",
    ),
    "order as ranks": Mistake(
        "`{code}` takes the order (which element comes at each place) for the rank of each element",
        "`ranks = np.argsort(np.argsort(score))`, or `scipy.stats.rankdata(score)`",
    ),
    "recall by cut": Mistake(
        "`{code}` divides by `{subject}`, which gives the precision at k",
        "divide by the number of relevant items, at most k",
    ),
    "means by samples": Mistake(
        "`{code}` adds up means of batches, and their sum is divided by the number of samples",
        "add up sums, or divide by the number of batches",
    ),
    "reversed concordance": Mistake(
        "`{code}` counts pairs in which the case that ends earlier has the lower risk",
        "the earlier case of a concordant pair has the higher risk",
    ),
    "unscaled predictions": Mistake(
        "`{code}` takes the exponential of standardised outputs ({subject})",
        "undo the scale first: `torch.exp(model(x) * y_std + y_mean)`",
    ),
    "discount from one": Mistake(
        "`{code}` counts the places from 0: the first one divides by the logarithm of 1,"
        " which is 0",
        "add 2: `1 / torch.log2(torch.arange(k) + 2)`",
    ),
    "rank of the worse": Mistake(
        "`{code}` counts the items that score less than the target: the best rank belongs to"
        " the worst model",
        "count those that score more: `{subject} = (scores > own).sum(1)`",
    ),
    "ranked ascending": Mistake(
        "`{code}` takes the items with the lowest `{subject}` for the best ones",
        "take the highest: `{subject}.topk(k)`, or `np.argsort(-{subject})[:k]`",
    ),
    "ideal of the retrieved": Mistake(
        "`{code}` orders only what was retrieved: relevant items that are missed cost nothing",
        "take the best k of all items: `gain.topk(k).values`",
    ),
    "padding in ranks": Mistake(
        "`{code}` ranks the padding among the items: the mask is applied to the gains alone",
        "hide it first: `{subject} = {subject}.masked_fill(~mask, float('-inf'))`",
    ),
    "share of all rows": Mistake(
        "`{code}` divides what is right among the chosen rows by the number of all rows,"
        " `{subject}`",
        "divide by the chosen ones: `.float().mean()`, or `mask.sum()`",
    ),
}


@rule(severity=Severity.WARNING, level=Level.PROCEDURE, needs=(LOSS,), preview=True)
def miscounted_metrics(facts: Facts) -> Iterator[Verdict]:
    """The source computes a metric by a wrong threshold, argument or count.

    ## What it does
    Reads the source of the script and of modules beside it, and follows values to the model or the
    data that they come from. It reports thresholds that do not fit the scale of what they are
    compared with, arguments of metrics in the wrong order, unions that count one of two arrays,
    scores that are rounded before they are ranked, and predictions that stay in the order in which
    they were computed. It also reports sums over batches that keep the last one only or are divided
    by another count than their own, and means over batches of what does not add up (F1, AUC, R²);
    and IoU, Dice, precision and recall with another denominator, an order that is taken for ranks,
    and errors in another unit.

    ## Why it matters
    The figure is wrong while the model may be right, and what is chosen by it is chosen wrongly:
    the checkpoint, the threshold, the learning rate.

    ## Example
    ```python
    for x, y in loader: right = (model(x).argmax(1) == y).sum()   # bad
    for x, y in loader: right += (model(x).argmax(1) == y).sum()  # good
    ```

    ## What to do
    Compute the metric with a library once, on all predictions, and compare.

    ## When it is wrong
    A name says something else than what it holds.

    ## How to confirm
    - Compute the metric of predictions that are all right: it must be 1.
    """
    yield from concluded(miscounted_metrics, facts, _MISTAKES)
