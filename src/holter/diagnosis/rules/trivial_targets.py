"""The source asks a model for what it is given, or compares a sample with itself."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "same view": Mistake(
        "`{code}` embeds one input twice, and nothing reads `{subject}`: pairs are equal, and"
        " training has nothing to learn from them",
        "embed the other one: `model({subject})`",
    ),
    "repeated view": Mistake(
        "`{code}` returns one random view, `{subject}`, twice: both views of a pair are equal",
        "draw twice: `return transform(image), transform(image)`",
    ),
    "own positives": Mistake(
        "`{code}`: the label of each row of the similarities is the row itself, not its other view",
        "shift the labels by the number of pairs: `(torch.arange(2 * n) + n) % (2 * n)`",
    ),
    "unmasked self": Mistake(
        "`{code}` compares all rows of `{subject}` with each other, and never excludes a row from"
        " its own candidates: each is the most similar to itself",
        "exclude the diagonal: `similarity.fill_diagonal_(float('-inf'))`",
    ),
    "own branch": Mistake(
        "`{code}` compares a prediction with `{subject}`, from which it was made, and never with"
        " the other view",
        "exchange the targets: `d(p1, z2) + d(p2, z1)`",
    ),
    "unstopped branch": Mistake(
        "`{code}` sends a gradient through `{subject}` as well, and there are no negatives:"
        " constant embeddings minimise this loss",
        "stop the gradient of the target: `{subject}.detach()`",
    ),
    "repeated anchor": Mistake(
        "`{code}` is given `{subject}` twice: one distance of the triplet is 0, or both are the"
        " same",
        "pass three different embeddings: `triplet(anchor, positive, negative)`",
    ),
    "noisy target": Mistake(
        "`{code}` compares the reconstruction with its noisy input: the model learns to copy the"
        " noise",
        "compare it with the input before the noise: `mse_loss(model(noisy), {subject})`",
    ),
    "unused time": Mistake(
        "`{code}` never reads `{subject}`: the model removes the same noise at every step",
        "embed `{subject}`, and add it to the features",
        Confidence.HINT,
    ),
}


@rule(severity=Severity.WARNING, level=Level.PROCEDURE, needs=(LOSS,), preview=True)
def trivial_targets(facts: Facts) -> Iterator[Verdict]:
    """The source asks a model for what it is given, or compares a sample with itself.

    ## What it does
    Reads the source of the script and of modules beside it. It reports two views of a pair that are
    the same, rows of a similarity matrix that are their own positives or are not excluded from
    their own candidates, predictions of the branch that they are made of, branches without
    negatives or a stop of the gradient, triplets of two embeddings, and a denoising autoencoder
    whose target is the noisy input. It also reports a denoiser that never reads its time.

    ## Why it matters
    The loss falls fast and to nearly 0, because an answer without any feature minimises it. The
    embeddings are useless for everything else.

    ## Example
    ```python
    z1, z2 = model(view1), model(view1)  # bad
    z1, z2 = model(view1), model(view2)  # good
    ```

    ## What to do
    Compare each sample with another view of it, and with other samples.

    ## When it is wrong
    The model itself is random, as with dropout as the only augmentation, and what is left unread is
    left over.

    ## How to confirm
    - Print the loss of the untrained model: it is far above 0 for a task that has to be learned.
    """
    yield from concluded(trivial_targets, facts, _MISTAKES)
