"""The script's validation is far worse than a re-evaluation of the same weights."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.data_sets import why_absent
from holter.diagnosis.facts.validation import Curves
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import number
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import BASELINE_SCORE, LOSS, VAL_ACCURACY, VAL_LOSS, VAL_R2, Signal


@rule(
    severity=Severity.WARNING,
    level=Level.PROCEDURE,
    needs=(LOSS, VAL_LOSS),
    preview=True,
)
def contradicted_validation(
    facts: Facts,
    *,
    min_rows: Annotated[int, "held-out rows needed"] = 100,
    max_late: Annotated[float, "share of the steps after the last validation"] = 0.02,
    min_gap: Annotated[float, "accuracy or R² by which the script's validation is worse"] = 0.15,
    min_errors: Annotated[float, "the same in standard errors of an accuracy"] = 5.0,
    sure_share: Annotated[float, "share of the gain that makes the finding likely"] = 0.5,
) -> Iterator[Verdict]:
    """The script's validation is far worse than a re-evaluation of the same weights.

    ## What it does
    Evaluates the trained model in eval mode on held-out rows when the script has ended, and
    compares its accuracy, or R², with the last validation of the script. It reports if the script's
    figure is far lower. The finding is likely if the script's figure shows less than half of the
    gain over the best constant prediction.

    ## Why it matters
    The model has learned, and the validation does not show it: model selection, early stopping and
    the schedule act on a wrong figure.

    ## Example
    ```python
    evaluate(averaged_copy)          # bad
    evaluate(averaged_copy.eval())   # good
    ```

    ## What to do
    Find what the validation does differently from a plain forward pass in eval mode: another model
    object (a copy in train mode, an average that lags), other inputs (a missing or second
    normalisation), outputs or targets in another order, a metric over the wrong axis.

    ## When it is wrong
    The validation is harder on purpose: adversarial or corrupted inputs, dropout at test time, a
    pruned or quantised copy.

    ## How to confirm
    - Call `model.eval()`, pass one validation batch to the model, and compute the metric by hand.
    - Run the validation code on a training batch: it should agree with the training metric.
    """
    compared, curves = facts.comparison, facts.validation
    if compared is None:
        why = why_absent(facts.run, BASELINE_SCORE, "the model was not evaluated afterwards")
        yield contradicted_validation.not_examined(why)
        return
    if isinstance(curves, str):
        yield contradicted_validation.not_examined(curves)
        return
    if compared.rows < min_rows:
        yield contradicted_validation.not_examined(f"{compared.rows} of the {min_rows} rows needed")
        return
    if facts.run.steps - 1 - curves.span[1] > max_late * facts.run.steps:
        yield contradicted_validation.not_examined(
            f"the weights changed after the last validation, at step {curves.span[1]}"
        )
        return
    signal = VAL_ACCURACY if compared.is_class else VAL_R2
    script = _last(facts, signal, curves)
    if script is None:
        yield contradicted_validation.not_examined(
            f"no {'accuracy' if compared.is_class else 'R²'} of the last validation was read"
        )
        return
    scores = compared.scores
    what = "accuracy" if compared.is_class else "R²"
    measured = (
        f"the last validation of the script has {what} {number(script)}; the same weights in eval"
        f" mode have {number(scores.network)} on {compared.rows} held-out rows"
    )
    error = np.sqrt(max(scores.network * (1 - scores.network), 0.01) / compared.rows)
    least = max(min_gap, min_errors * error) if compared.is_class else min_gap
    if scores.network - (script if compared.is_class else max(script, 0.0)) < least:
        yield contradicted_validation.clear(measured)
        return
    possible = scores.network - scores.constant
    is_little = possible > 0 and script - scores.constant < sure_share * possible
    yield contradicted_validation.finding(
        f"{measured} (best constant prediction {number(scores.constant)})",
        confidence=Confidence.LIKELY if is_little else Confidence.HINT,
        onset=int(curves.steps[0]),
        evidence=(
            Evidence(signal, curves.span, f"{number(script)} in the last pass", curves.owner),
            Evidence(BASELINE_SCORE, (0, 0), f"{number(scores.network)} afterwards", "network"),
        ),
        fix="evaluate the trained model itself: `model.eval()`, then the validation inputs as the"
        " training prepares them; compare one batch by hand",
    )


def _last(facts: Facts, signal: Signal, curves: Curves) -> float | None:
    """Return what a signal of the validation was in its last pass."""
    series = facts.run[signal].get(curves.owner) if signal in facts.run else None
    if series is None or not len(series) or int(series.steps[-1]) < int(curves.steps[-1]):
        return None
    value = float(series.values[-1])
    return value if np.isfinite(value) else None
