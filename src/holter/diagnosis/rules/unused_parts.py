"""The source makes a part of the training that nothing uses."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "unused head": Mistake(
        "`{code}`: nothing uses `{subject}`, and two losses compare another output with different"
        " targets",
        "give each loss the output that belongs to its target, one of them `{subject}`",
    ),
    "unused sampler": Mistake(
        "`{code}`: no loader is given `{subject}`, so classes are drawn as often as they occur",
        "pass it to the loader: `DataLoader(data, batch_size=64, sampler={subject})`",
        Confidence.HINT,
    ),
    "unused scheduler": Mistake(
        "`{code}`: nothing steps `{subject}`, so the learning rate stays at its initial value",
        "call `{subject}.step()` after `optimizer.step()`, or remove the scheduler",
        Confidence.HINT,
    ),
    "unused weights": Mistake(
        "`{code}`: no loss is given `{subject}`, so it counts every sample alike",
        "pass them to the loss: `nn.CrossEntropyLoss(weight={subject})`",
        Confidence.HINT,
    ),
    "unused term": Mistake(
        "`{code}`: `{subject}` is computed and is no part of the loss that `backward()` is called"
        " on",
        "add it: `loss = loss + {subject}`, or remove it",
        Confidence.HINT,
    ),
    "unapplied initialisation": Mistake(
        "nothing calls `{subject}`: the weights keep the default initialisation of torch",
        "call it when the model is built: `model.apply(init_weights)`, or"
        " `self.reset_parameters()` at the end of `__init__`",
        Confidence.HINT,
    ),
    "copied optimizer": Mistake(
        "`{code}` is the second optimizer of the same parameters, and `{subject}` has none: it is"
        " never trained",
        "pass it the other network: `{subject}.parameters()`",
    ),
}


@rule(severity=Severity.WARNING, level=Level.PROCEDURE, needs=(LOSS,), preview=True)
def unused_parts(facts: Facts) -> Iterator[Verdict]:
    """The source makes a part of the training that nothing uses.

    ## What it does
    Reads the source of the script and of modules beside it. In a file that trains, it reports a
    sampler, a scheduler, weights of classes, a term of the loss, an output of the model and a
    function that initialises weights, if the source never uses them. It also reports a network that
    no optimizer holds beside one that two of them hold.

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
    It is left over from something that the script does no longer, or it is switched off on purpose.

    ## How to confirm
    - Search the source for the name: no other statement reads it.
    """
    yield from concluded(unused_parts, facts, _MISTAKES)
