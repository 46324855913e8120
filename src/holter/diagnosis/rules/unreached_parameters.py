"""Parameters are trained by an optimizer, but no gradient ever reached them."""

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.membership import (
    Parameter,
    all_step,
    by_optimizer,
    covering,
)
from holter.diagnosis.facts.windows import windows
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import some
from holter.record.findings import Confidence, Evidence, Finding, Level, Severity, Verdict
from holter.record.signals import (
    ACTIVATION_STD,
    GRAD_NORM,
    PARAMETER_OPTIMIZER,
    PARAMETER_TRAINABLE,
)

Groups = Mapping[int, list[Parameter]]
Steps = npt.NDArray[np.int64]


@rule(
    severity=Severity.WARNING,
    level=Level.ARCHITECTURE,
    needs=(PARAMETER_TRAINABLE, PARAMETER_OPTIMIZER, GRAD_NORM),
)
def unreached_parameters(
    facts: Facts, *, min_steps: int = 10, minor: float = 0.1
) -> Iterator[Verdict]:
    """Parameters are trained by an optimizer, but no gradient ever reached them.

    ## What it does
    Looks for trainable parameters in an optimizer whose `.grad` was None at every step, while
    others of the same optimizer had gradients on at least `min_steps` steps. It is an error when
    that is so for all parameters of an optimizer, and only information when it is so for less than
    the share `minor` of them: an unused pooler or mask token is common and does no harm. Where all
    of them belong to modules that were never called, it is a hint for information: a head that is
    not needed, or a stage whose turn has not come. A gradient that arrived and was zero does not
    count.

    ## Why it matters
    The graph is cut between these parameters and the loss. They keep their initial values, and
    what lies behind the cut has to learn from random features.

    ## What to do
    Look between the module named and the loss for `.detach()`, `.data`, `.item()`, `.numpy()`,
    `torch.tensor(...)` of a tensor, `torch.no_grad()` or an `argmax`. If the module is not used at
    all, remove it or freeze it.

    ## When it is wrong
    Modules whose turn has not come yet: a rarely chosen expert or task head, or an encoder that
    runs under `no_grad` in a first phase on purpose. Say so with `requires_grad_(False)` until
    then, or raise `min_steps`. A second optimizer that was never seen to step is left out.

    ## How to confirm
    - After one `loss.backward()`, print the names in `model.named_parameters()` whose `.grad` is
      None.
    - Walk from the output of the module named towards the loss and print `requires_grad`: the cut
      is where it turns False.
    """
    # What is in no model is the business of parameters-outside-model.
    groups = by_optimizer(each for each in facts.parameters if each.trainable and each.in_model)
    if not groups:
        yield unreached_parameters.not_examined(
            "no optimizer holds a trainable parameter of a model"
        )
        return
    reached, active = _arrivals(facts, groups)
    clear = True
    for optimizer, held in groups.items():
        missing = [each for each in held if each.name not in reached]
        if not missing:
            continue
        clear = False
        steps = active[optimizer]
        if not len(steps) and all_step(facts, len(groups)):  # it steps, without a single gradient
            steps = np.arange(facts.run.steps)
        unreached = [each for each in missing if (steps >= each.since).sum() >= min_steps]
        if unreached:
            yield _finding(facts, groups, optimizer, unreached, steps=steps, minor=minor)
        else:
            yield unreached_parameters.not_examined(
                f"{some([each.name for each in missing])}: no gradient yet, in {len(steps)} steps"
                f" of the optimizer; it takes {min_steps}"
            )
    if clear:
        count = sum(map(len, groups.values()))
        yield unreached_parameters.clear(
            f"a gradient reached all {count} trainable parameters that optimizers hold"
        )


def _arrivals(facts: Facts, groups: Groups) -> tuple[set[str], dict[int, Steps]]:
    """The parameters a gradient reached, and the steps on which each optimizer had one.

    Reading stops when all were reached: the steps do not matter then.
    """
    wanted = {each.name for held in groups.values() for each in held}
    reached: set[str] = set()
    active: dict[int, Steps] = dict.fromkeys(groups, np.empty(0, np.int64))
    for rows in windows(facts, GRAD_NORM):
        reached.update(rows.owners[column] for column in np.flatnonzero(rows.present.any(axis=0)))
        if wanted <= reached:
            break
        column = {owner: index for index, owner in enumerate(rows.owners)}
        for optimizer, held in groups.items():
            columns = [column[each.name] for each in held if each.name in column]
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
    names = [each.name for each in unreached]
    everyone = {each.name for group in groups.values() for each in group}
    where = covering(names, everyone.difference(names))
    onset = min(each.since for each in unreached)
    count = int((steps >= onset).sum())
    which = f"optimizer {optimizer}" if len(groups) > 1 else "the optimizer"
    unused = len(names) < len(held) and _never_called(facts, names)
    if len(names) == len(held):
        severity = Severity.ERROR
    elif unused:
        severity = Severity.INFO
    else:
        severity = Severity.INFO if len(names) < minor * len(held) else Severity.WARNING
    return unreached_parameters.finding(
        f"no gradient reached {some(where)} in {count} steps: {len(names)} of the {len(held)}"
        f" trainable parameters that {which} holds"
        + ("; their modules were never called" if unused else ""),
        severity=severity,
        confidence=Confidence.HINT if unused else Confidence.CERTAIN,
        onset=onset,
        evidence=(
            Evidence(
                PARAMETER_OPTIMIZER,
                (onset, facts.run.steps - 1),
                f"{names[0]} is trainable and held by {which}, which had gradients to use on"
                f" {count} steps; this parameter had none",
                names[0],
            ),
        ),
        fix=f"call {where[0]} in forward, or remove it"
        if unused
        else f"find the detach, no_grad or .data between {where[0]} and the loss; if it is not"
        " meant to be trained, freeze or remove it",
    )


def _never_called(facts: Facts, names: list[str]) -> bool:
    """Whether what these parameters' modules return was looked for, and never came."""
    if ACTIVATION_STD not in facts.run:
        return False
    returned, modules = facts.run[ACTIVATION_STD], {name.rpartition(".")[0] for name in names}
    known = [returned[each] for each in modules if each in returned]
    return len(known) == len(modules) and not any(map(len, known))
