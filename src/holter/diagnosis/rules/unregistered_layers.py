"""The source stores layers or parameters without registering them in the model."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Level, Severity, Verdict
from holter.record.signals import LOSS, TIME_DEVICE_BACKWARD

_MOVED = Mistake(
    "`{code}` stores a tensor computed from a parameter: `{subject}` is a plain tensor that"
    " `model.parameters()` does not return",
    "convert the tensor first, and move the whole model:"
    " `self.{subject} = nn.Parameter(tensor); model.to(device)`",
)
_MISTAKES = {
    "unregistered": Mistake(
        "`{code}` keeps layers in a plain container: `{subject}` is not registered, and"
        " `model.parameters()` does not return its weights",
        "register the layers: `self.{subject} = nn.ModuleList([...])`, or `nn.ModuleDict({{...}})`",
    ),
    "moved parameter": _MOVED,
    "layer in forward": Mistake(
        "`{code}` creates `{subject}` in every forward pass: its weights are random each time, and"
        " no optimizer holds them",
        "create the layer in `__init__`, and call it in `forward`",
    ),
    "dropout in forward": Mistake(
        "`{code}` creates `{subject}` in every forward pass: `model.eval()` does not switch it off",
        "create it in `__init__`, or call `F.dropout(x, p, training=self.training)`",
    ),
    "plain tensor": Mistake(
        "`{code}` keeps `{subject}` as a plain tensor: `model.to(device)` leaves it behind, and"
        " `state_dict()` lacks it",
        "register it: `self.register_buffer('{subject}', tensor)`",
        Confidence.HINT,
    ),
}


@rule(severity=Severity.WARNING, level=Level.ARCHITECTURE, needs=(LOSS,), preview=True)
def unregistered_layers(facts: Facts) -> Iterator[Verdict]:
    """The source stores layers or parameters without registering them in the model.

    ## What it does
    Reads the source of the script and of the modules next to it. It reports modules that keep
    layers in a list, tuple or dictionary, parameters that are reshaped, or moved to a GPU, after
    they were created, and layers that are created in `forward`.

    ## Why it matters
    `model.parameters()`, `model.to()`, `model.eval()` and `model.state_dict()` do not see these
    weights. They keep their initial values and are missing from checkpoints.

    ## Example
    ```python
    self.layers = [nn.Linear(64, 64) for _ in range(3)]                 # bad
    self.layers = nn.ModuleList([nn.Linear(64, 64) for _ in range(3)])  # good
    ```

    ## What to do
    Use `nn.ModuleList` or `nn.ModuleDict`. Apply `nn.Parameter` to the final tensor, and move the
    model with `model.to(device)`.

    ## When it is wrong
    The weights are unregistered on purpose, such as those of a frozen teacher.

    ## How to confirm
    - Print `[name for name, _ in model.named_parameters()]`: the layers are missing.
    """
    # On the CPU `to(device)` returns the parameter itself.
    on_a_gpu = TIME_DEVICE_BACKWARD in facts.run
    mistakes = _MISTAKES | ({"parameter to device": _MOVED} if on_a_gpu else {})
    yield from concluded(unregistered_layers, facts, mistakes)
