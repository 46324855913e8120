"""The source applies a temperature to only one of two compared distributions."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "one-sided temperature": Mistake(
        "`{code}` has no temperature, but the logits of the distribution it is compared with are"
        " divided by `{subject}`: only one of the two is softened",
        "divide both logits by `{subject}` in the distillation term",
    ),
    "softened labels": Mistake(
        "`{code}` also divides the logits by `{subject}` in the hard-label loss: the student needs"
        " {subject} times larger logits for the same loss",
        "use unscaled logits for the hard labels, and the temperature only for the distillation"
        " term",
    ),
}


@rule(severity=Severity.WARNING, level=Level.ARCHITECTURE, needs=(LOSS,), preview=True)
def one_sided_temperature(facts: Facts) -> Iterator[Verdict]:
    """The source applies a temperature to only one of two compared distributions.

    ## What it does
    Reads the source of the script and of the modules next to it. It reports a Kullback-Leibler
    divergence between two softmax distributions of which only one has a temperature above 1.

    ## Why it matters
    Distillation must apply the temperature to student and teacher alike. If only the teacher is
    softened, the student learns the flat probabilities: its accuracy is fine, but its likelihood
    and calibration are poor.

    ## Example
    ```python
    loss = kl_div(log_softmax(student, -1), softmax(teacher / 4, -1))      # bad
    loss = kl_div(log_softmax(student / 4, -1), softmax(teacher / 4, -1))  # good
    ```

    ## What to do
    Divide both logits by the temperature, and multiply the term by its square, so that its gradient
    keeps its size.

    ## When it is wrong
    Flat predictions are intended, as in teacher-based label smoothing.

    ## How to confirm
    - Compare the mean entropy of the predictions of student and teacher on held-out data.
    """
    yield from concluded(one_sided_temperature, facts, _MISTAKES)
