"""The open step of a training as a state machine: what has been seen of it, and what follows."""

from dataclasses import dataclass, field
from enum import Enum, auto

from holter.watching.collectors.moments import Depth
from holter.watching.collectors.roster import Subject


class Stage(Enum):
    """How far the open step has come."""

    FRESH = auto()  # nothing has been seen of it
    BACKWARD = auto()  # a backward pass
    UPDATED = auto()  # an optimizer has stepped
    UNREAD = auto()  # its only optimizer has stepped, and nothing of the step was read


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
    FRESH     update (a closure calls backward)       UPDATED, or UNREAD if nothing is read
    BACKWARD  backward (accumulation)                 BACKWARD
    BACKWARD  update, or one that a scaler skips      UPDATED, or UNREAD if nothing is read
    UPDATED   update by another optimizer             UPDATED
    UPDATED   backward, or the same optimizer again   step ends: FRESH, then as above
    UNREAD    validation loss                         UPDATED, read from here on
    UNREAD    `log()`, backward, update, skip         step ends: FRESH, then as above
    any       the watch closes                        an updated step ends
    ========  ======================================  =========================================

    A step of depth NONE is *deaf*: the taps do not report its backward passes. After its update
    it waits in UNREAD, because what follows decides where it ends: a validation loss still
    belongs to it, everything else to the next step.
    """

    depth: Depth = Depth.FULL  # how much of it is read
    next_depth: Depth = Depth.FULL  # how much is read of the step after it
    stage: Stage = Stage.FRESH
    is_deaf: bool = False  # a backward is of no interest
    is_whole: bool = True  # False if some of it passed before it was read
    stepped: list[Subject] = field(default_factory=list)  # optimizers in the order they stepped
    read: set[Subject] = field(default_factory=set)  # those whose gradients have been read
    began: float | None = None  # None: unknown, its length does not count
    _awaits_scaler: bool = False  # UNREAD: a GradScaler has not yet reported this update

    @property
    def is_updated(self) -> bool:
        """Whether the update of this step is over: a forward pass belongs to the next one."""
        return self.stage is Stage.UPDATED or self.stage is Stage.UNREAD

    @property
    def is_ahead(self) -> bool:
        """Whether what happens now belongs to a step whose first backward is still to come."""
        return self.stage is not Stage.BACKWARD

    @property
    def has_begun(self) -> bool:
        """Whether a backward or an update of this step was seen."""
        return self.stage is Stage.BACKWARD or self.stage is Stage.UPDATED

    @property
    def forward_depth(self) -> Depth:
        """How much is read of the step that a forward pass belongs to."""
        return self.next_depth if self.is_updated else self.depth

    def backward(self) -> bool:
        """See a backward pass; return whether it is the first one of the step."""
        opens = self.stage is Stage.FRESH
        self.stage = Stage.BACKWARD
        self.read.clear()  # of micro-batches clipped one by one, the last reading counts
        return opens

    def backward_unread(self) -> None:
        """Pass over a backward that was reported although nothing of the step is read."""
        self.stage, self.is_deaf = Stage.BACKWARD, True

    def hear(self) -> None:
        """Have the next backward reported, although nothing of the step is read."""
        self.is_deaf = False

    def updated(self, subject: Subject) -> None:
        """See an optimizer step, or a GradScaler skip its step."""
        self.stepped.append(subject)
        self.stage, self.is_deaf = Stage.UPDATED, False

    def updated_unread(self, at: float) -> None:
        """Pass over the update of a step that is not read; the next one is measured from `at`."""
        self.stage, self._awaits_scaler, self.began = Stage.UNREAD, True, at

    def scaler_reports_unread(self) -> bool:
        """Return whether a GradScaler reports the unread update, not a step that it skipped."""
        awaited = self.stage is Stage.UNREAD and self._awaits_scaler
        self._awaits_scaler = False
        return awaited

    def read_after_all(self, subjects: list[Subject]) -> None:
        """Read the rest of a step that was not to be read; `subjects` if it was updated unseen."""
        self.depth, self.is_deaf, self.is_whole = Depth.LIGHT, False, False
        if self.stage is Stage.UNREAD:
            self.stage, self.stepped = Stage.UPDATED, subjects

    def end(self, at: float | None) -> None:
        """Let the next step begin; its length is measured from `at`."""
        self.began, self.depth = at, self.next_depth
        self.stage, self.is_deaf, self.is_whole = Stage.FRESH, self.depth is Depth.NONE, True
        self.stepped = []
        self.read.clear()

    def renew(self, subjects: dict[int, Subject]) -> None:
        """Replace subjects by those that now have their indices."""
        self.stepped = [subjects.get(subject.index, subject) for subject in self.stepped]
        self.read = {subjects.get(subject.index, subject) for subject in self.read}
