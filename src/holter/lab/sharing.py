"""One experiment on several machines: each makes a share of its trials, one puts them together."""

from dataclasses import dataclass

from holter.record.errors import HolterError


@dataclass(frozen=True, slots=True)
class Share:
    """The trials that one process makes: every `of`-th, from `number` on."""

    number: int
    of: int

    def holds(self, place: int) -> bool:
        """Whether the trial at a place of the experiment's order is in this share."""
        return place % self.of == self.number

    @classmethod
    def parse(cls, text: str) -> "Share":
        """Read a share from a command line: `2/8`."""
        number, _, of = text.partition("/")
        if not (number.isdecimal() and of.isdecimal() and int(number) < int(of)):
            raise HolterError(f"--share {text}: write NUMBER/OF, for example 0/8.")
        return cls(int(number), int(of))


WHOLE = Share(0, 1)
