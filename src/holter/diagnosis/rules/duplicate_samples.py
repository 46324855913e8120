"""Training samples occur several times, or with several labels."""

from collections.abc import Iterator

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.data_sets import is_continuous, measured, named, unread
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import (
    DATASET_CONFLICTS,
    DATASET_DISTINCT,
    DATASET_DUPLICATES,
    DATASET_EXAMINED,
    DATASET_REPEATED,
)

_LEAST = 5  # samples


@rule(
    severity=Severity.INFO,
    level=Level.DATA,
    needs=(DATASET_DUPLICATES, DATASET_REPEATED, DATASET_CONFLICTS),
)
def duplicate_samples(
    facts: Facts, *, min_conflicts: float = 0.01, min_repeated: float = 0.5
) -> Iterator[Verdict]:
    """Training samples occur several times, or with several labels.

    ## What it does
    Preflight compares training inputs bit by bit. The rule speaks where at least `min_conflicts` of
    them occur with another class as well, or where at least `min_repeated` of the different inputs
    occur more than once. Only of inputs that cannot be equal by chance, such as continuous numbers
    and photographs; not of tokens, bits and other inputs with few values, and not where all is
    copies of a few.

    ## Why it matters
    The same input with two labels can be learned by heart at best in one of them: such labels are
    wrong somewhere. A data set that was read twice has epochs twice as long as it seems, and if it
    is split at random validation knows the training set.

    ## What to do
    Look at the pairs. Drop duplicates before splitting; see whether a pattern of file names matches
    twice, or a list is joined with itself.

    ## When it is wrong
    Several annotators label each sample, and all of their answers are kept. Copying rare classes on
    purpose is fine: then most inputs still occur once.

    ## How to confirm
    - Look at one of the pairs that are named: `train_set[i]` and `train_set[j]`.
    - Compare `len(files)` with `len(set(files))`.
    """
    copies = measured(facts.run, DATASET_DUPLICATES, "train")
    repeated = measured(facts.run, DATASET_REPEATED, "train")
    conflicts = measured(facts.run, DATASET_CONFLICTS, "train")
    examined = measured(facts.run, DATASET_EXAMINED, "train")
    distinct = measured(facts.run, DATASET_DISTINCT, "train")
    if copies is None or repeated is None or conflicts is None or not examined or not distinct:
        yield duplicate_samples.not_examined("too little was read of the training set")
        return
    said = f"{copies:.1%} of {examined:.0f} training inputs occur more than once"
    all_of = unread(facts.run, "train")  # a pair is rarely read whole
    if not is_continuous(facts.run, "train") or distinct < examined / 10:
        yield duplicate_samples.clear(f"{said}; inputs with few values repeat by chance")
        return
    if conflicts * examined >= _LEAST and conflicts * all_of >= min_conflicts:
        yield duplicate_samples.finding(
            f"{conflicts * examined:.0f} of {examined:.0f} training inputs occur with another class"
            f" as well{_pair(facts, 'conflicts')}",
            confidence=Confidence.HINT,
            onset=0,
            evidence=(
                Evidence(DATASET_CONFLICTS, (0, 0), f"{conflicts:.1%} of those read", "train"),
                Evidence(DATASET_DUPLICATES, (0, 0), said, "train"),
            ),
            fix="look at these pairs, and mend the labels that are wrong",
        )
    elif repeated * distinct >= _LEAST and repeated * all_of >= min_repeated:
        yield duplicate_samples.finding(
            f"{said}: most are there several times{_pair(facts, 'duplicates')}",
            confidence=Confidence.HINT,
            onset=0,
            evidence=(
                Evidence(DATASET_REPEATED, (0, 0), f"{repeated:.1%} of the inputs", "train"),
                Evidence(DATASET_DUPLICATES, (0, 0), said, "train"),
            ),
            fix="read each sample once: drop duplicates before splitting",
        )
    else:
        yield duplicate_samples.clear(said)


def _pair(facts: Facts, what: str) -> str:
    groups = named(facts.run, what, "train")
    return f", as {groups[0][0]} and {groups[0][1]} do" if groups else ""
