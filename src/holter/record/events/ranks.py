"""What happens in a training of several processes."""

from dataclasses import dataclass
from typing import ClassVar

from holter.record.events._event import Occurrence


@dataclass(frozen=True, slots=True)
class ProcessGroupSeen(Occurrence):
    """The process trains as a member of a torch.distributed process group."""

    kind: ClassVar[str] = "process group"
    backend: str
    rank: int
    world_size: int
    wrapper: str = ""  # what torch calls that which reduces gradients; empty without any
    replicas: int = 0  # processes that the wrapper trains one model in; 0 without a wrapper
    shards: int = 1  # processes that a parameter is split over
    ignored: tuple[str, ...] = ()  # parameters that the wrapper leaves alone
    batch_norms: int = 0
    synchronised_batch_norms: int = 0


@dataclass(frozen=True, slots=True)
class UnevenInputsJoined(Occurrence):
    """`Join` is entered: processes may have different numbers of batches."""

    kind: ClassVar[str] = "uneven inputs joined"


@dataclass(frozen=True, slots=True)
class SilenceSeen(Occurrence):
    """A process of a group has done nothing for a long time; `stacks.txt` shows where it is."""

    kind: ClassVar[str] = "silence"
    seconds: float  # since it did something
    activity: str  # what that was
    where: str = ""  # file and line of the script
    function: str = ""  # the innermost Python function
    collective: str = ""  # the function of torch.distributed that it is in
