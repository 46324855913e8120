"""A simple model is far better than the network on the same held-out rows."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.baselines import Comparison
from holter.diagnosis.facts.data_sets import why_absent
from holter.diagnosis.facts.robust import midmean
from holter.diagnosis.rule import exception, rule
from holter.diagnosis.wording import number, percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import BASELINE_SCORE, LOSS

_STEEP = 0.2  # fall of the loss over the last quarter of the steps
_HALF = 0.5  # share of the gain that an earlier validation had, of the parameters that are trained
_LOWER = 0.7  # of the loss on these rows: a validation that was far better
_WORDS = {
    "linear": "a linear model",
    "neighbours": "a nearest-neighbour model",
    "naive Bayes": "naive Bayes on token counts",
    "token table": "the most frequent class of each token",
}


def _scores(compared: Comparison) -> str:
    """Return both scores in words."""
    what, scores = "accuracy" if compared.is_class else "R²", compared.scores
    return (
        f"{_WORDS.get(compared.name, compared.name)} on the same inputs has validation {what}"
        f" {number(scores.simple)}, the network {number(scores.network)}"
        f" ({compared.rows} rows, best constant prediction {number(scores.constant)})"
    )


@exception
def better_before(facts: Facts, compared: Comparison) -> str | None:
    """An earlier validation was far better: the script does not use the final weights."""
    curves = facts.validation
    if isinstance(curves, str):
        return None
    right = curves.accuracy[np.isfinite(curves.accuracy)]
    scores = compared.scores
    if compared.is_class and len(right):
        if float(right.max()) - scores.constant < _HALF * scores.gain:
            return None
        return f"an evaluation had accuracy {number(float(right.max()))}"
    losses = curves.validation[np.isfinite(curves.validation)]
    if compared.loss is None or not len(losses) or not losses.min() < _LOWER * compared.loss:
        return None
    return (
        f"an evaluation had loss {number(float(losses.min()))}, these rows {number(compared.loss)}"
    )


@exception
def still_falling(facts: Facts, _: Comparison) -> str | None:
    """The run ended while its loss was falling steeply."""
    curve = facts.curve
    if isinstance(curve, str) or not len(curve.part(0.65, 0.75)) or not len(curve.part(0.9)):
        return None
    before, after = midmean(curve.part(0.65, 0.75)), midmean(curve.part(0.9))
    if not before > 0 or after > (1 - _STEEP) * before:
        return None
    return f"the loss fell by {percent(1 - after / before)} over the last quarter of the steps"


@exception
def mostly_frozen(facts: Facts, _: Comparison) -> str | None:
    """Most layers are frozen on purpose, so their features are not learned."""
    weights = [each for each in facts.parameters if each.in_model]
    frozen = [each for each in weights if not each.trainable and each.since == 0]
    if not frozen or len(frozen) < _HALF * len(weights):
        return None
    return f"{len(frozen)} of {len(weights)} parameters are frozen from the start"


@rule(
    severity=Severity.WARNING,
    level=Level.DATA,
    needs=(LOSS,),
    exceptions=(better_before, still_falling, mostly_frozen),
    symptom=True,
    preview=True,
)
def beaten_by_baseline(
    facts: Facts,
    *,
    min_rows: Annotated[int, "held-out rows needed"] = 100,
    min_steps: Annotated[int, "steps of training needed"] = 50,
    min_gain: Annotated[float, "gain of the simple model over a constant prediction"] = 0.1,
    max_share: Annotated[float, "share of that gain that the network reaches"] = 0.5,
    sure_share: Annotated[float, "share of the gain for a likely finding"] = 0.3,
    max_log_chance: Annotated[float, "log10 of the p-value"] = -4.0,
) -> Iterator[Verdict]:
    """A simple model is far better than the network on the same held-out rows.

    ## What it does
    Fits ridge regression, nearest neighbours and token counts to at most 1,200 training rows, as
    the network receives them, and compares them with the network on held-out rows. It reports a
    network whose gain over a constant prediction is less than half of the gain of the best of them,
    in every metric, if a paired test excludes chance.

    ## Why it matters
    The inputs contain the information, and the network does not learn it, even if its loss falls.

    ## Example
    ```python
    x = F.layer_norm(x, x.shape[1:]); return self.net(x)   # bad
    x = (x - train_mean) / train_std; return self.net(x)   # good
    ```

    ## What to do
    Look for what loses information: normalisation per sample, a wrong axis, a narrow layer, a
    strong penalty, a learning rate that is far off. Fit the network to 200 rows without
    regularisation; if that fails as well, remove layers until it succeeds.

    ## When it is wrong
    A network that must ignore some of its inputs, that is small or noisy on purpose, or that the
    script scores differently.

    ## How to confirm
    - `holter try overfit-batch SCRIPT`: can the network memorise one batch?
    - Train a linear model on the same tensors, and compare it on the same rows.
    """
    compared = facts.comparison
    if compared is None:
        otherwise = "`holter run` fits simple models after the script has ended; this was not done"
        why = why_absent(facts.run, BASELINE_SCORE, otherwise)
        yield beaten_by_baseline.not_examined(why)
        return
    if compared.rows < min_rows or facts.run.steps < min_steps:
        yield beaten_by_baseline.not_examined(
            f"{compared.rows} of the {min_rows} rows needed"
            if compared.rows < min_rows
            else f"{facts.run.steps} of the {min_steps} steps needed"
        )
        return
    scores = _scores(compared)
    is_worse = compared.gain >= min_gain and compared.share < max_share
    if not is_worse or compared.log_chance > max_log_chance:
        yield beaten_by_baseline.clear(scores)
        return
    if (excuse := beaten_by_baseline.excused(facts, compared)) is not None:
        yield excuse
        return
    summary = scores
    if compared.on_training is not None:
        summary += f"; the network has {number(compared.on_training)} on training rows"
    yield beaten_by_baseline.finding(
        summary,
        confidence=Confidence.LIKELY if compared.share < sure_share else Confidence.HINT,
        onset=0,
        evidence=(Evidence(BASELINE_SCORE, (0, 0), scores, compared.name),),
        fix="find the layer that loses the information: compare the network layer by layer with"
        " `nn.Linear(inputs, outputs)`, trained with the same loop",
    )
