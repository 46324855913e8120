"""The source misinterprets the type, unit or scale of numbers."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "wrapped bytes": Mistake(
        "`{code}` computes with `{subject}` in uint8: results below 0 and above 255 wrap around",
        "convert first: `image.astype(np.float32) - 128`",
    ),
    "rounded stamps": Mistake(
        "`{code}` converts Unix times to float32, whose spacing there is 128 s, before taking a"
        " difference",
        "subtract in float64 or in integers, and convert the difference",
    ),
    "kept sentinel": Mistake(
        "`{code}` marks missing values by {subject}; the source checks for NaN but never for this"
        " number",
        "mark them by NaN, or replace the number first: `x[x == {subject}] = np.nan`",
    ),
    "degrees as radians": Mistake(
        "`{code}` takes the sine or cosine of `{subject}`, which is in degrees: the period is 6.28"
        " degrees",
        "convert first: `np.deg2rad({subject})`, or `torch.deg2rad({subject})`",
    ),
    "another period": Mistake(
        "`{code}` encodes a value with a period that is too short (its own: {subject}): different"
        " values get the same code",
        "divide by the period: `np.sin(2 * np.pi * hour / 24)`; 12 for months, 7 for weekdays",
    ),
    "divided twice": Mistake(
        "`{code}` divides `{subject}` by 255 a second time: all inputs are below 0.004",
        "divide once; `ToTensor` divides by 255 itself",
    ),
    "smoothed mask": Mistake(
        "`{code}` interpolates the class indices of `{subject}`: between class 0 and class 2 it"
        " creates pixels of class 1",
        "use nearest-neighbour interpolation for masks: `mode='nearest'`",
    ),
    "gaps as targets": Mistake(
        "`{code}` replaces missing targets by 0 and trains on them: the model learns to predict"
        " the placeholder",
        "exclude them: `known = ~torch.isnan(y); loss = F.mse_loss(p[known], y[known])`",
    ),
    "undone otherwise": Mistake(
        "`{code}` adds before it multiplies by {subject}: the inverse of `(y - mean) / std`"
        " multiplies first",
        "`y = prediction * std + mean`",
    ),
    "another scaler": Mistake(
        "`{code}` applies the inverse of the input scaler to predictions; the targets have their"
        " own scaler",
        "use the target scaler: `y_scaler.inverse_transform(prediction)`",
    ),
    "constants of bytes": Mistake(
        "`{code}` subtracts `{subject}`, a mean on the scale 0 to 255, after `ToTensor` has"
        " divided by 255: all inputs are nearly equal",
        "divide mean and standard deviation by 255",
    ),
}


@rule(severity=Severity.WARNING, level=Level.DATA, needs=(LOSS,), preview=True)
def misread_numbers(facts: Facts) -> Iterator[Verdict]:
    """The source misinterprets the type, unit or scale of numbers.

    ## What it does
    Reads the source of the script and of the modules next to it. It reports a constant subtracted
    from `uint8` images, Unix times converted to float32 before taking a difference, and missing
    values marked by a number such as -999 in a file that checks for NaN. It also reports degrees
    used as radians, hours, months and weekdays encoded with a period that is too short, images
    divided by 255 twice, interpolated class masks, missing targets trained as 0, and
    standardisation undone in the wrong order or with the wrong scaler.

    ## Why it matters
    There is no error. Dark pixels become bright, seconds are rounded to two minutes, and a column
    is standardised by the mean and standard deviation of its placeholder. The information is lost
    before it reaches the model.

    ## Example
    ```python
    image = torch.from_numpy(pixels - 128).float()   # bad
    image = torch.from_numpy(pixels).float() - 128   # good
    ```

    ## What to do
    Convert to a type that can hold the results before computing. Use a single marker for missing
    values, and check for it.

    ## When it is wrong
    The arithmetic is intentionally modulo 256. Times are only needed to within minutes. The number
    is a valid value that the model should see.

    ## How to confirm
    - Print the minimum, the maximum and the number of distinct values after the statement.
    """
    yield from concluded(misread_numbers, facts, _MISTAKES)
