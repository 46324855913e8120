"""A generative model in the source is trained or sampled with the wrong formula."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "variance as deviation": Mistake(
        "`{code}` scales noise by `{subject}`, which is not the standard deviation of a"
        " log-variance",
        "take half of the log-variance: `std = torch.exp(0.5 * logvar)`",
    ),
    "logits as pixels": Mistake(
        "`{code}` shows `{subject}`, which the loss treats as logits: pixels with a probability"
        " below 0.5 become black",
        "take the sigmoid: `torch.sigmoid({subject})`",
    ),
    "missing root": Mistake(
        "`{code}` mixes data and noise with coefficients of `{subject}` that lack one or both"
        " square roots: the variances do not add up to 1",
        "take both roots: `bar.sqrt() * x + (1 - bar).sqrt() * noise`",
    ),
    "single step": Mistake(
        "`{code}` uses the {subject} of a single step instead of the cumulative product",
        "index the cumulative product: `alpha_bars = torch.cumprod(alphas, dim=0)`",
    ),
    "product in step": Mistake(
        "`{code}` divides the mean of one reverse step by `{subject}`, the cumulative product",
        "divide by the alpha of the step: `(x - beta / (1 - bar).sqrt() * eps) / alpha.sqrt()`",
    ),
    "ascending steps": Mistake(
        "`{code}` starts sampling at the step with the least noise: `{subject}` is ascending",
        "begin with the last step: `for t in reversed(range(T))`",
    ),
    "other target": Mistake(
        "`{code}` treats the output of a model that is trained to predict {subject} as something"
        " else when sampling",
        "convert the output: `x0 = (x - (1 - bar).sqrt() * eps) / bar.sqrt()`, or train on the"
        " other target",
    ),
    "inverse in order": Mistake(
        "`{code}` inverts `{subject}` in the order in which the layers are applied: the result is"
        " not the inverse",
        "begin with the last layer: `for layer in reversed({subject})`",
    ),
    "sees itself": Mistake(
        "`{code}` computes the scale from `{subject}`, the same part that it scales: the Jacobian"
        " is not triangular, and the layer has no closed-form inverse",
        "compute it from the unchanged part: `self.net(x * self.mask)`, or the other half",
    ),
    "same mask": Mistake(
        "`{code}` gives every layer the mask `{subject}`: the same half is never transformed",
        "alternate: `mask if i % 2 == 0 else 1 - mask`",
    ),
    "single constant": Mistake(
        "`{code}` sums squares over the dimensions but counts `{subject}` only once: the"
        " log-density is too large by that constant per additional dimension",
        "put the constant inside the sum: `-0.5 * (z.pow(2) + math.log(2 * math.pi)).sum(1)`",
    ),
    "same noise in every step": Mistake(
        "`{code}` draws noise once, before the loop: the generator is trained only on these values"
        " of `{subject}`, and its samples elsewhere are arbitrary",
        "draw in the loop: `{subject} = torch.randn(batch_size, latent_dim)`",
    ),
    "another noise": Mistake(
        "`{code}` and the noise that `{subject}` is evaluated on have different distributions,"
        " uniform in [0, 1) and normal: samples come from latent values never seen in training",
        "draw both with `torch.randn`",
    ),
    "range of generator": Mistake(
        "`{code}` gives the generator a different output range than the real images, which are in"
        " {subject}: the critic can distinguish them by range alone",
        "end with `nn.Tanh()` for images in [-1, 1] and with `nn.Sigmoid()` for [0, 1]",
    ),
    "unscaled images": Mistake(
        "`{code}` saves images of a generator that ends in tanh: `save_image` expects [0, 1], and"
        " negative values become black",
        "map them first: `save_image({subject} * 0.5 + 0.5, ...)`",
    ),
}


@rule(severity=Severity.WARNING, level=Level.PROCEDURE, needs=(LOSS,), preview=True)
def mistaken_sampling(facts: Facts) -> Iterator[Verdict]:
    """A generative model in the source is trained or sampled with the wrong formula.

    ## What it does
    Reads the source of the script and of the modules next to it. It reports latent noise scaled by
    the variance, logits shown as pixels, mixing coefficients without square roots, the alpha of one
    step instead of the cumulative product, sampling steps in ascending order, and outputs
    interpreted as a different prediction target. For flows, it reports an inverse in forward layer
    order, couplings conditioned on the part they scale, masks that never alternate, and a normal
    density whose constant is counted once.

    ## Why it matters
    The loss falls as usual. Samples are noise, blurred or all alike, or the printed log-likelihood
    is wrong.

    ## Example
    ```python
    std = torch.exp(logvar)        # bad
    std = torch.exp(0.5 * logvar)  # good
    ```

    ## What to do
    Compare the statement with the formula of the model, for training and sampling alike.

    ## When it is wrong
    A variable holds something other than its name suggests, such as a log standard deviation in
    `logvar`. A layer outside the file permutes the dimensions.

    ## How to confirm
    - Noise and invert one batch without training: a flow returns its input, and noised data have a
    variance of 1 at every step.
    """
    yield from concluded(mistaken_sampling, facts, _MISTAKES)
