"""The source computes with numbers that are not what it takes them for."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "wrapped bytes": Mistake(
        "`{code}` computes with `{subject}` in 8 bits without a sign: results below 0 and above 255"
        " wrap around",
        "convert first: `image.astype(np.float32) - 128`",
    ),
    "rounded stamps": Mistake(
        "`{code}` converts times since 1970 to float32, whose numbers are 128 s apart there, before"
        " it takes a difference",
        "subtract in float64 or in integers, and convert the difference",
    ),
    "kept sentinel": Mistake(
        "`{code}` marks missing values by {subject}; the source looks for NaN, and never for this"
        " number",
        "mark them by NaN, or replace the number first: `x[x == {subject}] = np.nan`",
    ),
    "degrees as radians": Mistake(
        "`{code}` takes the sine or cosine of `{subject}`, which is in degrees: the wave"
        " turns every 6.28 degrees",
        "convert first: `np.deg2rad({subject})`, or `torch.deg2rad({subject})`",
    ),
    "another period": Mistake(
        "`{code}` gives {subject} a shorter period than its own: different values get the"
        " same code",
        "divide by the period: `np.sin(2 * np.pi * hour / 24)`; 12 for months, 7 for weekdays",
    ),
    "divided twice": Mistake(
        "`{code}` divides `{subject}` by 255 a second time: all inputs are below 0.004",
        "divide once; `ToTensor` divides by 255 itself",
    ),
    "smoothed mask": Mistake(
        "`{code}` interpolates the class numbers of `{subject}`: between class 0 and class 2"
        " there are pixels of class 1",
        "use nearest-neighbour interpolation for masks: `mode='nearest'`",
    ),
    "gaps as targets": Mistake(
        "`{code}` replaces missing targets by 0 and trains on them: the model learns the"
        " number, not the quantity",
        "leave them out: `known = ~torch.isnan(y); loss = F.mse_loss(p[known], y[known])`",
    ),
    "undone otherwise": Mistake(
        "`{code}` adds before it multiplies by {subject}: the inverse of `(y - mean) / std`"
        " multiplies first",
        "`y = prediction * std + mean`",
    ),
    "another scaler": Mistake(
        "`{code}` undoes the scale of the inputs on predictions; the targets have a scaler"
        " of their own",
        "use the scaler of the targets: `y_scaler.inverse_transform(prediction)`",
    ),
    "constants of bytes": Mistake(
        "`{code}` subtracts `{subject}`, a mean of bytes, after `ToTensor` has divided by 255: all"
        " inputs are nearly the same number",
        "divide mean and deviation by 255",
    ),
}


@rule(severity=Severity.WARNING, level=Level.DATA, needs=(LOSS,), preview=True)
def misread_numbers(facts: Facts) -> Iterator[Verdict]:
    """The source computes with numbers that are not what it takes them for.

    ## What it does
    Reads the source of the script and of modules beside it. It reports a constant that is
    subtracted from images in `uint8`, times since 1970 that are converted to float32 before a
    difference is taken, and missing values that are marked by a number such as -999 in a file that
    looks for NaN. It also reports degrees that are taken for radians, hours, months and weekdays
    that are encoded with a shorter period, images that are divided by 255 twice, class masks that
    are interpolated, missing targets that are trained as 0, and scales that are undone in the wrong
    order or by another scaler.

    ## Why it matters
    Nothing fails. Dark pixels become bright, seconds are rounded to two minutes, and a column is
    standardised by the mean and deviation of its placeholder. The information is gone before the
    model is given it.

    ## Example
    ```python
    image = torch.from_numpy(pixels - 128).float()   # bad
    image = torch.from_numpy(pixels).float() - 128   # good
    ```

    ## What to do
    Convert to a type that holds the results before computing with them. Use one mark for a missing
    value, and look for that one.

    ## When it is wrong
    The arithmetic is meant to be modulo 256. Times are needed to within minutes only. The number is
    a value that the model is meant to see.

    ## How to confirm
    - Print the smallest and the largest value, and the number of distinct ones, after the
    statement.
    """
    yield from concluded(misread_numbers, facts, _MISTAKES)
