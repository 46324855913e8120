"""Padding changes the outputs, or counts in the loss."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    PADDING_AMOUNT,
    PADDING_CHANGE,
    PADDING_COUNTED,
    PADDING_LENGTH,
    PADDING_ROUNDING,
)


@rule(
    severity=Severity.WARNING,
    level=Level.ARCHITECTURE,
    needs=(PADDING_CHANGE, PADDING_LENGTH, PADDING_ROUNDING),
)
def leaking_padding(
    facts: Facts, *, min_change: float = 0.1, min_counted: float = 0.02
) -> Iterator[Verdict]:
    """Padding changes the outputs, or counts in the loss.

    ## What it does
    Reads the experiment padding: samples are given to the model with and without their padding, in
    eval mode. The rule speaks where outputs at real positions differ by more than rounding and by
    `min_change` standard deviations or more; less than that is noted as normal. So is a change that
    does not depend on how much padding there is: a maximum over positions makes such. It is a hint
    where nothing leaks into the outputs, but `min_counted` or more of the targets that the loss
    counts are padding.

    ## Why it matters
    What a model says of a sample then depends on the longest sample of its batch. Alone, sorted by
    length, or in batches of another size, it gets other answers; part of what it learns is to tell
    lengths. Padding that counts in the loss is easy to predict: the loss looks better than it is.

    ## What to do
    Give attention a mask of the padding (`src_key_padding_mask`, `attention_mask`), average over
    real positions only, take the last real state of a recurrence and pack its input with
    `pack_padded_sequence`. Set targets at padded positions to the loss's `ignore_index`.

    ## When it is wrong
    All samples are padded to one length, always, in training as in use: the model has learned to
    live with it.

    ## How to confirm
    - Call the model in eval mode on one short sample, alone and padded: the outputs have to agree.
    """
    changes = {name: float(each.values[-1]) for name, each in facts.run[PADDING_CHANGE].items()}
    limits = {name: float(each.values[-1]) for name, each in facts.run[PADDING_ROUNDING].items()}
    worst = max(changes, key=lambda name: changes[name])
    length = int(facts.run[PADDING_LENGTH][worst].values[-1])
    said = (
        f"{length} positions of padding change the outputs of a sample by {changes[worst]:.2g}"
        " standard deviations"
    )
    grows = PADDING_AMOUNT not in facts.run or any(
        float(each.values[-1]) > limits[name] for name, each in facts.run[PADDING_AMOUNT].items()
    )
    if changes[worst] > max(limits[worst], min_change) and grows:
        yield leaking_padding.finding(
            said,
            confidence=Confidence.LIKELY,
            onset=0,
            evidence=tuple(
                Evidence(
                    PADDING_CHANGE,
                    (0, 0),
                    f"{change:.2g}, where rounding makes {limits[name]:.1g}",
                    name,
                )
                for name, change in changes.items()
            ),
            fix="mask padding in attention and averages, and pack what goes into recurrent layers",
        )
        return
    counted = (
        float(facts.run[PADDING_COUNTED][""].values[-1]) if PADDING_COUNTED in facts.run else 0.0
    )
    if counted >= min_counted:
        yield leaking_padding.finding(
            f"{counted:.0%} of the targets that the loss counts are padding",
            confidence=Confidence.HINT,
            onset=0,
            evidence=(Evidence(PADDING_COUNTED, (0, 0), f"{counted:.1%}, not ignored"),),
            fix="set targets at padded positions to -100, or pass ignore_index to the loss",
        )
        return
    if changes[worst] > max(limits[worst], 0.01 * min_change):
        little = (
            "that is little" if grows else "how many does not matter, as of a maximum over them"
        )
        yield leaking_padding.normal(f"{said}: {little}")
        return
    yield leaking_padding.clear(
        f"{len(changes)} samples with and without padding differ by {changes[worst]:.1g} standard"
        " deviations at most"
    )
