"""The source creates a part of the training that is never used."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "unused head": Mistake(
        "`{code}`: `{subject}` is never used, and two losses compare another output with different"
        " targets",
        "pass each loss the output that belongs to its target, one of them `{subject}`",
    ),
    "unused sampler": Mistake(
        "`{code}`: `{subject}` is not passed to a loader, so classes are drawn as often as they"
        " occur",
        "pass it to the loader: `DataLoader(data, batch_size=64, sampler={subject})`",
        Confidence.HINT,
    ),
    "unused scheduler": Mistake(
        "`{code}`: `{subject}` is never stepped, so the learning rate stays at its initial value",
        "call `{subject}.step()` after `optimizer.step()`, or remove the scheduler",
        Confidence.HINT,
    ),
    "unused weights": Mistake(
        "`{code}`: `{subject}` is not passed to a loss, so all samples have equal weight",
        "pass them to the loss: `nn.CrossEntropyLoss(weight={subject})`",
        Confidence.HINT,
    ),
    "unused term": Mistake(
        "`{code}`: `{subject}` is computed but is not part of the loss on which `backward()` is"
        " called",
        "add it: `loss = loss + {subject}`, or remove it",
        Confidence.HINT,
    ),
    "unapplied initialisation": Mistake(
        "`{subject}` is never called: the weights keep torch's default initialisation",
        "call it after building the model: `model.apply(init_weights)`, or"
        " `self.reset_parameters()` at the end of `__init__`",
        Confidence.HINT,
    ),
    "copied optimizer": Mistake(
        "`{code}` is a second optimizer of the same parameters, while `{subject}` has none and is"
        " never trained",
        "pass it the parameters of the other network: `{subject}.parameters()`",
    ),
}


@rule(severity=Severity.WARNING, level=Level.PROCEDURE, needs=(LOSS,), preview=True)
def unused_parts(facts: Facts) -> Iterator[Verdict]:
    """The source creates a part of the training that is never used.

    ## What it does
    Reads the source of the script and of the modules next to it. In a training file, it reports a
    sampler, a scheduler, class weights, a loss term, a model output or an initialisation function
    that is never used. It also reports a network without an optimizer while another network has
    two.

    ## Why it matters
    The training runs without it, and there is no error. Rare classes stay rare, the learning rate
    stays constant, or a term of the loss is not minimised.

    ## Example
    ```python
    loss = reconstruction  # bad
    loss = reconstruction + beta * kl  # good
    ```

    ## What to do
    Use it, or remove it from the source.

    ## When it is wrong
    It is a leftover, or disabled on purpose.

    ## How to confirm
    - Search the source for the name: no other statement uses it.
    """
    yield from concluded(unused_parts, facts, _MISTAKES)
