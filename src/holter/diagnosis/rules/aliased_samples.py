"""Stored samples share one array that is overwritten in place."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.diagnosis.wording import percent, some
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import SAMPLE_ALIASED


@rule(severity=Severity.ERROR, level=Level.DATA, needs=(SAMPLE_ALIASED,), preview=True)
def aliased_samples(
    facts: Facts,
    *,
    min_share: Annotated[float, "share of the last elements that share their arrays"] = 0.5,
) -> Iterator[Verdict]:
    """Stored samples share one array that is overwritten in place.

    ## What it does
    Looks at the lists and deques that grow in functions that call `backward()` (a replay buffer) or
    a model without gradients (a rollout), and compares the memory addresses of the arrays in their
    last 64 elements. It reports a container in which most elements share an array in one field, if
    the content of that array changed while it was stored and another field, or a parallel list,
    differs.

    ## Why it matters
    An environment that updates its state in place returns the same array at every step, or one row
    of it per environment. Every stored sample then shows the latest state, with the action and
    reward of an earlier one: the model is trained on pairs that never occurred.

    ## Example
    ```python
    buffer.append((state, action, reward))         # bad
    buffer.append((state.copy(), action, reward))  # good
    ```

    ## What to do
    Store a copy: `state.copy()` for an array, `state.clone()` for a tensor. `torch.from_numpy` and
    `np.asarray` share memory and do not copy; `torch.tensor(state)` and `np.array(state)` do.

    ## When it is wrong
    Every element is meant to show the latest content, such as a running statistic, or the array is
    not used for training. Not detected: arrays on a GPU, arrays replaced at the start of every
    short episode, and buffers filled before training starts.

    ## How to confirm
    - Print `buffer[-1][0] is buffer[-2][0]`, or compare `data_ptr()` of both tensors.
    - Store copies and compare the losses of the first 500 steps.
    """
    table = facts.run[SAMPLE_ALIASED]
    largest = {name: float(shares.values.max()) for name, shares in table.items() if len(shares)}
    if not largest:
        yield aliased_samples.not_examined("no list or deque of samples was read twice")
        return
    aliased = sorted(
        (name for name, share in largest.items() if share >= min_share), key=largest.__getitem__
    )[::-1]
    if not aliased:
        name = max(largest, key=largest.__getitem__)
        yield aliased_samples.clear(
            f"at most {percent(largest[name])} of the last elements of `{name}` share an array that"
            " is overwritten"
            if largest[name]
            else f"no array in {_names(list(largest))} is overwritten while it is stored"
        )
        return
    name = aliased[0]
    shares = table[name]
    onset = int(min(table[each].steps[table[each].values >= min_share][0] for each in aliased))
    yield aliased_samples.finding(
        f"{percent(largest[name])} of the last elements of {_names(aliased)} share an array that"
        " is overwritten after it is stored: they all show its latest content",
        confidence=Confidence.CERTAIN,
        onset=onset,
        evidence=(
            Evidence(
                SAMPLE_ALIASED,
                (onset, shares.last),
                f"up to {percent(largest[name])} of the elements share an array at"
                f" {int((shares.values >= min_share).sum())} sampled steps",
                name,
            ),
        ),
        fix=f"store a copy: `{name}.append((state.copy(), ...))`, or `state.clone()` for a tensor",
    )


def _names(names: list[str]) -> str:
    return some([f"`{name}`" for name in names])
