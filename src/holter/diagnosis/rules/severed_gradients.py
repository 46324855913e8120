"""Weights affect the predictions but receive no gradient from them."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import exception, rule
from holter.diagnosis.wording import some
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import PATH_CHANGE, PATH_CUTS, PATH_ROUNDING, PATH_STOPS


@exception
def stop_gradient(facts: Facts) -> str | None:
    """A `detach()` in the forward pass stops the gradient on purpose."""
    stops = float(facts.run[PATH_STOPS][""].values[-1])
    return f"{stops:.0f} calls of `detach()` in the forward pass" if stops else None


@rule(
    severity=Severity.WARNING,
    level=Level.ARCHITECTURE,
    needs=(PATH_CHANGE, PATH_ROUNDING, PATH_STOPS),
    exceptions=(stop_gradient,),
    preview=True,
)
def severed_gradients(
    facts: Facts,
    *,
    min_change: Annotated[float, "change of the predictions in standard deviations"] = 1e-3,
) -> Iterator[Verdict]:
    """Weights affect the predictions but receive no gradient from them.

    ## What it does
    Uses the experiment `gradient-paths`, which follows the graph from the predictions to the
    weights and perturbs the weights that it does not reach. It reports modules whose weights
    nevertheless change the predictions.

    ## Why it matters
    The loss of the task cannot train such a module: a router, a gate, an encoder. At most a penalty
    reaches it, such as a load-balancing or KL term: it has gradients and changes, but learns
    nothing about the task.

    ## Example
    ```python
    y = experts[gate.argmax()](x)                       # bad
    y = gate.max() * experts[gate.argmax()](x)          # good
    ```

    ## What to do
    Make the predictions depend on the module's output through a differentiable operation: multiply
    the output of the chosen expert by its probability, use `rsample()` or `mu + std * noise` for
    samples, a straight-through estimator for rounding, and no `torch.no_grad()` in between.

    ## When it is wrong
    A selection trained by a policy gradient, as in hard attention, or by a separate loss, as in a
    proposal network.

    ## How to confirm
    - Print `torch.autograd.grad(predictions.sum(), module.parameters(), allow_unused=True)`: it
      holds None.
    """
    limit = max(float(facts.run[PATH_ROUNDING][""].values[-1]), min_change)
    changes = {
        name: float(series.values.max()) for name, series in facts.run[PATH_CHANGE].items() if name
    }
    severed = {name: change for name, change in changes.items() if change > limit}
    if not severed:
        yield severed_gradients.clear(
            f"the predictions depend on none of the {len(changes)} modules that their graph does"
            " not reach"
            if changes
            else "the graph of the predictions reaches all trainable weights"
        )
        return
    if (excuse := severed_gradients.excused(facts)) is not None:
        yield excuse
        return
    worst = max(severed, key=severed.__getitem__)
    cuts = sorted(facts.run[PATH_CUTS]) if PATH_CUTS in facts.run else []
    where = f" Results without a gradient come from `{'`, `'.join(cuts[:4])}`." if cuts else ""
    yield severed_gradients.finding(
        f"the predictions depend on {some(sorted(severed))}, by {severed[worst]:.2g} standard"
        " deviations when its weights are perturbed, but pass no gradient to them",
        confidence=Confidence.LIKELY,
        onset=0,
        evidence=(
            Evidence(
                PATH_CHANGE,
                (0, 0),
                f"{severed[worst]:.2g} standard deviations (rounding: {limit:.1g})",
                worst,
            ),
            *(
                Evidence(PATH_CUTS, (0, 0), "given a gradient, and returns none", cut)
                for cut in cuts[:2]
            ),
        ),
        fix=f"make the predictions depend on {worst} through a differentiable operation: multiply"
        f" by the probability of the choice, or sample with `rsample()`.{where}",
    )
