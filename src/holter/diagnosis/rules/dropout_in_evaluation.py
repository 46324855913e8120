"""The model applies dropout in eval mode."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import EVAL_DROPOUT


@rule(severity=Severity.WARNING, level=Level.ARCHITECTURE, needs=(EVAL_DROPOUT,))
def dropout_in_evaluation(facts: Facts) -> Iterator[Verdict]:
    """The model applies dropout in eval mode.

    ## What it does
    Uses the experiment `eval-dropout`: it calls the model in eval mode and records the calls of
    torch's dropout functions. Reports calls that drop activations. `holter run` runs it after the
    script has ended.

    ## Why it matters
    Predictions are random and worse than they could be: validation and test metrics are too low and
    differ from pass to pass, and so do predictions in production.

    ## Example
    ```python
    x = F.dropout(x, p=0.5)                            # bad
    x = F.dropout(x, p=0.5, training=self.training)    # good
    ```

    ## What to do
    Pass `training=self.training` to `F.dropout`, or use `nn.Dropout`, which `eval()` switches off.
    Give attention `dropout_p=self.p if self.training else 0.0`.

    ## When it is wrong
    Dropout that stays on to sample many predictions (Monte Carlo dropout).

    ## How to confirm
    - Call the model twice in eval mode on the same inputs: the outputs must be equal.
    """
    shares = {name: float(each.values.max()) for name, each in facts.run[EVAL_DROPOUT].items()}
    active = {name: share for name, share in shares.items() if share > 0}
    if not active:
        yield dropout_in_evaluation.clear("no dropout function drops anything in eval mode")
        return
    name, share = max(active.items(), key=lambda each: each[1])
    yield dropout_in_evaluation.finding(
        f"`{name}` drops {percent(share)} of its inputs in eval mode",
        confidence=Confidence.CERTAIN,
        onset=0,
        evidence=(Evidence(EVAL_DROPOUT, (0, 0), f"{percent(share)} in eval mode", name),),
        fix="pass `dropout_p=p if self.training else 0.0`"
        if name == "scaled_dot_product_attention"
        else "pass `training=self.training` to it, or use `nn.Dropout`",
    )
