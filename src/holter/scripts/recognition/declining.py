"""NotRecognisedError: the statement that prevents a step from being repeated, and what to do."""

import sys
from enum import StrEnum
from pathlib import Path

from holter.record.errors import HolterError

_SETUP = """\
Write a setup function in a file of your own and pass it instead of the script:
`holter try preflight my_setup:setup`

    def setup():
        loss = lambda model, batch: ...  # forward pass and loss of one batch
        return holter.Setup.of(model, optimizer, loss, train_loader)"""


class WayOut(StrEnum):
    """What to do instead, for each kind of reason."""

    SETUP = _SETUP
    LIBRARY = (
        f"The library calls the training step. Repeat it without the library. {_SETUP}"
        "\n\nOr run experiments from a callback of the library, with what `holter.watch` returned:"
        "\n`holter.Setup.of_watch(watch, loss, train_loader)`"
    )
    LONGER = (
        "Record the script for longer: `--seconds 60`, or use arguments for more data, more epochs"
        f" or smaller batches.\nOr do without the loop. {_SETUP}"
    )
    NO_TRAINING = (
        "Pass the arguments that make the script train after its name: `holter try preflight"
        f" train.py --mode train`.\nOr do without the script. {_SETUP}"
    )
    ONE_PROCESS = (
        "Train in the main process, if the script has an argument for that, such as"
        f" `--num-processes 0`.\nOr do without the processes. {_SETUP}"
    )
    OPTIMIZER = (
        "Replace the updates by a torch optimizer: `optimizer ="
        " torch.optim.SGD(model.parameters(), lr=0.1)`, then `optimizer.step()`.\nOr name one for"
        f" the experiments. {_SETUP}"
    )
    MODULE = (
        "Store the tensors in a module: `self.weight = torch.nn.Parameter(...)`, so that"
        f" experiments can restore them.\n{_SETUP}"
    )
    ONE_MODEL = f"Select one of the models. {_SETUP}"


class NotRecognisedError(HolterError):
    """The training step of a script cannot be repeated; the message names the statement."""


def declined(why: str, instead: WayOut = WayOut.SETUP) -> NotRecognisedError:
    """Return the error with what to do instead; `why` begins with the place, if there is one."""
    return NotRecognisedError(f"{why}\n{instead}")


# Frameworks whose callback knows the setup, by the module that holds their Trainer.
_CALLBACKS = {
    "lightning.pytorch.trainer": "lightning",
    "pytorch_lightning.trainer": "lightning",
    "transformers.trainer": "transformers",
}


def with_callback(refusal: NotRecognisedError) -> NotRecognisedError:
    """Return the error with the callback to add, if the script has imported such a framework."""
    names = (name for module, name in _CALLBACKS.items() if module in sys.modules)
    if (name := next(names, None)) is None:
        return refusal
    return NotRecognisedError(
        f"{refusal}\n\nOr, if a Trainer of {name} trains the model, add the callback that knows the"
        f" setup, and run the same command:\n\n    from holter.integrations.{name} import"
        " HolterCallback\n    Trainer(..., callbacks=[HolterCallback()])"
    )


def first_line(error: Exception) -> str:
    """Return the kind of an error and the first sentence of its message; of holter's, no kind."""
    text = str(error).strip().partition("\n")[0].partition(". ")[0].rstrip(".")
    if isinstance(error, HolterError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


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
