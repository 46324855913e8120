"""NotRecognisedError: the statement that prevents a step from being repeated, and what to do."""

from pathlib import Path

from holter.record.errors import HolterError

_INSTEAD = """\
Write a setup function in a file of your own and pass it instead of the script:
`holter try preflight {module}:setup`

    def setup():
        loss = lambda model, batch: ...  # forward pass and loss of one batch
        return holter.Setup.of(model, optimizer, loss, train_loader)"""


class NotRecognisedError(HolterError):
    """The training step of a script cannot be repeated; the message names the statement."""


def declined(why: str) -> NotRecognisedError:
    """Return the error with what to write instead; `why` begins with the place, if there is one."""
    return NotRecognisedError(f"{why}\n{_INSTEAD.format(module='my_setup')}")


def at(file: str, line: int, statement: str, why: str) -> str:
    """Return a sentence that names a statement: `train.py:12: loss.backward(): why`."""
    first, _, rest = statement.strip().partition("\n")
    shown = f"{first} ..." if rest else first
    return f"{shortened(file)}:{line}: `{shown}` {why}"


def shortened(file: str) -> str:
    """Return a path relative to the current folder, if it is inside."""
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except ValueError:
        return file
