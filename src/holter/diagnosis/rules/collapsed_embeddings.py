"""A model returns almost the same embedding for every sample."""

from collections.abc import Iterator, Sequence
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.chance import Standing
from holter.diagnosis.facts.collapse import Response
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import number
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import RESPONSE_SPREAD

_FIX = "stop the gradient of one branch with `detach()`, or add negative samples or a variance term"
_FIX_LATENT = "multiply the divergence by a weight that rises slowly from 0 to at most 1"


@rule(
    severity=Severity.WARNING,
    level=Level.ARCHITECTURE,
    needs=(RESPONSE_SPREAD,),
    preview=True,
)
def collapsed_embeddings(
    facts: Facts,
    *,
    min_units: Annotated[int, "units of an embedding"] = 4,
    min_steps: Annotated[int, "steps of training needed"] = 30,
    max_relative: Annotated[float, "spread over size of what no longer varies"] = 0.1,
    max_latent: Annotated[float, "size of mean and log-variance that equal the prior"] = 0.1,
    max_kept: Annotated[float, "share of the initial spread that is left"] = 0.3,
    max_fall: Annotated[float, "share of the initial spread over size that is left"] = 0.15,
) -> Iterator[Verdict]:
    """A model returns almost the same embedding for every sample.

    ## What it does
    Measures how much the outputs of a model, or of a part that the script calls separately, vary
    between the samples of a batch. It reports multi-unit outputs whose standard deviation falls to
    a small share of its initial value and of their size, and a mean and log-variance that both end
    near 0, the prior. It does not report runs whose loss beats the best constant prediction.

    ## Why it matters
    A constant embedding carries no information about the sample. Losses that only pull samples
    together (SimSiam without `detach`, pairs without negatives) have their minimum there, so the
    loss looks excellent.

    ## Example
    ```python
    loss = -F.cosine_similarity(p1, z2).mean()            # bad
    loss = -F.cosine_similarity(p1, z2.detach()).mean()   # good
    ```

    ## What to do
    Stop the gradient of one branch (`detach()`), use a predictor or a momentum encoder, add
    negative samples, or a variance term (VICReg, Barlow Twins). In an autoencoder, lower the weight
    of the divergence or raise it slowly from 0.

    ## When it is wrong
    Outputs that are meant to become alike, such as those of an adversary that has to lose.

    ## How to confirm
    - Print `z.std(0).mean() / z.square().mean().sqrt()` for a batch of embeddings `z`.
    """
    judged = [response for response in facts.responses if response.units >= min_units]
    if not judged or facts.run.steps < min_steps:
        yield collapsed_embeddings.not_examined("too few readings of multi-unit outputs")
        return
    collapsed = [
        response
        for response in judged
        if response.relative < max_relative
        and response.relative < max_fall * response.initial_relative
        and response.final < max_kept * response.initial
        and not response.given <= 0
    ] or _latents(facts.responses, max_latent)
    if not collapsed:
        least = min(judged, key=lambda response: response.relative)
        yield collapsed_embeddings.clear(f"{least.owner}: {_says(least)}")
        return
    first = collapsed[0]
    measured = f"{first.owner} returns almost the same embedding for every sample: {_says(first)}"
    chance = facts.chance
    if not isinstance(chance, str) and chance.standing is Standing.BETTER:
        yield collapsed_embeddings.harmless(f"{measured}, but {facts.run_outcome.says}")
        return
    yield collapsed_embeddings.finding(
        f"{measured}, {number(first.initial)} initially",
        confidence=Confidence.LIKELY,
        onset=first.fell_at(max_kept * first.initial),
        evidence=(
            Evidence(
                RESPONSE_SPREAD,
                (first.spread.first, first.spread.last),
                f"{number(first.initial)} initially, {number(first.final)} at the end",
                first.owner,
            ),
        ),
        fix=_FIX if first.relative < max_relative else _FIX_LATENT,
    )


def _latents(responses: Sequence[Response], limit: float) -> list[Response]:
    """Return the means of a latent whose mean and log-variance are 0 for every sample."""
    by_owner = {response.owner: response for response in responses}
    return [
        mean
        for owner, mean in by_owner.items()
        for place in range(1, 4)
        if owner.endswith(f"[{place}]")
        and (other := by_owner.get(f"{owner[:-3]}[{place + 1}]")) is not None
        and mean.units == other.units >= 2
        and max(mean.size, other.size) < limit
    ]


def _says(response: Response) -> str:
    return (
        f"the standard deviation between samples is {number(response.final)},"
        f" {number(response.relative)} times the size"
    )
