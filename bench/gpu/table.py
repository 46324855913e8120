"""The scripts of the suite with their truth, written before holter had seen any of them.

`truth` says in words what is wrong; `accepts` are the rules that name it, or its direct and
visible consequence. A healthy script has neither. `cpu` is False where the script needs CUDA.
"""

from dataclasses import dataclass

NONFINITE = ("nonfinite-loss", "nonfinite-gradient", "nonfinite-weights")
NO_LEARNING = ("loss-at-constant-predictor", "flat-loss", "loss-plateau")
TOO_LARGE = ("huge-updates", "diverging-loss", "exploding-weights", "exploding-gradients")


@dataclass(frozen=True, slots=True)
class Specimen:
    """A script, its arguments, and what is true of it."""

    name: str
    script: str
    arguments: str = ""
    truth: str = ""
    accepts: tuple[str, ...] = ()
    cpu: bool = True
    deterministic: bool = True  # a data race is not, and its output is not compared
    replayed: bool = False  # steps run from a CUDA graph, where no Python code sees them

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong with it."""
        return not self.truth


SPECIMENS = (
    # Autocast and GradScaler.
    Specimen("fp16", "mixed_precision", "--dtype float16 --clip unscaled"),
    Specimen("bf16", "mixed_precision", "--dtype bfloat16"),
    Specimen("tf32", "mixed_precision", "--dtype float32 --tf32"),
    Specimen("fp16-early-skips", "mixed_precision", "--dtype float16 --init-scale 16777216"),
    Specimen("fp16-short-growth", "mixed_precision", "--dtype float16 --growth-interval 50"),
    Specimen("fp16-accumulation", "mixed_precision", "--dtype float16 --accumulate 4 --steps 400"),
    Specimen("fp16-deep", "mixed_precision", "--dtype float16 --depth 50 --steps 500"),
    Specimen(
        "fp16-deep-nan",
        "mixed_precision",
        "--dtype float16 --depth 50 --steps 500 --anneal-until 300",
        "the annealed temperature is 0 from iteration 300 on: the loss is NaN for the last 200"
        " iterations, GradScaler skips every one of them and the scale collapses",
        (*NONFINITE, "collapsing-loss-scale", "skipped-steps"),
    ),
    Specimen(
        "fp16-long-nan",
        "mixed_precision",
        "--dtype float16 --steps 9000 --anneal-until 7000",
        "after 7,000 good iterations the annealed temperature is 0: the loss is NaN for 2,000"
        " iterations, all skipped by GradScaler, and the scale collapses",
        (*NONFINITE, "collapsing-loss-scale", "skipped-steps"),
    ),
    Specimen(
        "fp16-overflow",
        "mixed_precision",
        "--dtype float16 --no-scaler --input-scale 30000",
        "inputs of 3e4 overflow float16 in the first layer, and there is no scaler that skips",
        (*NONFINITE, "unscaled-inputs", "overflow-headroom"),
    ),
    Specimen(
        "fp16-scaled-clipping",
        "mixed_precision",
        "--dtype float16 --clip scaled --optimizer sgd --lr 0.1",
        "unscale_ is missing: the norm is clipped while the gradients still carry the loss scale,"
        " so that updates are 65,536 times too small",
        ("scaled-clipping", "constant-clipping"),
    ),
    Specimen(
        "fp16-lr-too-high",
        "mixed_precision",
        "--dtype float16 --optimizer sgd --lr 300",
        "the learning rate is 3,000 times too high",
        (*TOO_LARGE, *NONFINITE, "collapsing-loss-scale", "skipped-steps"),
    ),
    Specimen(
        "fp16-uncleared",
        "mixed_precision",
        "--dtype float16 --keep-gradients --optimizer sgd --lr 0.5",
        "zero_grad is missing",
        ("uncleared-gradients",),
    ),
    Specimen(
        "bf16-poisoned-batch",
        "mixed_precision",
        "--dtype bfloat16 --poison-at 400",
        "the batch of iteration 400 holds an infinite value; the weights are NaN from then on",
        ("nonfinite-inputs", "poisonous-batch", *NONFINITE),
    ),
    Specimen(
        "tf32-lr-too-high",
        "mixed_precision",
        "--dtype float32 --tf32 --lr 30",
        "the learning rate of AdamW is 30",
        (*TOO_LARGE, *NONFINITE),
    ),
    # torch.compile.
    Specimen("compile-default", "compiled", "--mode default"),
    Specimen("compile-fullgraph", "compiled", "--mode default --fullgraph"),
    Specimen("compile-reduce-overhead", "compiled", "--mode reduce-overhead", cpu=False),
    Specimen("compile-max-autotune", "compiled", "--mode max-autotune-no-cudagraphs", cpu=False),
    Specimen(
        "compile-stale-optimizer",
        "compiled",
        "--mode default --rebuild",
        "the optimizer was built before the model was made again and compiled: it holds the"
        " parameters of a model that is not trained",
        ("parameters-outside-model", "parameters-outside-optimizer"),
    ),
    Specimen(
        "compile-eval-mode",
        "compiled",
        "--mode default --stay-in-eval",
        "the model stays in eval mode after the first validation",
        ("training-in-eval-mode",),
    ),
    Specimen(
        "compile-softmax-twice",
        "compiled",
        "--mode reduce-overhead --softmax",
        "the model ends in a softmax, and cross_entropy applies another",
        ("doubled-softmax",),
        cpu=False,
    ),
    # Optimizers.
    Specimen("adamw-fused", "optimizers", "--optimizer adamw-fused"),
    Specimen("sgd-foreach", "optimizers", "--optimizer sgd-foreach --lr 0.05"),
    Specimen("adam-capturable", "optimizers", "--optimizer adam-capturable", cpu=False),
    Specimen(
        "adamw-fused-lr-too-high",
        "optimizers",
        "--optimizer adamw-fused --lr 2",
        "the learning rate of AdamW is 2",
        (*TOO_LARGE, *NONFINITE),
    ),
    Specimen(
        "sgd-foreach-uncleared",
        "optimizers",
        "--optimizer sgd-foreach --lr 0.05 --keep-gradients",
        "zero_grad is missing",
        ("uncleared-gradients",),
    ),
    # CUDA graphs.
    Specimen("graphed-callables", "graphed_callables", cpu=False),
    Specimen(
        "graphed-callables-lr-too-high",
        "graphed_callables",
        "--lr 100",
        "the learning rate of SGD is 2,000 times too high",
        (*TOO_LARGE, *NONFINITE),
        cpu=False,
    ),
    Specimen("captured-step", "captured_step", cpu=False, replayed=True),
    # Copies.
    Specimen("pinned-copies", "pinned_copies", cpu=False),
    Specimen(
        "pinned-reuse",
        "pinned_copies",
        "--reuse",
        "the pinned buffer is filled with the next images while the non_blocking copy of this"
        " step's images is still queued: labels belong to other images",
        (*NO_LEARNING, "unrelated-labels"),
        cpu=False,
        deterministic=False,
    ),
    # Memory formats.
    Specimen("channels-last", "channels_last"),
    Specimen(
        "channels-last-dead-relus",
        "channels_last",
        "--bias -30",
        "the bias of the convolution before the head starts at -30: its ReLUs never fire",
        ("dead-units", "all-zero-gradients", "dead-gradients"),
    ),
    Specimen(
        "channels-last-eval-mode",
        "channels_last",
        "--stay-in-eval",
        "the model stays in eval mode after the first validation",
        ("training-in-eval-mode",),
    ),
    # Activation checkpointing.
    Specimen("checkpoint-reentrant", "checkpointing", "--reentrant"),
    Specimen("checkpoint-non-reentrant", "checkpointing"),
    Specimen(
        "checkpoint-without-gradients",
        "checkpointing",
        "--reentrant --raw-inputs",
        "reentrant checkpointing of inputs that require no gradient: no checkpointed block is"
        " trained, only the head",
        ("unreached-parameters",),
    ),
    # Attention.
    Specimen("sdpa-math", "attention", "--backend math"),
    Specimen("sdpa-flash", "attention", "--backend flash", cpu=False),
    Specimen("sdpa-efficient", "attention", "--backend efficient", cpu=False),
    Specimen(
        "sdpa-inverted-mask",
        "attention",
        "--backend math --invert-mask",
        "the padding mask is inverted: attention sees only padding, and the outputs hold nothing"
        " of the inputs",
        (*NO_LEARNING, "ignored-inputs"),
    ),
    # Streams and several models.
    Specimen("streams", "streams", cpu=False),
    Specimen(
        "streams-forgotten-model",
        "streams",
        "--forget",
        "the optimizer holds only the first of two models that are trained together",
        ("parameters-outside-optimizer",),
        cpu=False,
    ),
    # Recurrent networks.
    Specimen("lstm", "recurrent", "--cell lstm --clip 1"),
    Specimen(
        "exploding-rnn",
        "recurrent",
        "--cell relu --gain 2",
        "the recurrent weights are twice an orthogonal matrix: the state doubles with each of 60"
        " time steps, and so does its gradient",
        ("growing-activations", *TOO_LARGE, *NONFINITE, "large-initial-loss"),
    ),
    # The precision of weights and losses.
    Specimen("bf16-weights", "half_weights", "--dtype bfloat16 --optimizer adamw --lr 2e-3"),
    Specimen(
        "fp16-weights-adam",
        "half_weights",
        "--dtype float16 --optimizer adam --lr 1e-3",
        "weights and Adam's state are float16: eps=1e-8 rounds to 0, and small squared gradients"
        " too, so that the update is a division by zero",
        (*NONFINITE, "rounded-away-updates"),
    ),
    Specimen(
        "bf16-weights-rounded",
        "half_weights",
        "--dtype bfloat16 --optimizer sgd --lr 2e-4",
        "weights are bfloat16 and updates are far below half a unit in the last place: they are"
        " rounded away",
        ("rounded-away-updates", "motionless-weights", "tiny-updates"),
    ),
    Specimen("float-loss", "half_loss", cpu=False),
    Specimen(
        "half-loss-overflow",
        "half_loss",
        "--half",
        "the squared error is summed in float16 and exceeds 65,504: the loss is infinite at every"
        " step",
        (*NONFINITE, "collapsing-loss-scale", "skipped-steps"),
        cpu=False,  # too slow there
    ),
    # Memory.
    Specimen("lengths-padded", "lengths", "--pad 512", cpu=False),
    Specimen(
        "lengths-rising",
        "lengths",
        "--pad 1",
        "every few steps batches are longer than any before: no cached block fits, and as memory is"
        " nearly full, the allocator empties its cache again and again",
        ("fragmented-memory",),
        cpu=False,
    ),
    # Reads of the GPU.
    Specimen("reads-seldom", "reads", cpu=False),
    Specimen(
        "reads-at-every-layer",
        "reads",
        "--check-every 1",
        "the output of each of 16 blocks is checked for NaN at every step: the host waits for the"
        " GPU 16 times in a step, and the GPU then for the host",
        ("synchronising-calls",),
        cpu=False,
    ),
)
