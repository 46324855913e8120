"""The source credits a reward to another action, time or episode."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "another sample": Mistake(
        "`{code}` samples from `{subject}` again: the log-probability is that of another action"
        " than the one that was executed",
        "sample once: `action = {subject}.sample(); log_prob = {subject}.log_prob(action)`",
    ),
    "forward returns": Mistake(
        "`{code}` runs forward in time: `{subject}` sums the rewards before an action, which it"
        " cannot influence",
        "sum from the end: `for t in reversed(range(len(rewards)))`, or reverse the rewards before"
        " the loop and the returns after it",
    ),
    "endless episode": Mistake(
        "`{code}` adds the value of the next state, and `{subject}` is stored but never read: an"
        " episode that has ended goes on earning",
        "multiply the value of the next state by `1 - {subject}`",
        Confidence.HINT,  # episodes may end by a time limit alone
    ),
    "bootstrap at ends": Mistake(
        "`{code}` adds the value of the next state where `{subject}` is 1: only transitions that"
        " end an episode are bootstrapped",
        "multiply by `1 - {subject}`: `target = reward + gamma * (1 - {subject}) * next_value`",
    ),
    "action of this state": Mistake(
        "`{code}` evaluates the next state at the best action of `{subject}`, the state before"
        " the step",
        "choose the action in the next state: `best = online(next_state).argmax(1, keepdim=True)`",
    ),
    "value of the next state": Mistake(
        "`{code}` takes the value of the stored action from `{subject}`: the action was chosen"
        " in the state before",
        "use the state of the action: `q = online(state).gather(1, action)`",
    ),
    "value of this state": Mistake(
        "`{code}` bootstraps from `{subject}`, the state before the step, not from the next one",
        "use the next state: `reward + gamma * (1 - done) * value(next_state)`",
    ),
    "reversed exploration": Mistake(
        "`{code}` begins at the final value and ends at `{subject}`: exploration rises during"
        " training",
        "let the share rise from 0 to 1: `frac = min(1.0, step / steps)`, `start + frac * (end -"
        " start)`",
    ),
    "overwritten observation": Mistake(
        "`{code}` stores `{subject}` after it became the next observation: both states of the"
        " transition are the same",
        "store the transition first, then `{subject} = next_{subject}`",
    ),
    "advantage across episodes": Mistake(
        "`{code}` continues at the end of an episode, although `{subject}` is stored: advantages"
        " include rewards of the next episode",
        "end the recursion: `gae = delta + gamma * lam * (1 - {subject}[t]) * gae`",
    ),
    "normalised returns": Mistake(
        "`{code}` adds values to `{subject}` after it was normalised: the sum is not a return,"
        " and the critic is given targets of another scale",
        "compute `returns = advantages + values` before the advantages are normalised",
    ),
    "same network": Mistake(
        "`{code}` gives the network `{subject}` a second name: the target changes with every"
        " update",
        "build a second network, or `copy.deepcopy({subject})`",
    ),
    "target never copied": Mistake(
        "`{code}` copies weights to the target network and is never called: the target keeps its"
        " initial weights",
        "call `{subject}` at a fixed interval of steps",
    ),
    "sampled before the pointer": Mistake(
        "`{code}` draws indices below `{subject}`, which returns to 0 when the buffer is full:"
        " most of the buffer is never drawn",
        "draw below the number of stored transitions",
    ),
    "random above epsilon": Mistake(
        "`{code}` takes a random action if the draw is above `{subject}`: the agent explores with"
        " probability `1 - {subject}`, most at the end of training",
        "explore below it: `if random.random() < {subject}:` take a random action",
    ),
    "dropped observation": Mistake(
        "`{code}` drops the first observation of the new episode: the next action is chosen from"
        " `{subject}`, the last one of the old episode",
        "keep it: `{subject}, _ = env.reset()`",
    ),
    "unread time limit": Mistake(
        "`{code}` is the only condition of a reset, and `{subject}` of the same step is never read:"
        " after a time limit the agent goes on in an episode that is over",
        "reset at both ends: `if terminated or truncated: obs, _ = env.reset()`",
    ),
    "latest transitions": Mistake(
        "`{code}` takes a slice of `{subject}` as a batch, not a random sample: transitions of one"
        " batch follow each other",
        "draw at random: `random.sample({subject}, batch_size)`",
    ),
    "gradient through the goal": Mistake(
        "`{code}` is computed with a graph through `{subject}`: the loss also moves the value of"
        " the next state towards that of the present one",
        "compute the goal under `torch.no_grad()`, with a target network",
    ),
    "fixed target": Mistake(
        "`{code}` runs once, and nothing else writes weights to `{subject}`: all goals are"
        " bootstrapped from its initial weights",
        "copy the weights at a fixed interval, in the loop: `{subject}.load_state_dict(...)`",
    ),
    "time limit as end": Mistake(
        "`{code}` stores `{subject}` as an end: the state at a time limit is given no further"
        " reward, although the task goes on there",
        "store `terminated` alone, and use `{subject}` to reset the environment",
        Confidence.HINT,  # common, and harmless where time limits are rare
    ),
}


@rule(severity=Severity.WARNING, level=Level.PROCEDURE, needs=(LOSS,), preview=True)
def misassigned_credit(facts: Facts) -> Iterator[Verdict]:
    """The source credits a reward to another action, time or episode.

    ## What it does
    Reads the source of the script and of modules beside it. It reports a log-probability of a
    second sample beside an executed first one, discounted returns that are summed forward in time,
    and bootstrapped targets of a batch whose ends of episodes are never read.

    ## Why it matters
    Nothing fails. A policy gradient of an action that was not executed is noise, a return of past
    rewards does not depend on the action, and values of states after the end of an episode have no
    bound but `reward / (1 - gamma)`.

    ## Example
    ```python
    loss = -dist.log_prob(dist.sample()) * advantage  # bad
    loss = -dist.log_prob(action) * advantage         # good
    ```

    ## What to do
    Use one sample for the environment and for its probability, sum rewards from the last step to
    the first, and stop the sum at the end of an episode.

    ## When it is wrong
    Episodes end by a time limit alone, so that the state after the end has a value. A loop runs
    forward over rewards that another function has reversed.

    ## How to confirm
    - Compute the returns and the log-probabilities of three steps by hand, and compare.
    """
    yield from concluded(misassigned_credit, facts, _MISTAKES)
