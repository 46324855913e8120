"""A checkpoint was loaded, but few or none of its names exist in the model."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record import Event
from holter.record.events import StateLoaded
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import LOSS


@rule(severity=Severity.ERROR, level=Level.PROCEDURE, needs=(LOSS,))
def unmatched_checkpoint(
    facts: Facts,
    *,
    min_missing: Annotated[float, "share of the module's names: fewer may be a new head"] = 0.1,
    min_renamed: Annotated[float, "share of the missing names that exist under another name"] = 0.5,
) -> Iterator[Verdict]:
    """A checkpoint was loaded, but few or none of its names exist in the model.

    ## What it does
    Reads the result of the last `load_state_dict` of each module. It reports a state dict that
    shares no name with the module, and one that has the missing names with a different prefix, such
    as `module.`, or without the part that a wrapper adds, such as `fc.weight` for `fc.base.weight`:
    these weights keep their initial values.

    ## Why it matters
    With `strict=False` there is no error. A teacher, a backbone or a model for fine-tuning keeps
    its random weights: the student imitates noise, or training starts from scratch.

    ## Example
    ```python
    model.load_state_dict(state, strict=False)                                        # bad
    model.load_state_dict({k.removeprefix("module."): v for k, v in state.items()})   # good
    ```

    ## What to do
    Rename the keys of the state dict to match, and load with `strict=True`. Load before layers are
    wrapped, for example by adapters. If a head is meant to be new, compare `missing_keys` and
    `unexpected_keys` with its names.

    ## When it is wrong
    The missing weights are loaded in another way afterwards, or belong to a part that should start
    from scratch although the checkpoint has one of that name.

    ## How to confirm
    - Print what `load_state_dict` returns.
    """
    latest: dict[str, Event[StateLoaded]] = {
        event.what.module: event for event in facts.run.events_of(StateLoaded)
    }
    if not latest:
        yield unmatched_checkpoint.not_examined("`load_state_dict` of a model was not called")
    for event in latest.values():
        loaded = event.what
        given = loaded.found + loaded.unexpected
        fits = f"{loaded.found} of {given} names of the state"
        is_empty = not loaded.found and not loaded.unexpected  # a filter that nothing passes
        found_none = not loaded.found and loaded.missing > 0
        few = min_missing * (loaded.missing + loaded.found)
        # Of wrapped layers, what the wrapper adds is missing as well: the state never had it.
        is_renamed = (loaded.missing > few and loaded.renamed >= min_renamed * loaded.missing) or (
            loaded.renamed > few and loaded.renamed >= min_renamed * loaded.unexpected
        )
        if found_none or is_renamed:
            sure = Confidence.CERTAIN if found_none else Confidence.LIKELY
            # An empty state may be meant: `checkpoint.get("ema", {})`.
            yield _finding(event, fits, Confidence.HINT if is_empty else sure)
        else:
            yield unmatched_checkpoint.clear(f"{loaded.module.split()[0]} has {fits}")


def _finding(event: Event[StateLoaded], fits: str, confidence: Confidence) -> Verdict:
    loaded = event.what
    model, where = loaded.module.split()[0], f" ({loaded.where})" if loaded.where else ""
    example = ""
    if loaded.example:
        missing, unexpected = loaded.example
        example = f": `{missing}` is `{unexpected}` there"
    if loaded.found + loaded.unexpected:
        symptom = f"{model} has {fits} that it was given{where}{example}"
    else:
        symptom = f"the state dict loaded into {model} is empty{where}: no name passed its filter"
    return unmatched_checkpoint.finding(
        f"{symptom}; {loaded.missing} of its weights and buffers keep their initial values",
        confidence=confidence,
        onset=event.step,
        evidence=(Evidence(LOSS, (event.step, event.step), "trained with these weights"),),
        fix="load before layers are wrapped, or rename the keys to match, with"
        ' `strict=True`: `{k.removeprefix("module."): v for k, v in state.items()}`',
    )
