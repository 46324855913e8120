"""The source fits preprocessing on held-out data, or changes it for all splits at once."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "refitted": Mistake(
        "`{code}` refits `{subject}` on held-out data: the same value gets a different code or"
        " scale than in training",
        "fit once on the training data, and only apply it to the other splits: `transform` instead"
        " of `fit_transform`, one vocabulary for all splits",
    ),
    "shared transform": Mistake(
        "`{code}` sets the transform of the data set shared by all parts of `random_split`, not"
        " only of `{subject}`",
        "give each part its own data set: `{subject}.dataset ="
        " copy.copy({subject}.dataset)` before it, or split indices and build two data sets",
    ),
    "own target": Mistake(
        "`{code}` computes a feature from the targets (`{subject}`) of the same rows, including"
        " the rows to predict",
        "compute the means on other rows: out of fold for training rows, on the training data for"
        " all others, or only on earlier rows",
    ),
    "fitted on held-out": Mistake(
        "`{code}` computes statistics of training and held-out data together",
        "compute them on the training data, and apply them to every part",
    ),
    "vocabulary of all": Mistake(
        "`{code}` builds the vocabulary from `{subject}`: words that occur only in held-out data"
        " are not treated as unknown",
        "build it from the training data only",
    ),
    "selected on all": Mistake(
        "`{code}` selects features using the targets of all rows of `{subject}`, including"
        " held-out rows: columns that fit them by chance are kept",
        "fit on the training rows: `selector.fit(x[train], y[train])`",
    ),
    "scaled on all": Mistake(
        "`{code}` is computed over all rows of `{subject}` before the split",
        "split first, and fit on the training rows",
        Confidence.HINT,  # the leak is small for a mean of many rows
    ),
    "own statistics": Mistake(
        "`{code}` standardises each split by its own mean and standard deviation, including"
        " `{subject}`: the same value becomes a different input",
        "compute mean and standard deviation on the training data, and pass them to the function",
    ),
    "augmented evaluation": Mistake(
        "`{code}` uses the deterministic transform for training and the random one for evaluation",
        "swap them: random crops and flips in training only",
    ),
    "scaled in training alone": Mistake(
        "`{code}` calls `{subject}` only for training samples: others reach the model on a"
        " different scale",
        "normalise every sample; only augmentation depends on the split",
    ),
}


@rule(severity=Severity.WARNING, level=Level.DATA, needs=(LOSS,), preview=True)
def refitted_preprocessing(facts: Facts) -> Iterator[Verdict]:
    """The source fits preprocessing on held-out data, or changes it for all splits at once.

    ## What it does
    Reads the source of the script and of the modules next to it. It reports a scaler, encoder or
    vocabulary that is fitted on training data and again on validation or test data, and a transform
    set on the data set that all parts of `random_split` share. It also reports scaling and feature
    selection computed on held-out rows, and target means that include the row itself.

    ## Why it matters
    The model receives different numbers for the same value than in training, and the validation
    result is worse or better than in production. With a shared transform, training loses its
    augmentation, or validation is augmented.

    ## Example
    ```python
    x_test = scaler.fit_transform(x_test)  # bad
    x_test = scaler.transform(x_test)      # good
    ```

    ## What to do
    Fit on the training data once, and apply the result to every split. Store it with the
    checkpoint. Create one data set per transform and split by indices.

    ## When it is wrong
    The method has no `transform` for new data, such as t-SNE, and is only used for a plot. The
    held-out data belong to a different task with its own vocabulary or scale.

    ## How to confirm
    - Pass one raw sample through both pipelines and compare the results.
    """
    yield from concluded(refitted_preprocessing, facts, _MISTAKES)
