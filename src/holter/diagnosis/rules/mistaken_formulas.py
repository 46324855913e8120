"""A formula in the source has the wrong operation or sign."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "multiplied temperature": Mistake(
        "`{code}` multiplies similarities by `{subject}`, which is below 1: the logits are too"
        " small to prefer any class",
        "divide by the temperature: `logits = similarities / {subject}`",
    ),
    "divided scale": Mistake(
        "`{code}` divides similarities by the exponential of `{subject}`, a scale of logits: they"
        " are too small to prefer any class",
        "multiply by the scale: `logits = {subject}.exp() * similarities`",
    ),
    "scaled-up attention": Mistake(
        "`{code}` multiplies attention scores by `{subject}`: they grow with the size of a head,"
        " and the softmax saturates at one position",
        "divide instead: `scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))`",
    ),
    "inverted decay": Mistake(
        "`{code}` lets biases and norms decay, and weight matrices not (`{subject}`): it is meant"
        " the other way round",
        "exchange the two values of `weight_decay`",
    ),
    "censored events": Mistake(
        "`{code}` marks as observed what was censored before it happened, and as censored what was"
        " observed",
        "an event is observed if it comes first: `{subject} = time_of_event <= time_of_censoring`",
    ),
    "minimised overlap": Mistake(
        "`{code}` adds `{subject}` to the loss, which is larger for a better overlap: training"
        " reduces the overlap",
        "add `1 - {subject}(...)`",
    ),
    "ascending risk set": Mistake(
        "`{code}` sorts by ascending `{subject}`: the cumulative sum is over those who left before"
        " an event, not over those at risk",
        "sort with `descending=True`",
    ),
    "averaged reconstruction": Mistake(
        "`{code}` averages the reconstruction over all elements, beside a divergence that is summed"
        " over the latent dimensions: the divergence dominates and the latents collapse",
        "sum both per sample: `reduction='none'`, then `.flatten(1).sum(1).mean()`",
        Confidence.HINT,  # a weight may be on purpose, and few elements make little difference
    ),
    "summed divergence": Mistake(
        "`{code}` sums the divergence over the batch, beside a reconstruction that is a mean over"
        " it: the divergence is as many times too large as a batch has samples",
        "average it over the batch: `.sum(1).mean()`",
        Confidence.HINT,
    ),
    "exchanged loss": Mistake(
        "`{code}` passes the targets (`{subject}`) where the loss takes the predictions, and what"
        " the model returns as the target",
        "exchange them: `loss(predictions, targets)`",
    ),
    "last determinant": Mistake(
        "`{code}` replaces `{subject}` in each turn of the loop: the likelihood holds that of the"
        " last layer alone",
        "add them: `z, log_det = layer(z); total = total + log_det`",
    ),
    "wrong divergence": Mistake(
        "`{code}` is not the divergence from a standard normal distribution: `{subject}` has"
        " another sign or power there",
        "`-0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1)`",
    ),
    "plain input of divergence": Mistake(
        "`{code}` passes {subject} first; `kl_div` takes log-probabilities there",
        "pass the logarithm: `F.kl_div(F.log_softmax(student, -1), F.softmax(teacher, -1),"
        " reduction='batchmean')`",
    ),
    "target of divergence": Mistake(
        "`{code}`: the second argument does not fit `log_target`, which says whether it is in"
        " logarithms",
        "pass `{subject}`",
    ),
    "same direction": Mistake(
        "`{code}` adds up the same loss twice: one direction is missing",
        "transpose the logits of one:"
        " `F.cross_entropy(logits, y) + F.cross_entropy(logits.t(), y)`",
    ),
    "exchanged average": Mistake(
        "`{code}` keeps `{subject}` of the average in each step, and replaces the rest: there is"
        " hardly any average",
        "exchange both: `average.mul_(decay).add_(p, alpha=1 - decay)`",
    ),
    "penalty without graph": Mistake(
        "`{code}` makes no graph of the gradient: the penalty of `{subject}` is a constant, and has"
        " no effect on the weights",
        "pass `create_graph=True`",
    ),
    "batch statistics in critic": Mistake(
        "`{code}`: the scores of `{subject}` depend on the whole batch, and a penalty takes their"
        " gradient for that of each sample",
        "use `nn.LayerNorm`, `nn.InstanceNorm2d` or no normalisation in the critic",
        Confidence.HINT,
    ),
    "CTC without logarithm": Mistake(
        "`{code}`: the file takes no logarithm, and `CTCLoss` expects log probabilities",
        "pass `logits.log_softmax(-1)`",
    ),
    "overwritten half": Mistake(
        "`{code}` writes to the elements of `{subject}` that hold the other wave: one half of"
        " them stays empty",
        "write the cosines to the odd columns: `{subject}[:, 1::2]`",
    ),
    "likelihood without logarithm": Mistake(
        "`{code}`: the file takes no logarithm, and `{subject}` expects log probabilities: the"
        " loss has no lower bound",
        "use `F.cross_entropy(logits, y)`, or pass `logits.log_softmax(-1)`",
    ),
    "proportional weights": Mistake(
        "`{code}` gives `{subject}` weights that grow with the frequency of a class: rare"
        " classes count least",
        "use the inverse: `weight = counts.sum() / (len(counts) * counts)`",
    ),
    "inverted pos weight": Mistake(
        "`{code}` makes the weight of positives smaller the rarer they are",
        "`pos_weight = n_negative / n_positive`",
    ),
    "tiny spread": Mistake(
        "`{code}` divides by `{subject}`, which is 0 for words that no training row has:"
        " other rows that have them get values of 1e8",
        "leave such columns as they are: `std[std < 1e-3] = 1`",
        Confidence.HINT,  # every column may have a spread
    ),
    "inverted events": Mistake(
        "`{code}` makes events of `{subject}` the wrong way round: censored cases count as events",
        "the event is 1 where it was observed",
    ),
    "overlap of logits": Mistake(
        "`{code}` computes an overlap of raw logits (`{subject}`): it has no bound",
        "`torch.sigmoid(logits)`, or `logits.softmax(1)`, before the products",
    ),
    "weights without penalty": Mistake(
        "`{code}` weighs a loss by the learned `{subject}`, and nothing adds `{subject}` to the"
        " objective: it grows without a bound and the weight vanishes",
        "add the log-variance: `torch.exp(-s) * loss + s`",
    ),
    "sign of weights": Mistake(
        "`{code}` weighs a loss by `exp({subject})` while `{subject}` is also added: both fall"
        " with it without a bound",
        "weigh by its inverse: `torch.exp(-s) * loss + s`",
    ),
    "embeddings without unit length": Mistake(
        "`{code}` compares embeddings by products of any size, and nothing normalises `{subject}`:"
        " the temperature has no meaning, and the loss falls with the length of vectors",
        "normalise before the product: `{subject} = F.normalize({subject}, dim=1)`",
        Confidence.HINT,  # an imported network may return unit vectors
    ),
    "reversed risk set": Mistake(
        "`{code}` keeps those with an earlier time than the event; at risk are those with the"
        " same or a later time",
        "compare the other way: `time[None, :] >= time[:, None]`, summed over `dim=1`",
    ),
    "risk set of copies": Mistake(
        "`{code}` sums over an axis along which `{subject}` is constant: copies of one risk,"
        " not the risks of those at risk",
        "sum over the other axis",
    ),
    "zero in risk set": Mistake(
        "`{code}` gives those who are not at risk the score 0: e ** 0 is 1, so each of them"
        " is counted",
        "fill with minus infinity: `masked_fill(~at_risk, float('-inf'))`",
    ),
    "censored dropped": Mistake(
        "`{code}` keeps only rows with `{subject}`: those who were censored, the longest"
        " survivors among them, are missing in the risk sets",
        "keep all rows; the loss tells events from censored times",
    ),
    "unread outcome": Mistake(
        "`{code}`: nothing reads `{subject}`, so that censored times count as events, or the"
        " order of times is lost",
        "use `{subject}` in the function",
    ),
    "infinite times zero": Mistake(
        "`{code}` multiplies by `{subject}`, which is minus infinity at hidden places: 0"
        " times infinity is NaN",
        "fill after the logarithm: `logp.masked_fill(~mask, 0.0)`",
    ),
    "inverse at both ends": Mistake(
        "`{code}` divides by the degree at both ends (`{subject}`): messages shrink by one"
        " degree too many",
        "take the root: `deg.pow(-0.5)`, or divide at one end",
    ),
    "joined twice": Mistake(
        "`{code}` joins `{subject}` to itself: the skip connection is lost",
        "give the upsampled tensor another name: `torch.cat([up, {subject}], dim=1)`",
    ),
}


@rule(severity=Severity.WARNING, level=Level.PROCEDURE, needs=(LOSS,), preview=True)
def mistaken_formulas(facts: Facts) -> Iterator[Verdict]:
    """A formula in the source has the wrong operation or sign.

    ## What it does
    Reads the source of the script and of modules beside it. It reports similarities that are
    multiplied by a temperature below 1 or divided by a scale of logits, a Dice or IoU score that is
    added to a loss as it is, inverted events, risk sets of those who left, and class weights that
    grow with the frequency. It also reports the terms of a likelihood on different scales or of one
    layer alone, divergences with a wrong sign or without logarithms, overlaps of raw logits, losses
    that are given the targets in place of the predictions or the same direction of pairs twice,
    averages of weights whose coefficients are exchanged, and gradient penalties without a gradient.

    ## Why it matters
    Nothing fails, and the loss often falls. Logits within 0.1 of each other cannot prefer a class,
    a survival model learns what drives censoring, and an overlap that is minimised makes masks
    worse.

    ## Example
    ```python
    logits = a @ b.t() * temperature  # bad
    logits = a @ b.t() / temperature  # good
    ```

    ## What to do
    Compare the statement with the formula that it is meant to be.

    ## When it is wrong
    A name says temperature but holds its inverse. A score is already negative. The weight of a
    divergence is on purpose what the reductions make of it.

    ## How to confirm
    - Print the range of the logits, the share of events, or the term of the loss beside its metric.
    """
    yield from concluded(mistaken_formulas, facts, _MISTAKES)
