"""An optimizer holds parameters that never received a gradient."""

from collections.abc import Iterator, Mapping
from typing import Annotated

import numpy as np
import numpy.typing as npt

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.membership import (
    Parameter,
    all_step,
    by_optimizer,
    covering,
    ends_outside_parameters,
)
from holter.diagnosis.facts.windows import windows
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import some
from holter.record.findings import Confidence, Evidence, Finding, Level, Severity, Verdict
from holter.record.signals import (
    ACTIVATION_STD,
    GRAD_NORM,
    GRAPH_LOOSE_LEAVES,
    PARAMETER_OPTIMIZER,
    PARAMETER_TRAINABLE,
)

Groups = Mapping[int, list[Parameter]]
Steps = npt.NDArray[np.int64]


@rule(
    severity=Severity.WARNING,
    level=Level.ARCHITECTURE,
    needs=(PARAMETER_TRAINABLE, PARAMETER_OPTIMIZER),
)
def unreached_parameters(
    facts: Facts,
    *,
    min_steps: Annotated[int, "steps on which others of the optimizer had gradients"] = 10,
    minor: Annotated[float, "share of the parameters below which it is only information"] = 0.1,
) -> Iterator[Verdict]:
    """An optimizer holds parameters that never received a gradient.

    ## What it does
    Looks for trainable parameters in an optimizer whose `.grad` was None at every step while others
    had gradients, or while the graph of the loss ended at other tensors. It is an error if this is
    true of all parameters of an optimizer, and only information for a small share of them or for
    modules that were never called.

    ## Why it matters
    The graph is cut between these parameters and the loss. They keep their initial values, and the
    layers after the cut have to learn from random features.

    ## Example
    ```python
    logits = head(encoder(x).detach())  # bad
    logits = head(encoder(x))  # good
    ```

    ## What to do
    Look between the named module and the loss for `.detach()`, `.data`, `.item()`, `.numpy()`,
    `torch.tensor(...)` of a tensor, `torch.no_grad()` or an `argmax`. `requires_grad_()` on a
    result does not repair the cut: it only silences the error of `backward()`. If the module is
    unused, remove or freeze it.

    ## When it is wrong
    Modules that are not used yet: a rarely selected expert or task head, or an encoder that
    intentionally runs under `no_grad` in a first phase. Freeze it until then with
    `requires_grad_(False)`.

    ## How to confirm
    - After one `loss.backward()`, print the names in `model.named_parameters()` whose `.grad` is
      None.
    - Print `requires_grad` of each result from the named module to the loss: the cut is where it
      becomes False.
    """
    # parameters-outside-model reports what is in no model.
    groups = by_optimizer(p for p in facts.parameters if p.trainable and p.in_model)
    if not groups:
        yield unreached_parameters.not_examined(
            "no optimizer holds a trainable parameter of a model"
        )
        return
    if GRAD_NORM not in facts.run and not ends_outside_parameters(facts):
        yield unreached_parameters.not_examined("no gradient of a parameter was recorded")
        return
    reached, active = _arrivals(facts, groups)
    clear = True
    for optimizer, held in groups.items():
        missing = [p for p in held if p.name not in reached]
        if not missing:
            continue
        clear = False
        steps = active[optimizer]
        if not len(steps) and all_step(facts, len(groups)):  # it steps, without a single gradient
            steps = np.arange(facts.run.steps)
        unreached = [p for p in missing if (steps >= p.since).sum() >= min_steps]
        if unreached:
            yield _finding(facts, groups, optimizer, unreached, steps=steps, minor=minor)
        else:
            yield unreached_parameters.not_examined(
                f"{some([p.name for p in missing])}: no gradient yet, in {len(steps)} of the"
                f" {min_steps} steps needed"
            )
    if clear:
        count = sum(map(len, groups.values()))
        yield unreached_parameters.clear(
            f"all {count} trainable parameters that optimizers hold received a gradient"
        )


def _arrivals(facts: Facts, groups: Groups) -> tuple[set[str], dict[int, Steps]]:
    """The parameters that received a gradient, and the steps on which each optimizer had one.

    Reading stops when all received one: the steps do not matter then.
    """
    wanted = {p.name for held in groups.values() for p in held}
    reached: set[str] = set()
    active: dict[int, Steps] = dict.fromkeys(groups, np.empty(0, np.int64))
    for rows in windows(facts, GRAD_NORM) if GRAD_NORM in facts.run else ():
        reached.update(rows.owners[column] for column in np.flatnonzero(rows.present.any(axis=0)))
        if wanted <= reached:
            break
        column = {owner: index for index, owner in enumerate(rows.owners)}
        for optimizer, held in groups.items():
            columns = [column[p.name] for p in held if p.name in column]
            stepped = rows.steps[rows.present[:, columns].any(axis=1)]
            active[optimizer] = np.union1d(active[optimizer], stepped)
    return reached, active


def _finding(
    facts: Facts,
    groups: Groups,
    optimizer: int,
    unreached: list[Parameter],
    *,
    steps: Steps,
    minor: float,
) -> Finding:
    held = groups[optimizer]
    names = [p.name for p in unreached]
    everyone = {p.name for group in groups.values() for p in group}
    where = covering(names, everyone.difference(names))
    onset = min(p.since for p in unreached)
    count = int((steps >= onset).sum())
    which = f"optimizer {optimizer}" if len(groups) > 1 else "the optimizer"
    unused = len(names) < len(held) and _never_called(facts, names)
    if len(names) == len(held):
        severity = Severity.ERROR
    elif unused:
        severity = Severity.INFO
    else:
        severity = Severity.INFO if len(names) < minor * len(held) else Severity.WARNING
    evidence = [
        Evidence(
            PARAMETER_OPTIMIZER,
            (onset, facts.run.steps - 1),
            f"{names[0]} is held by {which}, and had no gradient on {count} steps",
            names[0],
        )
    ]
    fix = (
        f"remove the `detach()`, `no_grad()` or `.data` between {where[0]} and the loss; if it is"
        " not meant to be trained, freeze it"
    )
    loose = _loose_leaves(facts)
    if unused:
        fix = f"call {where[0]} in `forward()`, or remove it"
    elif len(names) == len(held) and loose is not None:
        evidence.append(loose)
        fix = (
            "remove `requires_grad_()` or `requires_grad=True` from the result that the loss is"
            " computed from, and what detaches it: `detach()`, `.data`, `.item()`,"
            " `torch.tensor(...)` or `no_grad()`"
        )
    return unreached_parameters.finding(
        f"no gradient reached {some(where)} in {count} steps: {len(names)} of the {len(held)}"
        f" trainable parameters that {which} holds"
        + ("; their modules were never called" if unused else ""),
        severity=severity,
        confidence=Confidence.HINT if unused else Confidence.CERTAIN,
        onset=onset,
        evidence=evidence,
        fix=fix,
    )


def _loose_leaves(facts: Facts) -> Evidence | None:
    """Return the tensors at which the graph of the loss ends, if they are no parameters."""
    if GRAPH_LOOSE_LEAVES not in facts.run or not len(loose := facts.run[GRAPH_LOOSE_LEAVES][""]):
        return None
    if loose.values.min() < 1:
        return None
    says = f"the graph of the loss ends at {loose.values[0]:.0f} that is not a parameter"
    return Evidence(GRAPH_LOOSE_LEAVES, (loose.first, loose.last), says)


def _never_called(facts: Facts, names: list[str]) -> bool:
    """Whether the modules of these parameters were watched and never called."""
    if ACTIVATION_STD not in facts.run:
        return False
    returned, modules = facts.run[ACTIVATION_STD], {name.rpartition(".")[0] for name in names}
    watched = [returned[module] for module in modules if module in returned]
    return len(watched) == len(modules) and not any(map(len, watched))
