"""The source gives a term of the loss the wrong sign."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "reversed policy": Mistake(
        "`{code}` is minimised, but it rises with the probability of rewarded actions: training"
        " makes them less frequent",
        "negate it: `policy_loss = -(log_prob * advantage).mean()`",
    ),
    "reversed entropy": Mistake(
        "`{code}` adds the entropy of the policy to the loss: minimising it ends exploration",
        "subtract the entropy: `loss = policy_loss - entropy_weight * dist.entropy().mean()`",
    ),
    "inverted ratio": Mistake(
        "`{code}` divides the old probability by the new one: `{subject}` falls for actions that"
        " become more frequent",
        "exchange them: `ratio = torch.exp(new_log_prob - old_log_prob)`",
    ),
    "reversed pair": Mistake(
        "`{code}` compares {subject}s in the wrong direction: minimising it exchanges positives and"
        " negatives",
        "exchange the two {subject}s: a loss falls with the score of a positive, and rises with its"
        " distance",
    ),
    "reversed hinge": Mistake(
        "`{code}` is 0 for pairs within `{subject}` and negative beyond it: the lower bound of the"
        " hinge is an upper one",
        "`({subject} - distance).clamp(min=0)`",
    ),
    "reversed divergence": Mistake(
        "`{code}` enters the loss with the opposite sign: minimising it increases the divergence"
        " from the prior without bound",
        "negate it: `kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum()`",
    ),
    "reversed determinant": Mistake(
        "`{code}` returns a {subject} that enters the loss with the opposite sign: the flow shrinks"
        " or stretches its input without bound",
        "for `z = x * exp(s) + t` return `s.sum(1)`, and minimise"
        " `-(prior.log_prob(z) + log_det).mean()`",
    ),
    "agreeing critic": Mistake(
        "`{code}`: the loss of `{subject}` and that of the generator move the scores of generated"
        " samples in the same direction; they do not compete",
        "the critic minimises `{subject}(fake).mean() - {subject}(real).mean()`, the generator"
        " `-{subject}(fake).mean()`",
    ),
    "subtracted margin": Mistake(
        "`{code}` subtracts `{subject}`: the loss is 0 before positives are closer than negatives",
        "add the margin: `F.relu(d_pos - d_neg + margin)`",
    ),
    "reversed teacher": Mistake(
        "`{code}` passes the teacher where `kl_div` takes the input: this is the divergence of the"
        " student from the teacher, which ignores most modes of the teacher",
        "exchange them: `F.kl_div(student_log_probs, teacher_probs, reduction='batchmean')`",
        Confidence.HINT,
    ),
    "optimistic bound": Mistake(
        "`{code}` takes the {subject} of the clipped and the unclipped objective, which is the"
        " optimistic bound: large changes of the policy are not limited",
        "maximise the smaller one: `-torch.min(ratio * adv, ratio.clamp(1 - eps, 1 + eps) *"
        " adv).mean()`",
    ),
    "constant ratio": Mistake(
        "`{code}` is the difference of a log-probability to itself: the ratio is 1 and has no"
        " gradient",
        "subtract the log-probability that was stored when the action was taken",
    ),
    "reversed regulariser": Mistake(
        "`{code}` subtracts the logarithm of the variance (`{subject}`) that tasks are"
        " weighted by: the loss falls without bound as the weights vanish",
        "add it: `exp(-log_var) * loss + log_var`",
    ),
    "targets reversed": Mistake(
        "`{code}` puts zeros where `{subject}` has the positives",
        "put ones first, in the order of the scores",
    ),
    "labels of critic": Mistake(
        "`{code}` gives real and generated samples the label {subject}, or one beside it: the"
        " critic learns to say the same to both",
        "label real samples 1 and generated ones 0 in the loss of the critic",
    ),
    "label of generator": Mistake(
        "`{code}` trains the generator towards the label {subject}, which the critic gives to"
        " generated samples: it learns to be recognised",
        "use the label of real samples: `bce(D(fake), torch.ones_like(D(fake)))`",
    ),
    "reversed likelihood": Mistake(
        "`{code}` adds the likelihood to the loss: minimising it makes what is true unlikely",
        "negate it: `-(target * logp).sum(1).mean()`",
    ),
}


@rule(severity=Severity.WARNING, level=Level.ARCHITECTURE, needs=(LOSS,), preview=True)
def reversed_objective(facts: Facts) -> Iterator[Verdict]:
    """The source gives a term of the loss the wrong sign.

    ## What it does
    Reads the source of the script, and reports a term of the loss whose sign is wrong: of a policy
    gradient, an entropy, a divergence, a log-determinant, a critic, or a pair of a positive and a
    negative.
    A metric that training makes worse is no evidence of it: `unimproved-metrics` reports that, and
    other causes explain it as well.

    ## Why it matters
    The model learns the opposite of what is wanted: good actions become rare, negatives come near,
    exploration ends.

    ## Example
    ```python
    loss = (log_prob * advantage).mean()   # bad
    loss = -(log_prob * advantage).mean()  # good
    ```

    ## What to do
    Check the sign of each term of the loss: what the optimizer minimises must fall where the metric
    rises. For a policy gradient that is `-(log_prob * advantage).mean()`.

    ## When it is wrong
    A name in the source says the opposite of what it holds, such as a reward that is a cost.

    ## How to confirm
    - Negate the loss and train for as many steps: the metric rises.
    """
    yield from concluded(reversed_objective, facts, _MISTAKES)
