"""Training samples occur several times, or with several labels."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.data_sets import is_continuous, measured, named, unread, was_asked_for
from holter.diagnosis.facts.stream import failed
from holter.diagnosis.rule import exception, rule
from holter.diagnosis.wording import percent, portion
from holter.record.findings import Confidence, Evidence, Finding, Level, Severity, Verdict
from holter.record.signals import (
    DATASET_CONFLICTS,
    DATASET_DISTINCT,
    DATASET_DUPLICATES,
    DATASET_EXAMINED,
    DATASET_REPEATED,
    LOSS,
)


@dataclass(frozen=True, slots=True)
class Duplicates:
    """What was counted among the training samples that were read."""

    copies: float  # share of the samples whose input occurs more than once
    repeated: float  # share of the distinct inputs that occur more than once
    conflicts: float  # share of the samples whose input occurs with another class
    examined: float
    distinct: float

    def __str__(self) -> str:
        return f"{portion(self.copies)} of {self.examined:.0f} training inputs occur more than once"


@exception
def few_values(facts: Facts, duplicates: Duplicates, _: float) -> str | None:
    """Inputs with few distinct values, such as tokens, bits and boards, repeat by chance."""
    if is_continuous(facts.run, "train"):
        return None
    return f"{duplicates}; they have few distinct values, or are tokens"


@exception
def prototypes(_: Facts, duplicates: Duplicates, min_distinct: float) -> str | None:
    """All samples are copies of a few prototypes, and the task is to distinguish these."""
    if duplicates.distinct >= min_distinct * duplicates.examined:
        return None
    return f"{duplicates.examined:.0f} samples are copies of {duplicates.distinct:.0f} inputs"


@rule(
    severity=Severity.INFO,
    level=Level.DATA,
    needs=(DATASET_DUPLICATES, DATASET_REPEATED, DATASET_CONFLICTS),
    exceptions=(few_values, prototypes),
)
def duplicate_samples(
    facts: Facts,
    *,
    min_conflicts: Annotated[float, "share of inputs that occur with two classes"] = 0.01,
    min_repeated: Annotated[float, "share of distinct inputs that occur more than once"] = 0.5,
    min_count: Annotated[int, "inputs of either kind that must be counted"] = 5,
    min_distinct: Annotated[float, "share of inputs that differ; below they are copies"] = 0.1,
) -> Iterator[Verdict]:
    """Training samples occur several times, or with several labels.

    ## What it does
    Compares training inputs bit by bit. It reports inputs that occur with several classes, and data
    sets in which most distinct inputs occur more than once. Under `holter run`
    it reports them only if the training failed.

    ## Why it matters
    If an input has two labels, at least one is wrong. If a data set was read twice, an epoch is
    twice as long as it seems, and a random split puts the same samples into training and
    validation.

    ## Example
    ```python
    files = glob("data/*") + glob("data/a*")               # bad
    files = sorted({*glob("data/*"), *glob("data/a*")})    # good
    ```

    ## What to do
    Inspect the pairs. Drop duplicates before splitting; check whether a file pattern matches twice,
    or a table is joined with itself.

    ## When it is wrong
    Several annotators label each sample, and all of their labels are kept. Oversampling of rare
    classes is not reported as long as most inputs still occur once.

    ## How to confirm
    - Look at one of the pairs in the report: `train_set[i]` and `train_set[j]`.
    - Compare `len(files)` with `len(set(files))`.
    """
    copies, repeated, conflicts, examined, distinct = (
        measured(facts.run, signal, "train")
        for signal in (
            *(DATASET_DUPLICATES, DATASET_REPEATED, DATASET_CONFLICTS),
            *(DATASET_EXAMINED, DATASET_DISTINCT),
        )
    )
    if copies is None or repeated is None or conflicts is None or not examined or not distinct:
        yield duplicate_samples.not_examined("too few training samples were read")
        return
    duplicates = Duplicates(copies, repeated, conflicts, examined, distinct)
    unseen = unread(facts.run, "train")  # both samples of a pair are rarely read
    conflicting = conflicts * examined >= min_count and conflicts * unseen >= min_conflicts
    repeating = repeated * distinct >= min_count and repeated * unseen >= min_repeated
    if not conflicting and not repeating:
        yield duplicate_samples.clear(str(duplicates))
    elif (excuse := duplicate_samples.excused(facts, duplicates, min_distinct)) is not None:
        yield excuse
    elif not was_asked_for(facts.run) and LOSS in facts.run and failed(facts) is None:
        yield duplicate_samples.harmless(f"{duplicates}, but {facts.run_outcome.says}")
    elif conflicting:
        yield _finding(
            duplicates,
            f"{conflicts * examined:.0f} of {examined:.0f} training inputs occur with several"
            f" classes{_pair(facts, 'conflicts')}",
            Evidence(DATASET_CONFLICTS, (0, 0), f"{percent(conflicts)} of those read", "train"),
            "compare these pairs, and correct the wrong labels",
        )
    else:
        yield _finding(
            duplicates,
            f"{duplicates}{_pair(facts, 'duplicates')}",
            Evidence(
                DATASET_REPEATED, (0, 0), f"{percent(repeated)} of the distinct inputs", "train"
            ),
            "read each sample once: drop duplicates before splitting",
        )


def _finding(duplicates: Duplicates, summary: str, evidence: Evidence, fix: str) -> Finding:
    return duplicate_samples.finding(
        summary,
        confidence=Confidence.HINT,
        onset=0,
        evidence=(evidence, Evidence(DATASET_DUPLICATES, (0, 0), str(duplicates), "train")),
        fix=fix,
    )


def _pair(facts: Facts, what: str) -> str:
    groups = named(facts.run, what, "train")
    return f", for example samples {groups[0][0]} and {groups[0][1]}" if groups else ""
