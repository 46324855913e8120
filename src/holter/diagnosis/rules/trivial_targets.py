"""The source trains a model to return its own input, or compares a sample with itself."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "same view": Mistake(
        "`{code}` embeds one input twice and never uses `{subject}`: pairs are equal, so there is"
        " nothing to learn",
        "embed the other one: `model({subject})`",
    ),
    "repeated view": Mistake(
        "`{code}` returns the same random view, `{subject}`, twice: both views of a pair are equal",
        "augment twice: `return transform(image), transform(image)`",
    ),
    "own positives": Mistake(
        "`{code}`: the label of each row of the similarities is the row itself, not its other view",
        "shift the labels by the number of pairs: `(torch.arange(2 * n) + n) % (2 * n)`",
    ),
    "unmasked self": Mistake(
        "`{code}` compares all rows of `{subject}` with each other without excluding the row"
        " itself: each row is most similar to itself",
        "exclude the diagonal: `similarity.fill_diagonal_(float('-inf'))`",
    ),
    "own branch": Mistake(
        "`{code}` compares a prediction with `{subject}`, from which it was computed, instead of"
        " the other view",
        "swap the targets: `d(p1, z2) + d(p2, z1)`",
    ),
    "unstopped branch": Mistake(
        "`{code}` also propagates gradients through `{subject}`, and there are no negatives:"
        " constant embeddings minimise this loss",
        "stop the gradient of the target: `{subject}.detach()`",
    ),
    "repeated anchor": Mistake(
        "`{code}` receives `{subject}` twice: one distance of the triplet is 0, or both are the"
        " same",
        "pass three different embeddings: `triplet(anchor, positive, negative)`",
    ),
    "noisy target": Mistake(
        "`{code}` compares the reconstruction with its noisy input: the model learns to copy the"
        " noise",
        "compare it with the clean input: `mse_loss(model(noisy), {subject})`",
    ),
    "unused time": Mistake(
        "`{code}` never uses `{subject}`: the model cannot adapt to the noise level of the step",
        "embed `{subject}`, and add it to the features",
        Confidence.HINT,
    ),
}


@rule(severity=Severity.WARNING, level=Level.PROCEDURE, needs=(LOSS,), preview=True)
def trivial_targets(facts: Facts) -> Iterator[Verdict]:
    """The source trains a model to return its own input, or compares a sample with itself.

    ## What it does
    Reads the source of the script and of the modules next to it. It reports identical views of a
    pair, rows of a similarity matrix that are their own positives or candidates, predictions
    compared with their own branch, branches without negatives or stop-gradient, triplets of only
    two embeddings, and a denoising autoencoder whose target is the noisy input. It also reports a
    denoiser that never uses its time step.

    ## Why it matters
    The loss quickly falls to nearly 0, because a trivial solution minimises it. The embeddings are
    useless.

    ## Example
    ```python
    z1, z2 = model(view1), model(view1)  # bad
    z1, z2 = model(view1), model(view2)  # good
    ```

    ## What to do
    Compare each sample with a different view of it, and with other samples.

    ## When it is wrong
    The model itself is random, as with dropout as the only augmentation, or the unused variable is
    a leftover.

    ## How to confirm
    - Print the loss of the untrained model: for a non-trivial task it is far above 0.
    """
    yield from concluded(trivial_targets, facts, _MISTAKES)
