"""What a missing signal means in words: what was not examined, or what the training has not."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from holter.record import Run
from holter.record.signals import CATALOGUE, LOSS, Per

_Words = TypeVar("_Words")

# What an experiment examines, by the first part of its signals' names, and the experiment.
_EXAMINED = {
    "accumulation": ("the weight of each accumulated batch", "preflight"),
    "baseline": ("the comparison with simple models", "baseline"),
    "batch": ("the noise of the gradients", "batch-size"),
    "causality": ("the dependence of outputs on later inputs", "preflight"),
    "checkpoint": ("the content of the checkpoint", "preflight"),
    "clip_threshold": ("the effect of the clipping threshold", "preflight"),
    "dataset": ("the data set", "preflight"),
    "dataset.overlap": ("the overlap of training and validation data", "preflight"),
    "determinism": ("whether a step can be repeated bit for bit", "determinism"),
    "eval_dropout": ("dropout in eval mode", "preflight"),
    "eval_gap": ("the loss in eval mode", "preflight"),
    "evaluate": ("the loss of each sample", "evaluate"),
    "init": ("the initialisation", "preflight"),
    "input_control": ("the dependence of outputs on inputs", "preflight"),
    "label_control": ("the relation of labels to inputs", "preflight"),
    "lr_range": ("the range of learning rates", "lr-range"),
    "mixing": ("the independence of samples in a batch", "preflight"),
    "overfit": ("the ability to memorise a batch", "preflight"),
    "padding": ("the effect of padding", "preflight"),
    "pairing": ("the order of predictions and targets", "preflight"),
    "path": ("the path of gradients from the predictions to the weights", "gradient-paths"),
    "refetch": ("the augmentation of samples", "preflight"),
    "refetch.judged": ("whether inputs and dense targets are flipped alike", "preflight"),
    "refetch.torn": ("whether inputs and dense targets are flipped alike", "preflight"),
    "resume": ("training from a checkpoint", "preflight"),
    "sharpness": ("the curvature of the loss", "sharpness"),
    "throughput": ("the speed of steps and loader", "throughput"),
    "use": ("the effect of single parts of the input", "preflight"),
    "workers": ("the random state of the loader's workers", "preflight"),
}

# Why all signals of one kind of owner are missing.
_GROUPS = {
    Per.LOSS_FUNCTION: "no loss function was called or recognised",
    Per.MODULE: "the outputs of layers were not read",
}

# Why a signal of a training may be missing, by its name or the first parts of it.
_TRAINED = {
    "accuracy": "the loss function has no classes",
    "activation": "the outputs of layers were not read",
    "activation.dead_fraction": "the model has no ReLU module",
    "activation.saturated_fraction": "the model has no sigmoid or tanh module",
    "adam": "no optimizer adapts to second moments",
    "alignment": "ctc_loss was not called",
    "amp": "the training uses no GradScaler",
    "attention": "no call of scaled_dot_product_attention was seen",
    "backward": "no call of backward() was seen",
    "beta1": "no optimizer has betas",
    "beta2": "no optimizer has betas",
    "checkpoint": "no checkpoint with the state of an optimizer was loaded into the model",
    "clip": "gradients are not clipped",
    "closure": "no optimizer receives a closure",
    "data": "no loader was seen",
    "distribution": "neither kl_div nor ctc_loss was called",
    "exclusive": "binary_cross_entropy was not called with several labels",
    "epsilon": "no optimizer has an epsilon",
    "grad": "gradients were not read",
    "graph.kept": "no variable of the training loop keeps results of earlier steps",
    "graph": "the graph of the loss was not read",
    "hidden": "nan_to_num is not called on activations or gradients",
    "input": "the inputs of the model were not read",
    "input.joined_ratio": "no linear layer joins data with features of the model",
    "input.joined_std": "no linear layer joins data with features of the model",
    "input.tokens": "no embedding received sequences of integers",
    "loss": "no loss was recorded",
    "loss.batch_softmax": "the loss has no softmax over samples and classes",
    "loss.constant_part": "the terms of the loss cannot be distinguished",
    "reshape.moved": "no forward pass was read for reshapes",
    "loss.largest_output": "the loss is not a regression on one of several outputs",
    "loss.paired_spread": "the loss compares no prediction with every target",
    "model.elements": "the outputs of the model were not read",
    "loss.coefficient_balance": "the loss does not multiply its terms by constants",
    "loss.coefficient_size": "the loss does not multiply its terms by constants",
    "loss.divisor": "the graph of the loss shows no quotient",
    "loss.elements": "no torch loss function sums over elements",
    "loss.factor": "no gradients are accumulated over several batches",
    "loss.log_argument": "the graph of the loss shows no logarithm",
    "loss.logged": "no loss was passed to `log(loss=...)`",
    "loss.mean": "no loss function was called once before each backward pass",
    "loss.ratio_cancelled": "the loss has no exponential of a difference",
    "loss.root_argument": "the graph of the loss shows no root",
    "loss.root_share": "no torch loss function with a mean was called",
    "loss.summed": "no torch loss function was called",
    "loss.term_gradient": "the loss has no separate terms",
    "lr": "the learning rate was not read",
    "metric": "no metric was passed to `log()`",
    "memory": "memory was not read",
    "memory.allocated": "no model is on a GPU",
    "memory.held": "no list or dict of the training loop grows",
    "memory.peak": "no model is on a GPU",
    "memory.reserved": "no model is on a GPU",
    "memory.retries": "no model is on a GPU",
    "memory.workers": "no loader has workers",
    "mode": "the mode of the model was not read",
    "momentum": "no optimizer has momentum",
    "normalisation.input_rms": "the model has no layer norm",
    "normalisation.samples": "the model has no batch norm",
    "optimizer": "no optimizer counts its steps",
    "output": "no torch loss function received predictions",
    "output.log_normaliser": "the loss function has no classes",
    "output.log_probability_fraction": "the loss function has no classes",
    "output.probability_fraction": "the loss function takes no logits",
    "parameter": "no optimizer with parameters was seen",
    "response": "the outputs of whole models were not read",
    "sample": "no list or deque of samples grows in the training loop",
    "schedule": "the training uses no learning-rate scheduler",
    "stream": "no batches of a training loader were read",
    "target": "no torch loss function received targets",
    "target.batch_entropy": "the targets are not class labels",
    "target.broadcast": "the loss function is not elementwise",
    "target.classes": "the targets are not class labels",
    "target.entropy": "the targets are not class labels",
    "target.ignored_fraction": "the loss function ignores no targets",
    "target.input_match": "the targets are not tokens of the input",
    "target.largest_class_fraction": "the targets are not class labels",
    "target.max": "the targets are not real-valued",
    "target.mean": "the targets are not real-valued",
    "target.min": "the targets are not real-valued",
    "target.std": "the targets are not real-valued",
    "target.weight_away": "the loss function has no `pos_weight`",
    "target.weight_slope": "the loss function has no class weights",
    "sync": "no read of a GPU tensor was seen",
    "time": "the time of steps was not measured",
    "time.data_wait": "no loader was seen",
    "time.device_backward": "no model is on a GPU",
    "time.device_forward": "no model is on a GPU",
    "time.device_idle": "no model is on a GPU",
    "time.device_optimizer": "no model is on a GPU",
    "time.sync": "no read of a GPU tensor was seen",
    "update": "updates were not read",
    "val": "no validation pass was seen",
    "val.accuracy": "no classes were predicted in a validation pass",
    "val.balanced_accuracy": "no classes were predicted in a validation pass",
    "val.calibration_error": "no classes were predicted in a validation pass",
    "val.input": "no inputs of a validation pass were read",
    "val.mode_training": "no dropout or batch norm ran in a validation pass",
    "val.r2": "no numbers were predicted in a validation pass",
    "val.train_fraction": "no dropout or batch norm ran in a validation pass",
    "watch": "the cost was not measured",
    "weight": "weights were not read",
    "weight.hash": "one process trained",
    "weight.row_coherence": "no weight matrix with four rows was read before an update",
    "weight.twin_fraction": "no weight matrix with several rows was read",
    "weight_decay": "no optimizer has a weight decay",
}

# What a log of another tool may hold.
_LOGGED = {
    "accuracy": "training accuracy",
    "grad.total_norm": "gradient norm",
    "loss": "training loss",
    "lr": "learning rate",
    "val.accuracy": "validation accuracy",
    "val.loss": "validation loss",
}


def absent(run: Run, signals: Iterable[str]) -> str:
    """Return why rules that need `signals`, of which the run has none, could not be applied."""
    names = sorted(signals, key=_rank)
    if run.meta.source is not None:  # what a log leaves out, the training may have had
        return _not_logged(names)
    for name in names:
        if _per(name) is Per.TRIAL:
            return _not_examined(name)
    if LOSS not in run and run.is_experiment:
        return "the training was not recorded; `holter run` records it"
    if run.steps == 0:
        return "no training step was recorded"
    per = _per(names[0])
    if per in _GROUPS and not names[0].startswith("val.") and not _has_any(run, per):
        return _GROUPS[per]
    return _longest(_TRAINED, names[0]) or "a signal that the rule needs was not recorded"


def _not_logged(names: Iterable[str]) -> str:
    """Return what a log would have to hold; of most signals no log does."""
    words = [_LOGGED.get(name) for name in names]
    if all(words):
        return f"the log has no {' and no '.join(filter(None, words))}"
    return "a log does not show it; `holter run` records it"


def _not_examined(name: str) -> str:
    if name.startswith("replay."):
        return "no captured failure was replayed; `holter try replay` does"
    examined = _longest(_EXAMINED, name)
    if examined is None:
        return "it needs an experiment; `holter try` lists them"
    what, command = examined
    return f"{what} was not examined; `holter try {command}` does"


def _rank(name: str) -> tuple[int, str]:
    """Order signals so that the one whose absence explains that of the others is first."""
    return (0 if name in ("loss", "val.loss", "amp.scale", "clip.norm") else 1, name)


def _per(name: str) -> Per | None:
    signal = CATALOGUE.get(name)
    return None if signal is None else signal.per


def _has_any(run: Run, per: Per) -> bool:
    """Return whether a signal of training that belongs to the same kind of owner was recorded."""
    return any(_per(name) is per and not name.startswith("val.") for name in run.tables)


def _longest(table: Mapping[str, _Words], name: str) -> _Words | None:
    """Return the entry of the longest leading part of a dotted name."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        if (words := table.get(".".join(parts[:length]))) is not None:
            return words
    return None
