"""What is true of every script in this folder: written down before holter was run on any of them.

A fault is described in words, with the causes that a person would accept as the answer; `causes`
are the names of the rules that say so, filled in after the first measurement.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parent

Span = tuple[int, int]  # first and last training step of a mean


@dataclass(frozen=True, slots=True)
class Printed:
    """Losses that a script prints: a pattern with one group, and the steps that each belongs to.

    `units` are the factors by which a recorded loss may differ from the printed one, where a script
    sums over a batch and prints the share of a sample.
    """

    pattern: str
    spans: tuple[Span, ...]
    units: tuple[float, ...] = (1.0,)


@dataclass(frozen=True, slots=True)
class Fault:
    """A mistake that a script makes when told to."""

    name: str
    truth: str  # what is wrong, and what it does to the training
    right: str  # the answers that help, in words
    causes: tuple[str, ...] = ()  # the rules that give one of these answers
    before: bool = True  # it can be seen before training starts, so preflight is asked too
    ruins: bool = True  # the training fails or its result is wrong: an error, exit code 1


@dataclass(frozen=True, slots=True)
class Script:
    """A script, with what it prints and how many optimizer steps it takes."""

    name: str
    style: str
    steps: int
    train: tuple[Printed, ...]
    validation: Mapping[str, str] = field(default_factory=dict)  # pattern by pass
    faults: tuple[Fault, ...] = ()
    arguments: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    by_variable: bool = False  # the fault is named by the variable FAULT
    first: tuple[str, ...] | None = None  # arguments of a run before, in the same folder
    validation_units: tuple[float, ...] = (1.0,)
    without_loss: bool = False  # its evaluation computes a metric only; holter computes the loss
    packages: tuple[str, ...] = ()
    undecided: str = ""  # why preflight cannot extract a step, where that is the right answer

    @property
    def path(self) -> Path:
        """The script's file."""
        return FOLDER / f"{self.name}.py"


def steps(count: int, every: int = 1, first: int = 0) -> tuple[Span, ...]:
    """Single steps at an interval."""
    return tuple((step, step) for step in range(first, count, every))


def in_epochs(epochs: int, length: int, every: int) -> tuple[Span, ...]:
    """Single steps at an interval that begins again with each epoch."""
    return tuple((e * length + b,) * 2 for e in range(epochs) for b in range(0, length, every))


def means(count: int, over: int) -> tuple[Span, ...]:
    """Means over consecutive blocks of steps."""
    return tuple((last - over + 1, last) for last in range(over - 1, count, over))


def running(epochs: int, length: int) -> tuple[Span, ...]:
    """Means from the start of the epoch up to each of its steps."""
    return tuple((e * length, e * length + b) for e in range(epochs) for b in range(length))


def by_name(scripts: Iterable[Script]) -> dict[str, Script]:
    """Return the scripts by their names."""
    return {script.name: script for script in scripts}


# Rules whose finding is a right answer to several faults.
LABELS = ("unrelated-labels", "independent-labels", "loss-at-constant-predictor")
TOO_FAST = ("huge-updates", "exploding-gradients", "diverging-loss", "oversized-steps")

SHUFFLED_LABELS = "labels do not belong to their inputs; not: learning rate, warm-up, capacity"

SCRIPTS = by_name(
    [
        Script(
            "mnist",
            "pytorch/examples mnist",
            300,
            (Printed(r"^Train Epoch.*Loss: (\S+)", in_epochs(3, 100, 10)),),
            {"test": r"Average loss: (\S+),"},
            (
                Fault(
                    "shuffled-labels",
                    "training labels are permuted: 10 % test accuracy, loss at 2.3",
                    SHUFFLED_LABELS,
                    LABELS,
                ),
                Fault(
                    "no-zero-grad",
                    "gradients are never cleared and add up over all steps",
                    "gradients are not cleared between steps",
                    ("uncleared-gradients",),
                ),
                Fault(
                    "softmax-over-batch",
                    "log_softmax over the batch instead of the classes",
                    "softmax over the wrong dimension; outputs of a sample depend on the others;"
                    " outputs are no log-probabilities over classes",
                    ("batch-axis-softmax", "unnormalised-nll", "mixed-samples"),
                ),
                Fault(
                    "no-eval",
                    "the test pass runs in train mode, with dropout",
                    "validation in train mode",
                    ("validation-in-train-mode",),
                    before=False,
                    ruins=False,
                ),
                Fault(
                    "train-never-again",
                    "after the first test pass the model stays in eval mode: no dropout",
                    "training in eval mode",
                    ("training-in-eval-mode",),
                    before=False,
                    ruins=False,
                ),
            ),
        ),
        Script(
            "word_language_model",
            "pytorch/examples word_language_model",
            250,
            (Printed(r"batches.*\| loss (\S+) \|", means(250, 10)),),
            {"valid": r"valid loss (\S+)", "test": r"test loss (\S+)"},
            (
                Fault(
                    "no-clipping",
                    "SGD at lr 20 without the clipping that the rate was chosen for: the loss jumps"
                    " far above its start and does not come back",
                    "clip gradients, or a lower learning rate; updates or gradients too large;"
                    " not: other code that changes weights",
                    TOO_FAST,
                    ruins=False,  # on some processors it comes back, below the constant prediction
                ),
                Fault(
                    "targets-are-inputs",
                    "the targets are the inputs, not the next words: the model learns to copy",
                    "the targets are visible in the inputs; targets not moved by one",
                    ("targets-equal-inputs", "leaking-future"),
                ),
            ),
        ),
        Script(
            "time_sequence_prediction",
            "pytorch/examples time_sequence_prediction (LBFGS)",
            8,
            (Printed(r"^loss: (\S+)", steps(8)),),
            {"test": r"^test loss: (\S+)"},
        ),
        Script(
            "vae",
            "pytorch/examples vae",
            200,
            (Printed(r"^Train.*Loss: (\S+)", in_epochs(10, 20, 5), (1.0, 64.0, 1 / 144)),),
            {"reconstruction": r"reconstruction (\S+)"},  # the term that a loss function returns
            validation_units=(1.0, 64.0, 1 / 144),
        ),
        Script(
            "dcgan",
            "pytorch/examples dcgan",
            240,
            (
                Printed(r"Loss_D: (\S+)", steps(240, 2)),
                Printed(r"Loss_G: (\S+)", steps(240, 2, first=1)),
            ),
        ),
        Script(
            "reinforce",
            "pytorch/examples reinforce",
            120,
            (Printed(r"Loss: (\S+)", steps(120, 10)),),
        ),
        Script(
            "actor_critic",
            "pytorch/examples actor_critic",
            150,
            (Printed(r"Loss: (\S+)", steps(150, 10)),),
        ),
        Script(
            "forward_forward",
            "pytorch/examples mnist_forward_forward",
            600,
            (Printed(r"^Loss:  (\S+)", steps(600, 10)),),
        ),
        Script(
            "nanogpt",
            "nanoGPT train.py",
            201,
            (Printed(r"^iter \d+: loss (\S+)", steps(201, 5)),),
            {"train": r"train loss (\S+),", "val": r"val loss (\S+)"},
            (
                Fault(
                    "no-mask",
                    "attention without the causal mask: each position sees its own target",
                    "predictions depend on future tokens",
                    ("leaking-future",),
                ),
                Fault(
                    "schedule-in-degrees",
                    "the hand-made schedule halves the rate every second step: 1e-33 at the end",
                    "the learning rate decays far too fast",
                    ("decayed-learning-rate", "rushed-schedule", "tiny-updates"),
                    before=False,
                ),
            ),
            by_variable=True,
        ),
        Script(
            "mingpt",
            "minGPT Trainer with callbacks",
            250,
            (Printed(r"train loss (\S+)", steps(250, 10)),),
            faults=(
                Fault(
                    "mask-off-by-one",
                    "the causal mask lets each position see the next token, which is its target",
                    "predictions depend on future tokens",
                    ("leaking-future",),
                ),
                Fault(
                    "rate-too-high",
                    "AdamW with lr 1: the loss stays above that of a constant prediction",
                    "learning rate too high; updates too large",
                    TOO_FAST,
                ),
            ),
            by_variable=True,
        ),
        Script(
            "pytorch_cifar",
            "pytorch-cifar main.py",
            200,
            (Printed(r"^\d+/50 Loss: (\S+)", running(4, 50)),),
            {"test": r"^Test Loss: (\S+)"},
            (
                Fault(
                    "same-order",
                    "shuffle=False: every epoch has the same batches in the same order",
                    "training data are not shuffled; the same order every epoch",
                    ("repeated-order",),
                    ruins=False,
                ),
                Fault(
                    "frozen-layers",
                    "all layers but the last are frozen at their random initial values",
                    "parameters are frozen that should train; parameters that do not move",
                    ruins=False,
                ),
                Fault(
                    "no-eval",
                    "the test pass runs in train mode: batch norm uses and stores test batches",
                    "validation in train mode",
                    ("validation-in-train-mode",),
                    before=False,
                    ruins=False,
                ),
                Fault(
                    "eval-mode-never-left",
                    "net.train() is called once: from the second epoch on, training uses the"
                    " running statistics of batch norm",
                    "training in eval mode",
                    ("training-in-eval-mode",),
                    before=False,
                    ruins=False,
                ),
            ),
        ),
        Script(
            "cleanrl_ppo",
            "cleanrl ppo.py",
            192,
            (Printed(r", loss=(\S+),", steps(192, 16, first=15)),),
        ),
        Script(
            "scaler_long",
            "a long autocast loop with GradScaler",
            9000,
            (Printed(r"loss (\S+) scale", steps(9000, 100)),),
            faults=(
                Fault(
                    "nan-late",
                    "inputs are NaN from iteration 7,000 on: all later steps are skipped and the"
                    " scale falls towards 0",
                    "the loss or the inputs are NaN; steps are skipped; the loss scale collapses",
                    (
                        "nonfinite-inputs",
                        "nonfinite-loss",
                        "collapsing-loss-scale",
                        "skipped-steps",
                    ),
                    before=False,
                ),
            ),
        ),
        Script(
            "finetune_head",
            "PyTorch transfer learning tutorial",
            300,
            (Printed(r"batch \d+ loss (\S+)", in_epochs(6, 50, 10)),),
            {"val": r"^val Loss: (\S+)"},
            (
                Fault(
                    "old-head",
                    "the optimizer holds the head that was replaced: nothing is trained, 8 %"
                    " accuracy",
                    "the optimizer holds parameters of no model; the head is in no optimizer",
                    ("parameters-outside-model", "parameters-outside-optimizer"),
                ),
                Fault(
                    "schedule-per-batch",
                    "StepLR with step_size=1 is stepped per batch: the rate is 1e-29 after two"
                    " epochs",
                    "the learning rate decays far too fast; scheduler stepped per batch",
                    ("rushed-schedule", "decayed-learning-rate"),
                    before=False,
                ),
            ),
        ),
        Script(
            "resume",
            "a script that continues from its checkpoint",
            200,
            (Printed(r"\tLoss (\S+)", in_epochs(4, 50, 10)),),
            {"validation": r"Validation loss (\S+)"},
            (
                Fault(
                    "model-only",
                    "the checkpoint's optimizer and schedule are not restored: the rate jumps back"
                    " to its start, Adam's moments are empty",
                    "a resume that restores neither optimizer nor schedule",
                    ("partial-resume", "restarted-schedule", "reset-optimizer-state"),
                    before=False,
                    ruins=False,
                ),
            ),
            arguments=("--resume", "checkpoint.pt"),
            first=(),
        ),
        Script(
            "manual_sgd",
            "PyTorch nn tutorial, update written by hand",
            300,
            (Printed(r"^step \d+ loss (\S+)", steps(300)),),
            {"valid": r"valid (\S+)"},
            (
                Fault(
                    "rate-too-high",
                    "lr 30 in the hand-written update: NaN within 20 steps",
                    "learning rate too high; updates too large; the loss diverges",
                    (*TOO_FAST, "nonfinite-loss"),
                ),
            ),
        ),
        Script(
            "one_line_loop",
            "a notebook cell with several statements to the line",
            300,
            (Printed(r"^train (\S+)", steps(300)),),
            {"valid": r"^valid (\S+)"},
            (
                Fault(
                    "double-sigmoid",
                    "a sigmoid before BCEWithLogitsLoss",
                    "the loss expects logits and gets probabilities",
                    ("doubled-sigmoid",),
                ),
            ),
            by_variable=True,
        ),
        Script(
            "siamese_network",
            "pytorch/examples siamese_network",
            250,
            (Printed(r"^Train.*Loss: (\S+)", in_epochs(5, 50, 5)),),
            {"test": r"Average loss: (\S+),"},
        ),
        Script(
            "snli",
            "pytorch/examples snli",
            200,
            (Printed(r"^\d \d+ loss (\S+)", steps(200, 10, first=9)),),
            {"dev": r"dev loss (\S+)"},
        ),
        Script(
            "super_resolution",
            "pytorch/examples super_resolution",
            160,
            (Printed(r"\): Loss: (\S+)", steps(160)),),
            {"test": r"MSE: (\S+)"},
        ),
        Script(
            "mnist_hogwild",
            "pytorch/examples mnist_hogwild (spawned process)",
            150,
            (Printed(r"\tLoss: (\S+)", in_epochs(3, 50, 10)),),
            {"test": r"Average loss: (\S+)"},
            undecided="the training runs in a process that the script starts",
        ),
        Script(
            "gcn",
            "pytorch/examples gcn (sparse adjacency and features)",
            150,
            (Printed(r"loss_train: (\S+)", steps(150, 10, first=9)),),
            {"val": r"^loss_val: (\S+)", "test": r"results: loss (\S+)"},
        ),
        Script(
            "vision_transformer",
            "pytorch/examples vision_transformer",
            200,
            (Printed(r"^Train.*Loss: (\S+)", in_epochs(4, 50, 10)),),
            {"valid": r"^Valid: loss (\S+),"},
            (
                Fault(
                    "softmax-over-batch",
                    "attention weights are normalised over the batch instead of the keys",
                    "softmax over the wrong dimension; outputs of a sample depend on the others",
                    ("mixed-samples",),
                    ruins=False,
                ),
                Fault(
                    "double-softmax",
                    "a softmax before CrossEntropyLoss: the loss cannot fall below 1.27",
                    "the loss expects logits and gets probabilities",
                    ("doubled-softmax",),
                ),
            ),
        ),
        Script(
            "ddp_one_process",
            "pytorch/examples ddp-tutorial-series, one process",
            256,
            (Printed(r"\| Loss (\S+)", steps(256)),),
            faults=(
                Fault(
                    "no-set-epoch",
                    "sampler.set_epoch is never called: the same order every epoch",
                    "the same order every epoch; training data not reshuffled",
                    ("repeated-order",),
                    ruins=False,
                ),
            ),
            by_variable=True,
        ),
        Script(
            "cleanrl_dqn",
            "cleanrl dqn.py",
            519,
            (Printed(r"td_loss (\S+)", steps(519, 10)),),
        ),
        Script(
            "hf_trainer_bert",
            "transformers Trainer, BERT classification",
            180,
            (Printed(r"^\d+ loss = (\S+)", steps(180)),),
            {"eval": r"eval_loss = (\S+)"},
            (
                Fault(
                    "random-labels",
                    "labels are drawn at random: accuracy 50 %, loss at 0.69",
                    SHUFFLED_LABELS,
                    LABELS,
                ),
            ),
            packages=("transformers", "accelerate"),
        ),
        Script(
            "hf_trainer_causal_lm",
            "transformers Trainer, GPT-2 with num_items_in_batch",
            120,
            (Printed(r"^\d+ loss = (\S+)", steps(120)),),
            {"eval": r"eval_loss = (\S+)"},
            packages=("transformers", "accelerate"),
        ),
        Script(
            "hf_no_trainer",
            "transformers run_glue_no_trainer",
            180,
            (Printed(r"^step \S+ loss (\S+)", steps(180, 10, first=9)),),
            {"eval": r"eval loss (\S+)"},
            (
                Fault(
                    "frozen-encoder",
                    "a randomly initialised encoder is frozen; only the head trains",
                    "parameters are frozen that should train; parameters that do not move",
                    ruins=False,
                ),
                Fault(
                    "no-zero-grad",
                    "gradients are never cleared and add up over all steps",
                    "gradients are not cleared between steps",
                    ("uncleared-gradients",),
                ),
            ),
            packages=("transformers",),
        ),
        Script(
            "lightning_module",
            "Lightning module and Trainer",
            200,
            (Printed(r"train_loss (\S+)", in_epochs(4, 50, 10)),),
            {"val": r"val_loss (\S+)", "test": r"test_loss (\S+)"},
            (
                Fault(
                    "detached-loss",
                    "the hidden layer is detached before the head: l1 and norm never get a gradient",
                    "the graph is cut; parameters that no gradient reaches",
                    ("unreached-parameters",),
                    ruins=False,
                ),
            ),
            packages=("lightning",),
        ),
        Script(
            "accelerate_loop",
            "Accelerate with gradient accumulation",
            160,
            (Printed(r"step \d+ loss (\S+)", steps(160)),),
            {"eval": r"eval_loss (\S+)"},
            (
                Fault(
                    "rate-too-high",
                    "AdamW with lr 5: the loss jumps to tens and hundreds and ends at chance",
                    "learning rate too high; updates too large; the loss diverges",
                    TOO_FAST,
                ),
            ),
            packages=("accelerate",),
        ),
        Script(
            "timm_train",
            "timm train.py (mixup, soft targets, EMA)",
            200,
            (Printed(r"^Train.*Loss: (\S+)", in_epochs(5, 40, 10)),),
            {"test": r"^Test: Loss: (\S+)", "ema": r"^Test \(EMA\): Loss: (\S+)"},
            (
                Fault(
                    "rate-too-high",
                    "SGD with momentum at lr 20: the loss jumps and ends at chance, 10 % accuracy",
                    "learning rate too high; updates too large; the loss diverges",
                    TOO_FAST,
                ),
            ),
        ),
        Script(
            "pyg_gcn",
            "PyTorch Geometric gcn.py, by index arithmetic",
            120,
            (Printed(r"Loss: (\S+),", steps(120)),),
        ),
        Script(
            "keras_fit",
            "Keras 3 on torch, compile and fit",
            200,
            (
                Printed(
                    r"^batch \d+ loss (\S+)",
                    tuple((e * 40, e * 40 + b) for e in range(5) for b in range(0, 40, 10)),
                ),
            ),
            {"val": r"val_loss (\S+)", "test": r"Test loss: (\S+)"},
            (
                Fault(
                    "shuffled-labels",
                    "training labels are permuted: 17 % accuracy, loss at 1.79",
                    SHUFFLED_LABELS,
                    LABELS,
                ),
            ),
            by_variable=True,
            packages=("keras",),
        ),
        Script(
            "fastai_learner",
            "fastai: Learner, callbacks, its own Optimizer",
            200,
            (Printed(r"^batch \d+ loss (\S+)", steps(200)),),
            {"valid": r"valid_loss (\S+)"},
            (
                Fault(
                    "train-once",
                    "model.train() only in the first epoch: later epochs train in eval mode",
                    "training in eval mode",
                    ("training-in-eval-mode",),
                    before=False,
                    ruins=False,
                ),
                Fault(
                    "rate-too-high",
                    "Adam at lr 10: the loss jumps far above its start and ends at 0.56 instead of 0.04",
                    "learning rate too high; updates too large; the loss diverges",
                    TOO_FAST,
                    ruins=False,
                ),
            ),
            by_variable=True,
        ),
        Script(
            "tabular_long",
            "4,000 short steps, validation, one test pass at the end",
            4000,
            (Printed(r"train (\S+)", steps(4000, 50)),),
            {"validation": r"^validation (\S+)", "test": r"^test (\S+)"},
            (
                Fault(
                    "reseeded-order",
                    "the shuffling generator is seeded again for each epoch: the same order",
                    "the same order every epoch; training data not reshuffled",
                    ("repeated-order",),
                    ruins=False,
                ),
            ),
        ),
        Script(
            "quickstart",
            "PyTorch quickstart tutorial",
            315,
            (Printed(r"^loss: (\S+)", in_epochs(5, 63, 9)),),
            {"test": r"Avg loss: (\S+)"},
            (
                Fault(
                    "zero-weights",
                    "all weights are initialised to 0: only the last bias can learn",
                    "symmetric or zero initial weights; dead units; no gradient reaches the layers",
                    ("identical-rows", "dead-units", "dead-gradients", "vanishing-gradients"),
                ),
            ),
            by_variable=True,
        ),
        Script(
            "unet",
            "Pytorch-UNet train.py (cross entropy plus Dice)",
            120,
            (Printed(r"\(batch\) (\S+)", steps(120)),),
            without_loss=True,
            faults=(
                Fault(
                    "softmax-over-batch",
                    "the Dice term takes the softmax over the batch instead of the classes",
                    "softmax over the wrong dimension; the loss of a sample depends on the others",
                    ("batch-axis-softmax", "mixed-samples"),
                    ruins=False,
                ),
            ),
        ),
        Script(
            "ddpm",
            "a diffusion model with EMA",
            320,
            (Printed(r"it \d+ loss (\S+)", in_epochs(8, 40, 5)),),
            faults=(
                Fault(
                    "detached-output",
                    "the output is detached before the loss: no parameter gets a gradient",
                    "the graph is cut; parameters that no gradient reaches; weights do not move",
                    ("unreached-parameters", "all-zero-gradients", "motionless-weights"),
                ),
            ),
            by_variable=True,
        ),
    ]
)
