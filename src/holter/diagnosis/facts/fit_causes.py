"""The cause that a change names by making a model fit samples that it does not fit unchanged."""

from dataclasses import dataclass

from holter.diagnosis.facts.fits import AS_IT_IS, FitTrial, value
from holter.record import Run
from holter.record.signals import OVERFIT_HELD, OVERFIT_RATE, OVERFIT_TRAINABLE
from holter.record.trials import TrialKind


@dataclass(frozen=True, slots=True)
class FitCause:
    """A cause and its fix.

    A `recipe` may be intended: it is no fault if much is learned anyway.
    """

    cause: str
    fix: str = ""
    recipe: bool = False
    sure: bool = True
    hurries: bool = False  # the change speeds up what may happen anyway
    lucky: bool = False  # the change may make a small model fit by chance


_CAUSES = {
    TrialKind.LOGITS: FitCause(
        "the loss applies a softmax or sigmoid to values that are already probabilities",
        "return logits: remove the softmax or sigmoid from the model's forward pass",
    ),
    TrialKind.TARGET_SHAPE: FitCause(
        "predictions and targets of different shapes are broadcast against each other",
        "give both the same shape: `squeeze` or `unsqueeze` one of them before the loss",
    ),
    TrialKind.RESCALED_OUTPUTS: FitCause(
        "the output range of the model does not cover the targets",
        "make the last layer linear, and standardise the targets",
        lucky=True,
    ),
    TrialKind.DROPOUT_OFF: FitCause(
        "dropout is too strong",
        "lower the dropout: `p` is the share of dropped units, not of kept ones",
        recipe=True,
    ),
    TrialKind.SAME_RANDOM_NUMBERS: FitCause("random numbers in the step keep the loss high"),
    TrialKind.CLIPPING_OFF: FitCause(
        "gradients are clipped to almost zero",
        "raise the clipping threshold to the typical gradient norm",
    ),
    TrialKind.NO_WEIGHT_DECAY: FitCause(
        "weight decay shrinks the weights as fast as they learn",
        "lower the weight decay",
        recipe=True,
    ),
    TrialKind.BATCH_NORM_EVAL: FitCause(
        "batch norm sees too few samples per batch",
        "use larger batches, or group norm",
        recipe=True,
    ),
    TrialKind.BATCH_NORM_TRAIN: FitCause(
        "batch norm uses running statistics that do not match these inputs",
        "call `model.train()` before training",
        recipe=True,
    ),
    TrialKind.NOTHING_FROZEN: FitCause("the trainable part of the model cannot memorise them"),
    TrialKind.REINITIALISED: FitCause(
        "the initial weights cannot learn: they are zero, all equal, saturated or dead",
        "use the default initialisation, or load other weights",
        lucky=True,
    ),
    TrialKind.STANDARDISED_INPUTS: FitCause(
        "the inputs barely differ, or their scale is too large",
        "standardise the inputs with statistics of the training set",
        lucky=True,
    ),
    TrialKind.NOISE_INPUTS: FitCause(
        "the inputs are indistinguishable",
        "inspect the inputs that the model receives",
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
            f"the output range of the last {change.detail} does not cover the targets",
            f"remove the last {change.detail}, or use one whose range covers the targets",
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
        pace = f": at this pace it takes {fit.ahead:,.0f} more steps" if fit.falls else ""
        return FitCause(
            f"the learning rate{own} is too low{pace}",
            f"raise the learning rate to {to}",
            recipe=True,
            sure=factor >= 100,  # ten times as much may be a choice
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
            "build the optimizer from `model.parameters()` after the model is complete",
        )
    return FitCause(
        "the optimizer does not fit them with its current settings",
        "start with Adam at a learning rate of 1e-3, then change one setting at a time",
        recipe=True,
        sure=False,
    )
