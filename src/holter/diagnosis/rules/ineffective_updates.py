"""The source erases gradients, or trains in the wrong mode or with the wrong parameters."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "erased accumulation": Mistake(
        "`{code}` clears the gradients for every batch, but `{subject}` steps after several: only"
        " the last batch counts",
        "clear them after the step, under the same condition",
    ),
    "undivided accumulation": Mistake(
        "`{code}` accumulates the gradients of several batches without dividing: they are"
        " `{subject}` times as large as those of one batch, also for clipping",
        "divide each loss: `(loss / {subject}).backward()`",
        Confidence.HINT,
    ),
    "step after the first batch": Mistake(
        "`{code}` is true for the first batch, whose index is 0: `{subject}` takes its first step"
        " with the gradient of one batch, and the last batches of an epoch may be lost",
        "count from 1: `if (index + 1) % steps == 0 or index + 1 == len(loader):`",
    ),
    "cleared before the step": Mistake(
        "`{code}` clears the gradients between `backward()` and `{subject}.step()`: the step"
        " changes nothing",
        "call it before `backward()`, or after the step",
    ),
    "early clipping": Mistake(
        "`{code}` clips before `{subject}`: the gradients of this step are not limited",
        "clip between `backward()` and `optimizer.step()`",
    ),
    "late clipping": Mistake(
        "`{code}` clips after `{subject}`: the update was made with the full gradients",
        "clip between `backward()` and `optimizer.step()`",
    ),
    "clipped with the scale": Mistake(
        "`{code}` clips gradients that still have the loss scale of `{subject}`: almost every"
        " step is clipped",
        "call `{subject}.unscale_(optimizer)` before clipping",
    ),
    "masked in every mode": Mistake(
        "`{code}` masks at random in evaluation as well: `{subject}` does not depend on the mode"
        " of the model",
        "`if self.training: x = self.{subject}(x)`",
    ),
    "augmented held-out": Mistake(
        "`{code}` augments held-out samples at random (`{subject}`): metrics are computed on"
        " modified data, and differ between epochs",
        "augment training data only",
    ),
    "bypassed scaler": Mistake(
        "`{code}` steps without `{subject}`: steps with infinite gradients are not skipped, and"
        " without `unscale_` the gradients keep the scale",
        "`{subject}.step(optimizer); {subject}.update()`",
    ),
    "scaler never updated": Mistake(
        "`{code}` is not followed by `{subject}.update()`: the loss scale never adapts",
        "call `{subject}.update()` after the step",
    ),
    "training mode lost": Mistake(
        "`{code}` sets `{subject}` to evaluation mode, and nothing in the training loop sets it"
        " back: dropout and BatchNorm stay in evaluation mode",
        "call `{subject}.train()` at the start of each epoch",
    ),
    "evaluation mode undone": Mistake(
        "`{code}` sets all modules to training mode, including `{subject}`, which was just set to"
        " evaluation mode",
        "call `eval()` on the frozen modules after `train()`",
    ),
    "dropout in every mode": Mistake(
        "`{code}` drops activations in evaluation mode as well: `F.dropout` does not depend on the"
        " mode of `{subject}`",
        "pass the mode: `F.dropout(x, p, training=self.training)`",
    ),
    "model without optimizer": Mistake(
        "`{code}` does not hold the parameters of `{subject}`, whose gradients are clipped: they"
        " are never updated",
        "add them: `list(a.parameters()) + list({subject}.parameters())`",
    ),
    "part after the optimizer": Mistake(
        "`{code}` creates a part of the model after `{subject}` received the parameters: it is"
        " never updated",
        "build the optimizer after the model is complete",
    ),
    "frozen new part": Mistake(
        "`{code}` also freezes the new part `{subject}`, and nothing unfreezes it: it keeps its"
        " initial weights",
        "freeze the pretrained parameters before the new part is created",
    ),
    "critic moved by generator": Mistake(
        "`{code}` also holds the parameters of `{subject}`, which another optimizer trains: each"
        " generator step undoes what the critic learned",
        "pass only the parameters of the generator to this optimizer",
    ),
}


@rule(severity=Severity.WARNING, level=Level.PROCEDURE, needs=(LOSS,), preview=True)
def ineffective_updates(facts: Facts) -> Iterator[Verdict]:
    """The source erases gradients, or trains in the wrong mode or with the wrong parameters.

    ## What it does
    Reads the source of the script and of the modules next to it. It reports gradients that are
    cleared between the batches of one update or before the step, clipping before the backward pass,
    after the step or of scaled gradients, modules that stay in the wrong mode, and optimizers that
    lack the parameters of a trained model or part.

    ## Why it matters
    There is no error. An accumulated step uses one batch, clipping limits nothing, dropout is off
    after the first evaluation, and a model without an optimizer keeps its initial weights.

    ## Example
    ```python
    loss.backward(); optimizer.step(); clip_grad_norm_(model.parameters(), 1.0)   # bad
    loss.backward(); clip_grad_norm_(model.parameters(), 1.0); optimizer.step()   # good
    ```

    ## What to do
    Clear the gradients once per update, clip between `backward()` and `step()`, set the mode at the
    start of each epoch, and build the optimizer after the model is complete.

    ## When it is wrong
    A model is trained in evaluation mode or with a frozen part on purpose.

    ## How to confirm
    - Print the gradient norm before each update, and `model.training` in the training loop.
    """
    yield from concluded(ineffective_updates, facts, _MISTAKES)
