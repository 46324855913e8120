"""The training loss is no lower than that of the best constant prediction."""

from collections.abc import Iterator
from typing import Annotated

from holter.diagnosis.facts import Facts
from holter.diagnosis.facts.chance import (
    MAX_NOISE,
    MIN_STEPS,
    NEAR,
    PATIENCE,
    WORTH,
    Chance,
    Standing,
    chance_of,
)
from holter.diagnosis.facts.predictions import Predictions
from holter.diagnosis.facts.progress import learning_in_the_lab
from holter.diagnosis.facts.targets import growth_of_targets
from holter.diagnosis.rule import exception, rule
from holter.record.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.record.signals import ACCURACY, LOSS, OUTPUT_SPREAD


@exception
def begins_to_learn(chance: Chance) -> str | None:
    """Predictions vary more and more after few steps, so the model has begun to learn."""
    if chance.standing is not Standing.YOUNG or chance.predictions is None:
        return None
    return f"{chance}, by {chance.predictions.spread:.2g} at the end"


@rule(
    severity=Severity.WARNING,
    level=Level.DATA,
    needs=(LOSS,),
    symptom=True,
    exceptions=(begins_to_learn,),
)
def loss_at_constant_predictor(
    facts: Facts,
    *,
    min_steps: Annotated[int, "losses needed after warm-up"] = MIN_STEPS,
    near: Annotated[float, "distance from the best constant prediction that counts as 0"] = NEAR,
    max_noise: Annotated[
        float, "standard error of the loss, as a share, that is too noisy"
    ] = MAX_NOISE,
    worth: Annotated[float, "share of the targets that similar predictions can explain"] = WORTH,
    patience: Annotated[int, "steps after which a new model should be better"] = PATIENCE,
) -> Iterator[Verdict]:
    """The training loss is no lower than that of the best constant prediction.

    ## What it does
    A constant prediction reaches at best the entropy of the labels (cross entropies) or the
    variance of the targets (squared error). The rule reports a loss, or a term of it, that ends at
    or above this level and does not fall; also slightly below it, if validation is no better. It is
    likely if predictions hardly differ between inputs for long or validation agrees.

    ## Why it matters
    The model does not use its inputs, or gains nothing from them. The curve may look like learning:
    the loss falls from its initial value to this level while only class frequencies are learned.

    ## Example
    ```python
    inputs = inputs[torch.randperm(len(inputs))]                                      # bad
    order = torch.randperm(len(inputs)); inputs, labels = inputs[order], labels[order]   # good
    ```

    ## What to do
    Check that inputs and labels belong together where batches are created: permute both with one
    index, print a few pairs. Check that inputs are scaled and units are not dead. If the loss fell
    to this level within a few steps, the first updates were too large: lower the learning rate 10
    times or warm it up.

    ## When it is wrong
    Tasks with a long plateau before the first drop (retrieval, modular arithmetic, deep networks
    without normalisation) stay at this level for a while. Targets that cannot be predicted from the
    inputs, such as random test data: the finding is correct, but there is nothing to fix.

    ## How to confirm
    - Run `holter try preflight train.py`: it trains with true and with shuffled labels, and on one
      small batch, which shows whether the data, the model or the loop is at fault.
    - Shuffle the inputs of a batch against its labels and compute the loss again: if it does not
      change, the model does not use its inputs.
    """
    say = loss_at_constant_predictor
    chance = chance_of(
        facts,
        min_steps=min_steps,
        near=near,
        max_noise=max_noise,
        worth=worth,
        patience=patience,
    )
    if isinstance(chance, str):
        if facts.terms.known:
            yield from _terms(facts, worth, patience)
        else:
            yield say.not_examined(chance)
        return
    growth = growth_of_targets(facts)
    if chance.standing is Standing.AT_CHANCE and growth is not None and facts.outcome is None:
        yield say.not_examined(f"the variance of the targets grew {growth:.2g} times")
        return
    match chance.standing:
        case Standing.AT_CHANCE:
            yield _finding(facts, chance, worth, patience)
        case Standing.NOISY:
            yield say.not_examined(str(chance))
        case _:
            yield say.excused(chance) or say.clear(f"{chance}{_helpful(chance)}")


def _terms(facts: Facts, worth: float, patience: int) -> Iterator[Verdict]:
    """Judge the terms of a loss that is more than one mean."""
    terms = facts.terms
    for term in terms.stuck:
        yield _finding(facts, term.chance, worth, patience, is_part=not terms.learned_nothing)
    if not terms.stuck:
        yield loss_at_constant_predictor.clear("; ".join(str(term.chance) for term in terms.known))


def _helpful(chance: Chance) -> str:
    """Say in which way predictions help, or may help, where the loss does not tell."""
    read = chance.predictions
    if read is None or chance.standing is Standing.FALLING:
        return ""
    if read.are_helpful:
        return f"; {_accuracy(read)}"
    if chance.standing is Standing.VARIED:
        return f", but predictions vary by {read.spread:.2g} between samples"
    return ""


def _accuracy(read: Predictions) -> str:
    if read.accuracy is None:
        return ""
    return f"accuracy {read.accuracy:.0%}, {read.prior:.0%} for the most frequent class"


def _finding(
    facts: Facts, chance: Chance, worth: float, patience: int, *, is_part: bool = False
) -> Verdict:
    """Report a loss, or one of its terms; a term beside others that are learned is a hint."""
    window, baseline, read = (
        (chance.onset, chance.curve.span[1]),
        chance.baseline,
        chance.predictions,
    )
    evidence = [
        Evidence(
            baseline.signal,
            window,
            f"best constant prediction {chance.constant:.3g} ({baseline.says}); loss"
            f" {chance.level:.3g} ± {chance.error:.1g}",
            baseline.function,
        ),
        Evidence(
            chance.signal, window, f"{chance.level:.3g} in the last third", chance.curve.owner
        ),
    ]
    if chance.validation is not None:
        evidence.insert(1, chance.validation)
    if read is not None:
        evidence.append(
            Evidence(
                OUTPUT_SPREAD,
                (chance.onset, read.last),
                f"{read.spread:.2g} between samples, which explains at most"
                f" {min(read.worth, 1):.1%} of the targets",
                baseline.function,
            )
        )
        if accuracy := _accuracy(read):
            evidence.append(
                Evidence(ACCURACY, (chance.onset, read.last), accuracy, baseline.function)
            )
    fix = (
        "print a few inputs next to their labels and check that inputs are scaled; then train on"
        " one small batch, and with a tenth of the learning rate"
    )
    lab = learning_in_the_lab(facts)
    if lab is not None:
        evidence.append(lab)
        fix = "the step learns when repeated alone: check the loop, optimizer and schedule"
    return loss_at_constant_predictor.finding(
        _summary(chance),
        confidence=Confidence.LIKELY
        if _is_sure(chance, worth, patience) and not is_part
        else Confidence.HINT,
        onset=chance.onset,
        evidence=evidence,
        fix=fix,
    )


def _is_sure(chance: Chance, worth: float, patience: int) -> bool:
    """Whether loss and predictions, or loss and validation, have long agreed."""
    if chance.lasts < patience:
        return False
    if chance.validation is not None:
        return True
    read = chance.predictions
    is_recent = read is not None and read.last > chance.curve.steps[chance.curve.place(0.5)]
    return is_recent and read is not None and read.worth <= worth


def _summary(chance: Chance) -> str:
    level = f"{chance.level:.3g} ± {chance.error:.1g}"
    name = "the loss" if chance.signal is LOSS else f"the term {chance.baseline.function}"
    loss, read = f"{name} has stayed at {level} since step {chance.onset}", ""
    if chance.is_above or chance.validation is not None:
        loss = f"{name} is {level} at the end"
    if chance.validation is not None:
        read = "; validation is no better"
    elif chance.predictions is not None:
        accuracy = _accuracy(chance.predictions)
        read = f"; predictions vary by {chance.predictions.spread:.2g} between samples"
        read += f", {accuracy}" if accuracy else ""
    return f"{loss}; the best constant prediction gives {chance.constant:.3g}{read}"
