"""The birth of a value that is not finite, as a replay records it."""

from dataclasses import dataclass

SINGULAR = (
    *("log of zero", "zero by zero", "division by zero", "root at zero", "zero norm"),
    *("outside domain", "masked row", "empty mean"),
)


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor that an operation was given; the range is that of its finite elements."""

    name: str  # of the variable, parameter or argument; "input 0" where it has none
    shape: tuple[int, ...]
    dtype: str
    low: float
    high: float
    zeros: int
    nonfinite: int


@dataclass(frozen=True, slots=True)
class Birth:
    """Where and how something was born that is not finite, and that loss or weights inherited."""

    operation: str  # as people call it: "log"
    kind: str  # one of KINDS
    phase: str  # "forward", "backward", "update"
    where: str  # "train.py:88"; for backward the line of the forward operation
    line: str  # its source text
    module: str  # the path of the module it happened in; empty outside of all
    node: str  # of autograd, in backward: "SqrtBackward0"
    operands: tuple[Operand, ...]
    count: int  # elements of the output that are not finite
    of: int
    samples: tuple[int, ...]  # of the batch, to which they belong; the first 8
    positions: tuple[tuple[int, ...], ...]  # the first few
    passed_on: int  # later operations that only passed it on
    passed_to: tuple[str, ...]  # the modules in which they did
    headroom: float | None  # of an overflow: the largest operand, as a share of the type's limit
    says: str
    sample_count: int = 0  # all samples to which they belong
    made_by: tuple[str, ...] = ()  # operations that led to the operand, the last first
    went_into: tuple[str, ...] = ()  # the first operations that it was passed on to
    masked: bool = False  # the loss does not inherit it, only the gradient
    parameter: str = ""  # of an update: the parameter that was updated
    states: tuple[str, ...] = ()  # of an update: the optimizer's tensors that went into it
    stepped_at: str = ""  # of an update: file and line of `optimizer.step()` in the script
    micro_batch: int = 0  # the batch of the step it was born in, from 0
    micro_batches: int = 1  # batches of the step
    indices: tuple[int, ...] = ()  # of the samples in the data set, where they are known
    before_step: bool = False  # by the script, after the update before the step that met it
    reaches: str = ""  # of a value that the script made by itself: "input" or "setting"
    backward_at: str = ""  # of a gradient: file and line of the script's `backward()`

    @property
    def is_from_outside(self) -> bool:
        """Whether the step was given it, or found it in a weight: it was produced before."""
        return self.kind in ("bad input", "spoiled weights")

    @property
    def is_unexplained(self) -> bool:
        """Whether no reason was found: the operation only took the value over, as a rule."""
        return self.kind == "unknown"

    @property
    def has_origin(self) -> bool:
        """Whether what the script did before, outside of what was watched, may have produced it."""
        return self.is_from_outside or self.kind == "bad setting"

    @property
    def is_singular(self) -> bool:
        """Whether the operation cannot be given such operands, however large they are."""
        return self.kind in SINGULAR

    @property
    def has_safe_form(self) -> bool:
        """Whether the script can write the operation so that no batch makes it fail."""
        return self.is_singular or self.is_in_own_backward or self.operation == "ctc_loss"

    @property
    def is_in_own_backward(self) -> bool:
        """Whether it happened in the backward() of an autograd.Function of the script."""
        return self.phase == "backward" and self.node.endswith("Backward")  # torch numbers its own
