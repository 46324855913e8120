"""The source discards a result that it needs later."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "discarded": Mistake(
        "`{code}` returns a new tensor that is discarded; the tensor itself does not change",
        "assign the result, `x = x.clamp(-5, 5)`, or use the in-place method, `x.clamp_(-5, 5)`",
        Confidence.HINT,
    ),
    "dropped state": Mistake(
        "`{code}` discards the new state: every iteration starts from the same `{subject}`",
        "keep the state that the call returns: `out, {subject} = ...`",
    ),
    "unused scale": Mistake(
        "`{code}` computes `{subject}`, which is never used: the values are not scaled",
        "divide by it: `x = (x - mean) / std`",
        Confidence.HINT,
    ),
    "class weights in sampler": Mistake(
        "`{code}` computes one weight per sample that is never used; `WeightedRandomSampler`"
        " receives the class weights instead",
        "pass the sample weights: `WeightedRandomSampler({subject}, len({subject}))`",
    ),
    "unused split": Mistake(
        "`{code}` creates `{subject}`, which is never used; only the remaining rows are used",
        "use `{subject}` for everything that must not see the held-out rows",
    ),
    "same state twice": Mistake(
        "`{code}` concatenates a state of `{subject}` with itself: the other direction is lost",
        "concatenate the last states of both directions: `torch.cat([{subject}[-2],"
        " {subject}[-1]], 1)`",
    ),
    "state of a lower layer": Mistake(
        "`{code}` concatenates the states of the first layer: `{subject}` holds the states of all"
        " layers, the last layer at the end",
        "concatenate those of the last layer: `torch.cat([{subject}[-2], {subject}[-1]], 1)`",
    ),
    "same part twice": Mistake(
        "`{code}` concatenates `{subject}` with itself: the other part, such as a skip connection,"
        " is lost",
        "concatenate it with the other part: `torch.cat([{subject}, skip], dim=1)`",
    ),
    "ignored encoder": Mistake(
        "`{code}`: only the shape of the output of `{subject}` is used, so its input has no effect"
        " on the output",
        "use the state itself instead of zeros",
    ),
    "repeated layer": Mistake(
        "`{code}` repeats one object: all these layers share the weights of `{subject}`",
        "build each layer: `nn.ModuleList([Block() for _ in range(n)])`",
    ),
    "unread positions": Mistake(
        "`{code}`: `{subject}` is never used, so the model does not know the order of its inputs",
        "add it to the embeddings: `x = self.tok(ids) + self.{subject}(torch.arange(T))`",
    ),
    "unused helper": Mistake(
        "`{code}` is never called: the data, or the weights, are used unchanged",
        "call `{subject}` where its result is needed, or remove it",
        Confidence.HINT,
    ),
    "unused offset": Mistake(
        "`{code}` increments `{subject}`, but no index is shifted by it: the indices of all parts"
        " refer to the first one",
        "add it to the indices: `edges + {subject}`",
    ),
    "cut generator": Mistake(
        "`{code}`: `{subject}` was computed without a graph, or is detached, before the"
        " generator's optimizer steps: the generator gets no gradient",
        "compute the generator's loss with the graph: `-critic(generator(z)).mean()`",
    ),
    "state not carried": Mistake(
        "`{code}` discards the new state, so each chunk starts from the same `{subject}`; training"
        " carries it over",
        "keep the state that the call returns: `logits, {subject} = ...`",
    ),
    "unread reset": Mistake(
        "`{code}` carries over a state, and `{subject}` is never used: a new sequence starts with"
        " the state of another one",
        "reset the state when a sequence starts: `h = None if {subject} else h.detach()`",
    ),
    "loss without graph": Mistake(
        "`{code}` copies losses into a new tensor without a graph: the network gets no gradient"
        " from them",
        "stack the losses themselves: `torch.stack([loss_a, loss_b])`",
    ),
    "marked again": Mistake(
        "`{code}` sets `requires_grad` on a result of `{subject}` that was computed without a"
        " graph: `backward()` runs, but no gradient reaches the parameters",
        "call `{subject}` outside `torch.no_grad()`",
    ),
    "overwritten loss": Mistake(
        "`{code}` overwrites `{subject}` before `backward()`: the previous loss is lost",
        "add them: `{subject} = {subject} + ...`",
    ),
    "unused weights of file": Mistake(
        "`{code}` reads weights from a file, but `{subject}` is never loaded into a network, which"
        " keeps its random initial weights",
        "load them: `model.load_state_dict({subject})`",
    ),
}


@rule(severity=Severity.WARNING, level=Level.PROCEDURE, needs=(LOSS,), preview=True)
def discarded_results(facts: Facts) -> Iterator[Verdict]:
    """The source discards a result that it needs later.

    ## What it does
    Reads the source of the script and of the modules next to it. It reports calls of
    side-effect-free functions whose result is unused, such as `logits.clamp(-5, 5)` as a statement,
    and loops over time that discard the new state of a recurrent cell. In a training file it also
    reports a standard deviation, sample weights, a split, an offset or a data-cleaning function
    that is never used, and a generator loss whose graph was discarded.

    ## Why it matters
    The tensor is not clamped, masked or reshaped as the source suggests. A cell that starts every
    step from the same state has no memory.

    ## Example
    ```python
    out, _ = cell(x[t], h)  # bad
    out, h = cell(x[t], h)  # good
    ```

    ## What to do
    Assign the result to the variable that later statements use.

    ## When it is wrong
    The call is timed, each step starts from the same state on purpose, or the unused code is a
    leftover.

    ## How to confirm
    - Print the tensor, or the state, before and after the statement.
    """
    yield from concluded(discarded_results, facts, _MISTAKES)
