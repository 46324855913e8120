"""A formula in the source has a wrong operation, sign or scale."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "multiplied temperature": Mistake(
        "`{code}` multiplies similarities by the temperature `{subject}`, which is below 1: the"
        " logits are too small to separate classes",
        "divide by the temperature: `logits = similarities / {subject}`",
    ),
    "divided scale": Mistake(
        "`{code}` divides similarities by the exponential of the logit scale `{subject}`: the"
        " logits are too small to separate classes",
        "multiply by the scale: `logits = {subject}.exp() * similarities`",
    ),
    "scaled-up attention": Mistake(
        "`{code}` multiplies attention scores by `{subject}`: they grow with the head size, and"
        " the softmax saturates at one position",
        "divide instead: `scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))`",
    ),
    "inverted decay": Mistake(
        "`{code}` applies weight decay to biases and norms but not to weight matrices"
        " (`{subject}`): the groups are swapped",
        "swap the two values of `weight_decay`",
    ),
    "censored events": Mistake(
        "`{code}` marks censored cases as observed and observed events as censored",
        "an event is observed if it occurs before censoring: `{subject} = time_of_event <="
        " time_of_censoring`",
    ),
    "minimised overlap": Mistake(
        "`{code}` adds `{subject}` to the loss, which is larger for a better overlap: training"
        " minimises the overlap",
        "add `1 - {subject}(...)`",
    ),
    "ascending risk set": Mistake(
        "`{code}` sorts by ascending `{subject}`: the cumulative sum covers cases that left before"
        " an event instead of those at risk",
        "sort with `descending=True`",
    ),
    "averaged reconstruction": Mistake(
        "`{code}` averages the reconstruction over all elements while the divergence is summed"
        " over the latent dimensions: the divergence dominates and the latents collapse",
        "sum both per sample: `reduction='none'`, then `.flatten(1).sum(1).mean()`",
        Confidence.HINT,  # a weight may be on purpose, and few elements make little difference
    ),
    "summed divergence": Mistake(
        "`{code}` sums the divergence over the batch while the reconstruction is a mean: the"
        " divergence is too large by a factor of the batch size",
        "average it over the batch: `.sum(1).mean()`",
        Confidence.HINT,
    ),
    "exchanged loss": Mistake(
        "`{code}` passes the targets (`{subject}`) as the predictions, and the model output as the"
        " target",
        "swap them: `loss(predictions, targets)`",
    ),
    "last determinant": Mistake(
        "`{code}` overwrites `{subject}` in each iteration: the likelihood contains only the term"
        " of the last layer",
        "add them: `z, log_det = layer(z); total = total + log_det`",
    ),
    "wrong divergence": Mistake(
        "`{code}` is not the divergence from a standard normal distribution: `{subject}` has the"
        " wrong sign or power",
        "`-0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1)`",
    ),
    "plain input of divergence": Mistake(
        "`{code}` passes {subject} as the input; `kl_div` expects log-probabilities",
        "pass the logarithm: `F.kl_div(F.log_softmax(student, -1), F.softmax(teacher, -1),"
        " reduction='batchmean')`",
    ),
    "target of divergence": Mistake(
        "`{code}`: the target does not match `log_target`, which says whether it holds logarithms",
        "pass `{subject}`",
    ),
    "same direction": Mistake(
        "`{code}` adds the same loss twice: one direction is missing",
        "transpose the logits in one of them: `F.cross_entropy(logits, y) +"
        " F.cross_entropy(logits.t(), y)`",
    ),
    "exchanged average": Mistake(
        "`{code}` keeps only `{subject}` of the average in each step: the average follows the"
        " weights almost immediately",
        "swap the coefficients: `average.mul_(decay).add_(p, alpha=1 - decay)`",
    ),
    "penalty without graph": Mistake(
        "`{code}` computes the gradient without a graph: the penalty of `{subject}` is a constant"
        " without effect on the weights",
        "pass `create_graph=True`",
    ),
    "batch statistics in critic": Mistake(
        "`{code}`: the scores of `{subject}` depend on the whole batch, but the penalty treats"
        " their gradient as per-sample",
        "use `nn.LayerNorm`, `nn.InstanceNorm2d` or no normalisation in the critic",
        Confidence.HINT,
    ),
    "CTC without logarithm": Mistake(
        "`{code}`: no logarithm is taken in this file, but `CTCLoss` expects log probabilities",
        "pass `logits.log_softmax(-1)`",
    ),
    "overwritten half": Mistake(
        "`{code}` overwrites the half of `{subject}` that holds the other wave: the other half"
        " stays zero",
        "write the cosines to the odd columns: `{subject}[:, 1::2]`",
    ),
    "likelihood without logarithm": Mistake(
        "`{code}`: no logarithm is taken in this file, but `{subject}` expects log probabilities:"
        " the loss has no lower bound",
        "use `F.cross_entropy(logits, y)`, or pass `logits.log_softmax(-1)`",
    ),
    "proportional weights": Mistake(
        "`{code}` gives `{subject}` weights that grow with the class frequency: rare classes count"
        " least",
        "use the inverse: `weight = counts.sum() / (len(counts) * counts)`",
    ),
    "inverted pos weight": Mistake(
        "`{code}` gives positives a smaller weight the rarer they are",
        "`pos_weight = n_negative / n_positive`",
    ),
    "tiny spread": Mistake(
        "`{code}` divides by `{subject}`, which is 0 for words that are absent from the training"
        " rows: other rows get values of 1e8",
        "do not scale such columns: `std[std < 1e-3] = 1`",
        Confidence.HINT,  # every column may have a spread
    ),
    "inverted events": Mistake(
        "`{code}` inverts the event indicator `{subject}`: censored cases count as events",
        "the event is 1 where it was observed",
    ),
    "overlap of logits": Mistake(
        "`{code}` computes an overlap of raw logits (`{subject}`): it is unbounded",
        "`torch.sigmoid(logits)`, or `logits.softmax(1)`, before the products",
    ),
    "weights without penalty": Mistake(
        "`{code}` weights a loss by the learned `{subject}`, but `{subject}` is not added to the"
        " objective: it grows without bound and the weight vanishes",
        "add the log-variance: `torch.exp(-s) * loss + s`",
    ),
    "sign of weights": Mistake(
        "`{code}` weights a loss by `exp({subject})` while `{subject}` is also added: both"
        " decrease with it without bound",
        "weight by its inverse: `torch.exp(-s) * loss + s`",
    ),
    "embeddings without unit length": Mistake(
        "`{code}` compares unnormalised embeddings (`{subject}`): the temperature is meaningless,"
        " and the loss can fall by scaling the vectors",
        "normalise before the product: `{subject} = F.normalize({subject}, dim=1)`",
        Confidence.HINT,  # an imported network may return unit vectors
    ),
    "reversed risk set": Mistake(
        "`{code}` selects cases with an earlier time than the event; those at risk have the same"
        " or a later time",
        "reverse the comparison: `time[None, :] >= time[:, None]`, summed over `dim=1`",
    ),
    "risk set of copies": Mistake(
        "`{code}` sums over an axis along which `{subject}` is constant: it adds copies of one"
        " risk instead of the risks of all cases at risk",
        "sum over the other axis",
    ),
    "zero in risk set": Mistake(
        "`{code}` gives cases that are not at risk the score 0: exp(0) is 1, so each of them"
        " counts",
        "fill with -inf: `masked_fill(~at_risk, float('-inf'))`",
    ),
    "censored dropped": Mistake(
        "`{code}` keeps only rows with `{subject}`: censored cases, including the longest"
        " survivors, are missing from the risk sets",
        "keep all rows; the loss distinguishes events from censored times",
    ),
    "unread outcome": Mistake(
        "`{code}`: `{subject}` is never used, so censored times count as events, or the order of"
        " times is lost",
        "use `{subject}` in the function",
    ),
    "infinite times zero": Mistake(
        "`{code}` multiplies by `{subject}`, which is -inf at masked positions: 0 times infinity"
        " is NaN",
        "fill after the logarithm: `logp.masked_fill(~mask, 0.0)`",
    ),
    "inverse at both ends": Mistake(
        "`{code}` divides by the degree at both ends (`{subject}`) without the square root:"
        " messages are scaled twice",
        "take the root: `deg.pow(-0.5)`, or divide at one end",
    ),
    "joined twice": Mistake(
        "`{code}` concatenates `{subject}` with itself: the skip connection is lost",
        "use a different name for the upsampled tensor: `torch.cat([up, {subject}], dim=1)`",
    ),
}


@rule(severity=Severity.WARNING, level=Level.PROCEDURE, needs=(LOSS,), preview=True)
def mistaken_formulas(facts: Facts) -> Iterator[Verdict]:
    """A formula in the source has a wrong operation, sign or scale.

    ## What it does
    Reads the source of the script and of the modules next to it. It reports similarities multiplied
    by a temperature below 1 or divided by a logit scale, a Dice or IoU score added to a loss
    without inversion, inverted events, inverted risk sets, and class weights that grow with the
    frequency. It also reports likelihood terms on different scales or of one layer only,
    divergences with a wrong sign or without logarithms, overlaps of raw logits, losses with swapped
    arguments or with one direction of pairs twice, weight averages with swapped coefficients, and
    gradient penalties without a gradient.

    ## Why it matters
    There is no error, and the loss often falls. Logits within 0.1 of each other cannot separate
    classes, a survival model learns what drives censoring, and minimising the overlap makes masks
    worse.

    ## Example
    ```python
    logits = a @ b.t() * temperature  # bad
    logits = a @ b.t() / temperature  # good
    ```

    ## What to do
    Compare the statement with the intended formula.

    ## When it is wrong
    A variable named temperature holds its inverse. A score is already negative. The relative weight
    of the divergence is intended.

    ## How to confirm
    - Print the range of the logits, the share of events, or the loss term next to its metric.
    """
    yield from concluded(mistaken_formulas, facts, _MISTAKES)
