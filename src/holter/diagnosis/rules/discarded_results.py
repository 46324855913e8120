"""The source discards a result that a later statement needs."""

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
        "`{code}` computes `{subject}`, which nothing uses: the values are not scaled",
        "divide by it: `x = (x - mean) / std`",
        Confidence.HINT,
    ),
    "class weights in sampler": Mistake(
        "`{code}` makes one weight for each sample that nothing uses; `WeightedRandomSampler` is"
        " given what they were made of, one weight for each class",
        "pass the weights of the samples: `WeightedRandomSampler({subject}, len({subject}))`",
    ),
    "unused split": Mistake(
        "`{code}` sets apart `{subject}`, which nothing uses; the rows that are left out of it are"
        " used",
        "compute with `{subject}` what is to be computed without the rows that are held out",
    ),
    "same state twice": Mistake(
        "`{code}` joins a state of `{subject}` with itself: the other direction is lost",
        "join the last states of both directions: `torch.cat([{subject}[-2], {subject}[-1]], 1)`",
    ),
    "state of a lower layer": Mistake(
        "`{code}` joins states of the first layer: `{subject}` has those of all layers, the last"
        " one at the end",
        "join those of the last layer: `torch.cat([{subject}[-2], {subject}[-1]], 1)`",
    ),
    "same part twice": Mistake(
        "`{code}` joins `{subject}` with itself: the other part, such as a skip connection, is"
        " lost",
        "join it with the other part: `torch.cat([{subject}, skip], dim=1)`",
    ),
    "ignored encoder": Mistake(
        "`{code}`: only the shape of what `{subject}` returns is used, so that its input has no"
        " effect on the output",
        "use the state itself in place of zeros",
    ),
    "repeated layer": Mistake(
        "`{code}` repeats one object: all layers made of it share the weights of `{subject}`",
        "build each layer: `nn.ModuleList([Block() for _ in range(n)])`",
    ),
    "unread positions": Mistake(
        "`{code}`: nothing reads `{subject}`, so that the model does not know the order of its"
        " inputs",
        "add it to the embeddings: `x = self.tok(ids) + self.{subject}(torch.arange(T))`",
    ),
    "unused helper": Mistake(
        "`{code}` is never called: the data, or the weights, are used as they are",
        "call `{subject}` where its result is needed, or remove it",
        Confidence.HINT,
    ),
    "unused offset": Mistake(
        "`{code}` counts on, and nothing is shifted by `{subject}`: indices of all parts refer to"
        " the first one",
        "add it to the indices: `edges + {subject}`",
    ),
    "cut generator": Mistake(
        "`{code}`: `{subject}` was made without a graph, or is detached, and the optimizer of the"
        " generator steps next: the generator gets no gradient",
        "compute the loss of the generator with the graph: `-critic(generator(z)).mean()`",
    ),
    "state not carried": Mistake(
        "`{code}` discards the new state, so that each chunk begins with the same `{subject}`;"
        " training hands it on",
        "keep the state that the call returns: `logits, {subject} = ...`",
    ),
    "unread reset": Mistake(
        "`{code}` hands on a state although nothing reads `{subject}`: a new sequence begins"
        " with the state of another one",
        "reset the state where a sequence begins: `h = None if {subject} else h.detach()`",
    ),
    "loss without graph": Mistake(
        "`{code}` copies losses into a new tensor, which has no graph: the network gets no gradient"
        " from them",
        "join the losses themselves: `torch.stack([loss_a, loss_b])`",
    ),
    "marked again": Mistake(
        "`{code}` marks a result of `{subject}` that was computed without a graph: `backward()`"
        " runs, and no gradient reaches the parameters",
        "call `{subject}` outside `torch.no_grad()`",
    ),
    "overwritten loss": Mistake(
        "`{code}` replaces `{subject}` before `backward()`: the loss that it had is lost",
        "add them: `{subject} = {subject} + ...`",
    ),
    "unused weights of file": Mistake(
        "`{code}` reads weights from a file, and nothing loads `{subject}` into a network: it keeps"
        " its random initial weights",
        "load them: `model.load_state_dict({subject})`",
    ),
}


@rule(severity=Severity.WARNING, level=Level.PROCEDURE, needs=(LOSS,), preview=True)
def discarded_results(facts: Facts) -> Iterator[Verdict]:
    """The source discards a result that a later statement needs.

    ## What it does
    Reads the source of the script and of modules beside it. It reports calls of functions without
    side effects whose result is not used, such as `logits.clamp(-5, 5)` as a statement, and loops
    over time that discard the new state of a recurrent cell. In a file that trains, it also reports
    a standard deviation, weights of samples, a part of a split, an offset and a function that
    cleans data, if nothing ever uses them, and a loss of a generator whose graph was discarded.

    ## Why it matters
    The tensor is not clamped, masked or reshaped, although the source says so. A cell that starts
    every step from the same state has no memory.

    ## Example
    ```python
    out, _ = cell(x[t], h)  # bad
    out, h = cell(x[t], h)  # good
    ```

    ## What to do
    Assign the result to the name that later statements use.

    ## When it is wrong
    The call measures time, each step starts from the same state on purpose, or what is unused is
    left over from something that the script does no longer.

    ## How to confirm
    - Print the tensor, or the state, before and after the statement.
    """
    yield from concluded(discarded_results, facts, _MISTAKES)
