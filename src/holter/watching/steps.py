"""The open step of a training as a state machine: what has been seen of it, and what follows."""

from dataclasses import dataclass, field
from enum import Enum, auto

from holter.watching.collectors.moments import Depth
from holter.watching.collectors.roster import Subject
from holter.watching.taps import Interest


class Stage(Enum):
    """How far the open step has come."""

    FRESH = auto()  # nothing has been seen of it
    BACKWARD = auto()  # a backward pass
    UPDATED = auto()  # an optimizer has stepped, or a GradScaler has skipped its step


@dataclass(slots=True)
class OpenStep:
    """The step that is under way. Every change of it is one of the methods below.

    A step runs from the first backward after one `optimizer.step()` to the first backward after
    the next. So `log(loss=...)` may stand on either side of `optimizer.step()`, accumulation is one
    step, evaluation is none, and two optimizers stepped after one backward share a step.

    ========  ======================================  =========================================
    stage     what happens                            next stage
    ========  ======================================  =========================================
    FRESH     backward                                BACKWARD
    FRESH     update (a closure calls backward)       UPDATED
    BACKWARD  backward (accumulation)                 BACKWARD
    BACKWARD  update, or one that a scaler skips      UPDATED
    UPDATED   update by another optimizer             UPDATED
    UPDATED   backward, or the same optimizer again   step ends: FRESH, then as above
    any       the watch closes                        an updated step ends
    ========  ======================================  =========================================
    """

    depth: Depth = Depth.FULL  # how much of it is read
    next_depth: Depth = Depth.FULL  # how much is read of the step after it
    stage: Stage = Stage.FRESH
    stepped: list[Subject] = field(default_factory=list)  # optimizers in the order they stepped
    read: set[Subject] = field(default_factory=set)  # those whose gradients have been read
    began: float | None = None  # None: unknown, its length does not count
    # How much is read of the step that a forward pass belongs to, and whether that is everything.
    forward_depth: Depth = Depth.FULL
    forward: Interest = field(default_factory=Interest)

    @property
    def is_updated(self) -> bool:
        """Whether the update of this step is over: a forward pass belongs to the next one."""
        return self.stage is Stage.UPDATED

    @property
    def is_ahead(self) -> bool:
        """Whether what happens now belongs to a step whose first backward is still to come."""
        return self.stage is not Stage.BACKWARD

    @property
    def has_begun(self) -> bool:
        """Whether a backward or an update of this step was seen."""
        return self.stage is not Stage.FRESH

    def backward(self) -> bool:
        """See a backward pass; return whether it is the first one of the step."""
        opens = self.stage is Stage.FRESH
        self.stage = Stage.BACKWARD
        if self.read:
            self.read.clear()  # of micro-batches clipped one by one, the last reading counts
        return opens

    def updated(self, subject: Subject) -> None:
        """See an optimizer step, or a GradScaler skip its step."""
        self.stepped.append(subject)
        self.stage = Stage.UPDATED
        self.forward_depth = self.next_depth
        self.forward.is_on = self.next_depth is Depth.FULL

    def end(self, at: float | None) -> None:
        """Let the next step begin; its length is measured from `at`."""
        self.began, self.depth = at, self.next_depth  # as a forward pass since the update was read
        self.stage = Stage.FRESH
        self.stepped = []
        self.read.clear()

    def renew(self, subjects: dict[int, Subject]) -> None:
        """Replace subjects by those that now have their indices."""
        self.stepped = [subjects.get(subject.index, subject) for subject in self.stepped]
        self.read = {subjects.get(subject.index, subject) for subject in self.read}
