"""NotRecognisedError: which statement of a script cannot be repeated, why, and what to write."""

from pathlib import Path

from holter.record.errors import HolterError

_INSTEAD = """\
Write the step yourself, in a file of yours, and give its function instead of the script,
as in `holter try preflight {module}:setup`:

    def setup():
        loss = lambda model, batch: ...  # the loss of one batch, by a forward pass of the model
        return holter.Setup.of(model, optimizer, loss, train_loader)"""


class NotRecognisedError(HolterError):
    """The training step of a script cannot be repeated; it names the statement and says why."""


def declined(why: str) -> NotRecognisedError:
    """The error with what to write instead; `why` begins with the place, where there is one."""
    return NotRecognisedError(f"{why}\n{_INSTEAD.format(module='my_setup')}")


def at(file: str, line: int, statement: str, why: str) -> str:
    """A sentence that names a statement: `train.py:12: loss.backward(): why`."""
    first, _, rest = statement.strip().partition("\n")
    shown = f"{first} ..." if rest else first
    return f"{shortened(file)}:{line}: `{shown}` {why}"


def shortened(file: str) -> str:
    """A path as a person would type it here."""
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except ValueError:
        return file
