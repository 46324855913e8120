"""The source divides the logits of one of two compared distributions by a temperature."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "one-sided temperature": Mistake(
        "`{code}` has no temperature, but the logits of the distribution that it is compared with"
        " are divided by `{subject}`: one of both is softened",
        "divide both logits by `{subject}` in the distillation term",
    ),
    "softened labels": Mistake(
        "`{code}` divides the scores by `{subject}` in the loss of the labels as well: the student"
        " needs {subject} times larger logits for the same loss",
        "use plain logits for the labels, and the temperature for the teacher's term only",
    ),
}


@rule(severity=Severity.WARNING, level=Level.ARCHITECTURE, needs=(LOSS,), preview=True)
def one_sided_temperature(facts: Facts) -> Iterator[Verdict]:
    """The source divides the logits of one of two compared distributions by a temperature.

    ## What it does
    Reads the source of the script and of modules beside it. It reports a Kullback-Leibler
    divergence of two softmax distributions of which one is softened by a temperature above 1.

    ## Why it matters
    A temperature of distillation has to soften student and teacher alike. If the teacher alone is
    softened, the student learns these flat probabilities as its own: its accuracy is fine, and its
    likelihood and its calibration are poor.

    ## Example
    ```python
    loss = kl_div(log_softmax(student, -1), softmax(teacher / 4, -1))      # bad
    loss = kl_div(log_softmax(student / 4, -1), softmax(teacher / 4, -1))  # good
    ```

    ## What to do
    Divide both logits by the temperature, and multiply the term by its square, so that its gradient
    keeps its size.

    ## When it is wrong
    Flat predictions are wanted, as those of a label smoothing by a teacher.

    ## How to confirm
    - Compare the mean entropy of the predictions of student and teacher on held-out data.
    """
    yield from concluded(one_sided_temperature, facts, _MISTAKES)
