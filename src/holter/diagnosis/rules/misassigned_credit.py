"""The source assigns rewards to the wrong action, time step or episode."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "another sample": Mistake(
        "`{code}` samples from `{subject}` a second time: the log-probability belongs to a"
        " different action than the executed one",
        "sample once: `action = {subject}.sample(); log_prob = {subject}.log_prob(action)`",
    ),
    "forward returns": Mistake(
        "`{code}` runs forward in time: `{subject}` sums the rewards before an action, which the"
        " action cannot influence",
        "sum from the end: `for t in reversed(range(len(rewards)))`, or reverse the rewards before"
        " the loop and the returns after it",
    ),
    "endless episode": Mistake(
        "`{code}` adds the value of the next state, and `{subject}` is stored but never read:"
        " returns continue past the end of an episode",
        "multiply the value of the next state by `1 - {subject}`",
        Confidence.HINT,  # episodes may end by a time limit alone
    ),
    "bootstrap at ends": Mistake(
        "`{code}` adds the value of the next state where `{subject}` is 1: only transitions that"
        " end an episode are bootstrapped",
        "multiply by `1 - {subject}`: `target = reward + gamma * (1 - {subject}) * next_value`",
    ),
    "action of this state": Mistake(
        "`{code}` evaluates the next state with the best action of `{subject}`, the state before"
        " the step",
        "choose the action in the next state: `best = online(next_state).argmax(1, keepdim=True)`",
    ),
    "value of the next state": Mistake(
        "`{code}` takes the value of the stored action from `{subject}`: the action was chosen in"
        " the previous state",
        "use the state in which it was chosen: `q = online(state).gather(1, action)`",
    ),
    "value of this state": Mistake(
        "`{code}` bootstraps from `{subject}`, the state before the step, not from the next one",
        "use the next state: `reward + gamma * (1 - done) * value(next_state)`",
    ),
    "reversed exploration": Mistake(
        "`{code}` starts at the final value and ends at `{subject}`: exploration increases during"
        " training",
        "let the fraction rise from 0 to 1: `frac = min(1.0, step / steps)`, `start + frac * (end"
        " - start)`",
    ),
    "overwritten observation": Mistake(
        "`{code}` stores `{subject}` after it was overwritten by the next observation: both states"
        " of the transition are the same",
        "store the transition first, then `{subject} = next_{subject}`",
    ),
    "advantage across episodes": Mistake(
        "`{code}` does not stop at the end of an episode, although `{subject}` is stored:"
        " advantages include rewards of the next episode",
        "end the recursion: `gae = delta + gamma * lam * (1 - {subject}[t]) * gae`",
    ),
    "normalised returns": Mistake(
        "`{code}` adds values to `{subject}` after it was normalised: the sum is not a return, and"
        " the critic's targets have the wrong scale",
        "compute `returns = advantages + values` before the advantages are normalised",
    ),
    "same network": Mistake(
        "`{code}` creates an alias of the network `{subject}`: the target changes with every"
        " update",
        "create a second network, or use `copy.deepcopy({subject})`",
    ),
    "target never copied": Mistake(
        "`{code}` copies weights to the target network but is never called: the target keeps its"
        " initial weights",
        "call `{subject}` at a fixed interval of steps",
    ),
    "sampled before the pointer": Mistake(
        "`{code}` draws indices below `{subject}`, which returns to 0 when the buffer is full:"
        " most of the buffer is never drawn",
        "draw below the number of stored transitions",
    ),
    "random above epsilon": Mistake(
        "`{code}` takes a random action if the random number is above `{subject}`: the agent"
        " explores with probability `1 - {subject}`, most at the end of training",
        "explore if it is below: `if random.random() < {subject}:` take a random action",
    ),
    "dropped observation": Mistake(
        "`{code}` discards the first observation of the new episode: the next action is chosen"
        " from `{subject}`, the last observation of the old one",
        "keep it: `{subject}, _ = env.reset()`",
    ),
    "unread time limit": Mistake(
        "`{code}` is the only reset condition, and `{subject}` of the same step is never read:"
        " after a time limit the agent continues in a finished episode",
        "reset in both cases: `if terminated or truncated: obs, _ = env.reset()`",
    ),
    "latest transitions": Mistake(
        "`{code}` takes a slice of `{subject}` as a batch instead of a random sample: the"
        " transitions of a batch are consecutive",
        "draw at random: `random.sample({subject}, batch_size)`",
    ),
    "gradient through the goal": Mistake(
        "`{code}` is computed with a graph through `{subject}`: the loss also moves the value of"
        " the next state towards that of the current one",
        "compute the target under `torch.no_grad()`, with a target network",
    ),
    "fixed target": Mistake(
        "`{code}` runs once, and nothing else updates `{subject}`: all targets are bootstrapped"
        " from its initial weights",
        "copy the weights at a fixed interval inside the loop: `{subject}.load_state_dict(...)`",
    ),
    "time limit as end": Mistake(
        "`{code}` stores `{subject}` as the end of the episode: the state at a time limit is not"
        " bootstrapped, although the task continues",
        "store only `terminated`, and use `{subject}` to reset the environment",
        Confidence.HINT,  # common, and harmless where time limits are rare
    ),
}


@rule(severity=Severity.WARNING, level=Level.PROCEDURE, needs=(LOSS,), preview=True)
def misassigned_credit(facts: Facts) -> Iterator[Verdict]:
    """The source assigns rewards to the wrong action, time step or episode.

    ## What it does
    Reads the source of the script and of the modules next to it. It reports the log-probability of
    a second sample instead of the executed action, discounted returns summed forward in time, and
    bootstrapped targets that ignore the ends of episodes.

    ## Why it matters
    There is no error. A policy gradient for an action that was not executed is noise, a return of
    past rewards does not depend on the action, and values bootstrapped past the end of an episode
    grow up to `reward / (1 - gamma)`.

    ## Example
    ```python
    loss = -dist.log_prob(dist.sample()) * advantage  # bad
    loss = -dist.log_prob(action) * advantage         # good
    ```

    ## What to do
    Use the same sample for the environment and the log-probability, sum rewards from the last step
    to the first, and stop the sum at the end of an episode.

    ## When it is wrong
    Episodes end only by a time limit, so the state after the end has a value. A loop runs forward
    over rewards that another function has reversed.

    ## How to confirm
    - Compute the returns and the log-probabilities of three steps by hand, and compare.
    """
    yield from concluded(misassigned_credit, facts, _MISTAKES)
