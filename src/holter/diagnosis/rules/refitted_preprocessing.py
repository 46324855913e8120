"""The source fits preprocessing to held-out data, or sets it for all splits at once."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "refitted": Mistake(
        "`{code}` fits `{subject}` to held-out data; it was fitted to other data for"
        " training, so that the same value gets another code or scale",
        "fit once, on the training data, and only apply it to the others: `transform` instead"
        " of `fit_transform`, one vocabulary for all splits",
    ),
    "shared transform": Mistake(
        "`{code}` sets the transform of the data set that all parts of `random_split` share,"
        " not only of `{subject}`",
        "give each part its own data set: `{subject}.dataset ="
        " copy.copy({subject}.dataset)` before it, or split indices and build two data sets",
    ),
    "own target": Mistake(
        "`{code}` computes a feature from the target (`{subject}`) of the very rows that it"
        " describes, and of those to be predicted",
        "compute the means on other rows: out of fold for the training data, on the training"
        " data for the rest, or on earlier rows only",
    ),
    "fitted on held-out": Mistake(
        "`{code}` computes statistics of training and held-out data together",
        "compute them on the training data, and apply them to every part",
    ),
    "vocabulary of all": Mistake(
        "`{code}` builds the vocabulary of `{subject}`: held-out words are known, which are unknown"
        " words in use",
        "build it of the training data alone",
    ),
    "selected on all": Mistake(
        "`{code}` selects features by the targets of all rows of `{subject}`, held-out ones"
        " included: columns that fit them by chance are kept",
        "fit on the training rows: `selector.fit(x[train], y[train])`",
    ),
    "scaled on all": Mistake(
        "`{code}` is computed of all rows of `{subject}` before they are split",
        "split first, and fit on the training rows",
        Confidence.HINT,  # the leak is small for a mean of many rows
    ),
    "own statistics": Mistake(
        "`{code}` standardises each part by its own mean and deviation, `{subject}` as well:"
        " the same value becomes another input",
        "compute mean and deviation on the training data, and pass them to the function",
    ),
    "augmented evaluation": Mistake(
        "`{code}` gives training the fixed transform and evaluation the random one",
        "exchange both: random crops and flips for training only",
    ),
    "scaled in training alone": Mistake(
        "`{code}` calls `{subject}` for training samples only: others reach the model on"
        " another scale",
        "normalise every sample; only augmentation depends on the part",
    ),
}


@rule(severity=Severity.WARNING, level=Level.DATA, needs=(LOSS,), preview=True)
def refitted_preprocessing(facts: Facts) -> Iterator[Verdict]:
    """The source fits preprocessing to held-out data, or sets it for all splits at once.

    ## What it does
    Reads the source of the script and of modules beside it. It reports a scaler, an encoder or a
    vocabulary that is fitted to training data and again to validation or test data, and a transform
    that is set on the data set behind one part of `random_split`, which all parts share. It also
    reports scales and selections that are computed of held-out rows, and features that are means of
    the target over rows with the row itself among them.

    ## Why it matters
    A model gets other numbers for the same value than in training, and the validation result is
    worse or better than what a deployed model reaches. With a shared transform, training loses its
    augmentation, or validation is augmented.

    ## Example
    ```python
    x_test = scaler.fit_transform(x_test)  # bad
    x_test = scaler.transform(x_test)      # good
    ```

    ## What to do
    Fit on the training data once, and apply the result to every split. Store it with the
    checkpoint. Build one data set for each transform and split by indices.

    ## When it is wrong
    The method has no `transform` for new data, as t-SNE, and is only used for a plot. The held-out
    data belong to another task that has a vocabulary or scale of its own.

    ## How to confirm
    - Pass one raw sample through both pipelines and compare the results.
    """
    yield from concluded(refitted_preprocessing, facts, _MISTAKES)
