"""The same training step gives different results when it is repeated."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.repeats import Repetition, repetition
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import DETERMINISM_ELEMENTS, DETERMINISM_ULPS


@rule(
    severity=Severity.INFO,
    level=Level.NUMERICS,
    needs=(DETERMINISM_ELEMENTS, DETERMINISM_ULPS),
    preview=True,
)
def nondeterministic_step(facts: Facts) -> Iterator[Verdict]:
    """The same training step gives different results when it is repeated.

    ## What it does
    `holter try determinism` repeats one step from the same weights, batch and random numbers and
    compares loss, gradients and weights bit for bit. If they differ, it names the first operation
    whose result differs, the size of the difference in units in the last place, and whether
    deterministic algorithms remove it.

    ## Why it matters
    Two runs with one seed drift apart, so the effect of a change cannot be distinguished from
    chance, and a failure cannot be reproduced. The training itself is usually not damaged.

    ## Example
    ```python
    rows = table[tokens]                     # its gradient adds in any order    # bad
    holter.deterministic(0)                  # at the top of the script          # good
    ```

    ## What to do
    Call `holter.deterministic(seed)` at the top of the script. If torch has no deterministic
    algorithm for the operation, replace it. If an operation receives different values each time,
    seed the generator that draws them.

    ## When it is wrong
    The difference is measured and always real. Differences of a few units in the last place are
    normal on a GPU and matter only if runs must repeat exactly.

    ## How to confirm
    - `holter try determinism --option repeats=32 SCRIPT`
    """
    repeated = repetition(facts.run)
    if not repeated.differing:
        yield nondeterministic_step.clear(
            f"loss, gradients and weights were equal bit for bit in {repeated.count} repetitions"
        )
        return
    yield nondeterministic_step.finding(
        _summary(repeated),
        confidence=Confidence.CERTAIN,
        onset=0,
        evidence=tuple(
            Evidence(DETERMINISM_ELEMENTS, (0, repeated.count - 1), part.says, part.name)
            for part in repeated.differing
        ),
        fix=_fix(repeated),
        severity=None if repeated.cause == "kernel" else Severity.WARNING,
    )


def _summary(repeated: Repetition) -> str:
    first = repeated.differing[0]
    says = f"the {first.name} differ{'s' if first.name == 'loss' else ''} in {first.says}"
    operation = repeated.operation
    if operation is None:
        return f"{says}; no single operation was identified"
    place = f" at {operation.where}" if operation.where else ""
    line = f": `{operation.line}`" if operation.line else ""
    return f"{says}; first in `{operation.operation}` of the {operation.phase} pass{place}{line}"


def _fix(repeated: Repetition) -> str:
    operation = repeated.operation
    if operation is not None and operation.cause == "input":
        return (
            f"the inputs of `{operation.operation}` are drawn or computed outside torch: seed that"
            " generator, for example `numpy.random.default_rng(seed)`"
        )
    if operation is not None and operation.cause == "random":
        return (
            f"`{operation.operation}` draws from its own generator: create it with"
            " `torch.Generator(device).manual_seed(seed)`"
        )
    if repeated.refused:
        return f"replace the operation; torch says: {repeated.refused}"
    cost = f" (a step takes {repeated.price})" if repeated.price else ""
    cured = "" if repeated.is_cured else "; differences remain with it, so look for other causes"
    return f"call `holter.deterministic(seed)` at the top of the script{cost}{cured}"
