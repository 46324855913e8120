"""The source uses uniform noise in place of normal noise."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "uniform noise": Mistake(
        "`{code}` adds uniform noise in [0, 1) as if it were normal: all samples are above"
        " the mean, at 0.5 standard deviations on average",
        "draw normal noise: `torch.randn_like(std)`",
    ),
}


@rule(severity=Severity.WARNING, level=Level.ARCHITECTURE, needs=(LOSS,), preview=True)
def uniform_noise(facts: Facts) -> Iterator[Verdict]:
    """The source uses uniform noise in place of normal noise.

    ## What it does
    Reads the source of the script and of the modules next to it. It reports a mean plus a standard
    deviation times noise from `torch.rand` or `torch.rand_like`.

    ## Why it matters
    `rand` is uniform in [0, 1); the formula needs `randn`. A decoder is trained only on latent
    values above the mean but samples from all of them, a policy explores in one direction only, and
    a KL term or log-probability does not match the noise.

    ## Example
    ```python
    latent = mu + torch.rand_like(std) * std   # bad
    latent = mu + torch.randn_like(std) * std  # good
    ```

    ## What to do
    Use `torch.randn_like(std)`, or `torch.distributions.Normal(mu, std).rsample()`.

    ## When it is wrong
    The distribution is uniform on purpose, and its bounds are named like a mean and a standard
    deviation.

    ## How to confirm
    - Draw 10,000 samples and compare their mean and standard deviation with `mu` and `std`.
    """
    yield from concluded(uniform_noise, facts, _MISTAKES)
