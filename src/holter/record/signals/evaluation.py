"""Evaluation passes: how good the predictions are, beyond loss and accuracy."""

from holter.record.signals._signal import Per, Phase, Signal

VAL_BALANCED_ACCURACY = Signal(
    "val.balanced_accuracy",
    Per.LOSS_FUNCTION,
    Phase.AFTERWARDS,
    "share",
    "Mean recall of the classes among the targets of an evaluation pass; chance is one over their"
    " number. Of one unit that answers yes or no, the mean recall of both.",
)
VAL_CALIBRATION_ERROR = Signal(
    "val.calibration_error",
    Per.LOSS_FUNCTION,
    Phase.AFTERWARDS,
    "share",
    "Expected calibration error of an evaluation pass: mean difference between confidence and"
    " accuracy, in 15 bins of equal width.",
)
VAL_R2 = Signal(
    "val.r2",
    Per.LOSS_FUNCTION,
    Phase.AFTERWARDS,
    "share",
    "Share of the variance of numeric targets that the predictions of an evaluation pass explain;"
    " 0 for the best constant prediction.",
)
METRIC_LOGGED = Signal(
    "metric.logged",
    Per.METRIC,
    Phase.AFTERWARDS,
    "",
    "Values that the training loop passed to `log(NAME=...)` under a name other than `loss` and"
    " `val_loss`; the last value of the step. The loss of a task of `watch(also=...)` has the"
    " owner `also.NAME`, and is measured before the update of the step.",
)
EVALUATE_LOSS = Signal(
    "evaluate.loss",
    Per.TRIAL,
    Phase.AFTERWARDS,
    "",
    "Loss of each batch in the eval-mode pass of `holter try evaluate`; the trial is the data:"
    " validation or training.",
)
