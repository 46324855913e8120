"""The best weights were kept without a copy, so restoring them changes nothing."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record import Event
from holter.record.events import StateLoaded
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS


@rule(severity=Severity.ERROR, level=Level.PROCEDURE, needs=(LOSS,), preview=True)
def aliased_checkpoint(facts: Facts) -> Iterator[Verdict]:
    """The best weights were kept without a copy, so restoring them changes nothing.

    ## What it does
    Compares the memory addresses of the tensors passed to `load_state_dict` with those of the
    module's own tensors. It reports a load during training in which all of them are the same: the
    weights are copied onto themselves.

    ## Why it matters
    `model.state_dict()` returns references to the weights, and every later step changes them.
    Nothing is restored: the model is tested and used with its last weights instead of the best
    ones.

    ## Example
    ```python
    if val_loss < best: best, state = val_loss, model.state_dict()                  # bad
    if val_loss < best: best, state = val_loss, copy.deepcopy(model.state_dict())   # good
    ```

    ## What to do
    Copy the weights when you store them: `copy.deepcopy(model.state_dict())`, or
    `{name: tensor.clone() for name, tensor in model.state_dict().items()}`. `torch.save` to a file
    copies them as well; `dict(...)` and `.copy()` do not.

    ## When it is wrong
    The script changes the tensors of the state in place before it loads them, or loads a state dict
    that it has just created, to check that it fits. Without a step in between, nothing is lost.

    ## How to confirm
    - Evaluate before and after `load_state_dict`: the metric does not change.
    """
    if not facts.run.steps:
        yield aliased_checkpoint.not_examined("no step was recorded")
        return
    loads = [
        event for event in facts.run.events_of(StateLoaded) if event.step > 0 and event.what.found
    ]
    if not loads:
        yield aliased_checkpoint.not_examined("no weights were restored during the training")
        return
    aliased: dict[str, list[Event[StateLoaded]]] = {}
    for event in loads:
        if event.what.own >= event.what.found:
            aliased.setdefault(event.what.module, []).append(event)
    if not aliased:
        yield aliased_checkpoint.clear("no loaded state shares the memory of the model")
    for events in aliased.values():
        yield _finding(facts, events)


def _finding(facts: Facts, events: list[Event[StateLoaded]]) -> Verdict:
    first, loaded = events[0], events[0].what
    where = f" ({loaded.where})" if loaded.where else ""
    again = f", and in {len(events) - 1} later loads" if len(events) > 1 else ""
    return aliased_checkpoint.finding(
        f"all {loaded.found} tensors of the state that {loaded.module.split()[0]} loads after step"
        f" {first.step}{where} share the model's memory{again}: loading changes nothing",
        confidence=Confidence.CERTAIN,
        onset=first.step,
        evidence=(
            Evidence(
                LOSS,
                (first.step, first.step),
                f"`load_state_dict` copies the weights onto themselves{where}",
                next(iter(facts.run[LOSS])),
            ),
        ),
        fix="copy the weights when you store them: `best = copy.deepcopy(model.state_dict())`, or"
        " `best = {name: tensor.clone() for name, tensor in model.state_dict().items()}`",
    )
