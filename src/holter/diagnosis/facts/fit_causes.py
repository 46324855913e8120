"""What it means that a change makes a model fit samples that it does not fit as it is."""

from dataclasses import dataclass

from holter.diagnosis.facts.fits import AS_IT_IS, FitTrial, value
from holter.record import Run
from holter.record.signals import OVERFIT_HELD, OVERFIT_RATE, OVERFIT_TRAINABLE
from holter.record.trials import TrialKind


@dataclass(frozen=True, slots=True)
class FitCause:
    """The cause that a change tells of.

    What is a `recipe` may be meant as it is: no fault where much is learned all the same. What is
    `harmless` is none at all.
    """

    cause: str
    fix: str = ""
    recipe: bool = False
    harmless: bool = False
    sure: bool = True
    hurries: bool = False  # it makes faster what may come by itself
    lucky: bool = False  # it may make a small model fit by chance


_CAUSES = {
    TrialKind.LOGITS: FitCause(
        "the loss applies a softmax or sigmoid to what has been through one",
        "return logits from the model: take the softmax or sigmoid out of its forward pass",
    ),
    TrialKind.TARGET_SHAPE: FitCause(
        "predictions and targets of other shapes are broadcast, each against all",
        "give both the same shape before the loss: `squeeze` or `unsqueeze` one of them",
    ),
    TrialKind.RESCALED_OUTPUTS: FitCause(
        "what the model can give does not cover the targets",
        "let the last layer be linear, and standardise the targets",
        lucky=True,
    ),
    TrialKind.DROPOUT_OFF: FitCause(
        "dropout leaves too little to learn from",
        "lower dropout: its `p` is the share that is dropped, not the share that is kept",
        recipe=True,
    ),
    TrialKind.SAME_RANDOM_NUMBERS: FitCause(
        "random numbers drawn in the step (noise, augmentation, sampling) keep the loss up",
        harmless=True,
    ),
    TrialKind.CLIPPING_OFF: FitCause(
        "gradients are clipped to almost nothing",
        "raise the clipping threshold to where gradient norms usually are",
    ),
    TrialKind.NO_WEIGHT_DECAY: FitCause(
        "weight decay pulls the weights back as fast as they learn",
        "lower weight decay",
        recipe=True,
    ),
    TrialKind.BATCH_NORM_EVAL: FitCause(
        "batch norm has too few samples to normalise by",
        "use larger batches, or group norm",
        recipe=True,
    ),
    TrialKind.BATCH_NORM_TRAIN: FitCause(
        "batch norm normalises by running statistics that do not suit",
        "call `model.train()` before training",
        recipe=True,
    ),
    TrialKind.NOTHING_FROZEN: FitCause(
        "the part of the model that is not frozen cannot learn them", harmless=True
    ),
    TrialKind.REINITIALISED: FitCause(
        "the weights it begins with cannot learn: zero, all alike, saturated or dead",
        "initialise the layers as they are by default, or load other weights",
        lucky=True,
    ),
    TrialKind.STANDARDISED_INPUTS: FitCause(
        "inputs differ too little, or are on too large a scale",
        "standardise the inputs with statistics of the training set",
        lucky=True,
    ),
    TrialKind.NOISE_INPUTS: FitCause(
        "the inputs cannot be told apart",
        "look at the inputs as the model is given them",
        lucky=True,
    ),
}


def cause_of(run: Run, plain: FitTrial, fitting: FitTrial) -> FitCause:
    """Return the cause that a trial names by fitting."""
    change = fitting.change
    if change.kind is TrialKind.LEARNING_RATE:
        return _of_rate(run, plain, change.amount)
    if change.kind is TrialKind.LAYER_LEFT_OUT:
        return FitCause(
            f"what the {change.detail} at the end of the model can give does not cover the targets",
            f"take the last {change.detail} out of the model, or one whose range holds the targets",
        )
    if change.kind is TrialKind.ADAM:
        return _of_optimizer(run)
    return _CAUSES[change.kind]


def _of_rate(run: Run, plain: FitTrial, factor: float) -> FitCause:
    rate = value(run, OVERFIT_RATE, AS_IT_IS)
    own = "" if rate is None else f" {rate:.3g}"
    to = f"{factor:g} times it" if rate is None else f"about {rate * factor:.1g}"
    if factor > 1:
        fit = plain.fit
        pace = f": at this pace it takes {fit.ahead:,.0f} steps more" if fit.falls else ""
        return FitCause(
            f"the learning rate{own} is too low{pace}",
            f"raise the learning rate to {to}",
            recipe=True,
            sure=factor >= 100,  # ten times is a matter of taste
            hurries=True,
        )
    diverged = plain.fit.lost or plain.fit.last > plain.fit.start
    return FitCause(
        f"the learning rate{own} is too high",
        f"lower the learning rate to {to}",
        recipe=True,
        sure=diverged,
    )


def _of_optimizer(run: Run) -> FitCause:
    held, trainable = (value(run, s, AS_IT_IS) for s in (OVERFIT_HELD, OVERFIT_TRAINABLE))
    if held is not None and trainable is not None and held < trainable:
        return FitCause(
            f"the optimizer holds {held:,.0f} of {trainable:,.0f} trainable values",
            "make the optimizer when the model is complete, of `model.parameters()`",
        )
    return FitCause(
        "the optimizer as it is set does not get there",
        "begin with Adam at a learning rate of 1e-3, then go back step by step",
        recipe=True,
        sure=False,
    )
