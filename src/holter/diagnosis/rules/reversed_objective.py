"""The source gives a term of the loss the wrong sign."""

from collections.abc import Iterator

from holter.diagnosis.code_findings import Mistake, concluded
from holter.diagnosis.facts import Facts
from holter.diagnosis.rule import rule
from holter.record.findings import Confidence, Level, Severity, Verdict
from holter.record.signals import LOSS

_MISTAKES = {
    "reversed policy": Mistake(
        "`{code}` is minimised, but it increases with the probability of rewarded actions:"
        " training makes them less frequent",
        "negate it: `policy_loss = -(log_prob * advantage).mean()`",
    ),
    "reversed entropy": Mistake(
        "`{code}` adds the policy entropy to the loss: minimising it suppresses exploration",
        "subtract the entropy: `loss = policy_loss - entropy_weight * dist.entropy().mean()`",
    ),
    "inverted ratio": Mistake(
        "`{code}` divides the old probability by the new one: `{subject}` falls for actions that"
        " become more frequent",
        "swap them: `ratio = torch.exp(new_log_prob - old_log_prob)`",
    ),
    "reversed pair": Mistake(
        "`{code}` compares {subject}s in the wrong direction: minimising it pushes positives away"
        " and pulls negatives closer",
        "swap the two {subject}s: the loss must fall with the score of a positive and rise with"
        " its distance",
    ),
    "reversed hinge": Mistake(
        "`{code}` is 0 for pairs within `{subject}` and negative beyond it: the hinge is clamped"
        " from above instead of below",
        "`({subject} - distance).clamp(min=0)`",
    ),
    "reversed divergence": Mistake(
        "`{code}` enters the loss with the wrong sign: minimising it increases the divergence from"
        " the prior without bound",
        "negate it: `kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum()`",
    ),
    "reversed determinant": Mistake(
        "`{code}` returns a {subject} with the wrong sign in the loss: the flow contracts or"
        " expands its input without bound",
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
        "`{code}` subtracts `{subject}`: the loss reaches 0 before positives are closer than"
        " negatives",
        "add the margin: `F.relu(d_pos - d_neg + margin)`",
    ),
    "reversed teacher": Mistake(
        "`{code}` passes the teacher as the input of `kl_div`: this is the reverse divergence,"
        " which ignores most modes of the teacher",
        "swap them: `F.kl_div(student_log_probs, teacher_probs, reduction='batchmean')`",
        Confidence.HINT,
    ),
    "optimistic bound": Mistake(
        "`{code}` takes the {subject} of the clipped and the unclipped objective, the optimistic"
        " bound: large policy changes are not limited",
        "maximise the smaller one: `-torch.min(ratio * adv, ratio.clamp(1 - eps, 1 + eps) *"
        " adv).mean()`",
    ),
    "constant ratio": Mistake(
        "`{code}` subtracts a log-probability from itself: the ratio is always 1",
        "subtract the log-probability stored when the action was taken",
    ),
    "reversed regulariser": Mistake(
        "`{code}` subtracts the log-variance (`{subject}`) of the task weights: the loss falls"
        " without bound as the weights vanish",
        "add it: `exp(-log_var) * loss + log_var`",
    ),
    "targets reversed": Mistake(
        "`{code}` assigns label 0 to the positives of `{subject}`",
        "put the ones first, in the order of the scores",
    ),
    "labels of critic": Mistake(
        "`{code}` gives real and generated samples the same label {subject}, or nearly the same:"
        " the critic cannot learn to separate them",
        "label real samples 1 and generated ones 0 in the loss of the critic",
    ),
    "label of generator": Mistake(
        "`{code}` trains the generator towards the label {subject}, which marks generated samples:"
        " it learns to be detected",
        "use the label of real samples: `bce(D(fake), torch.ones_like(D(fake)))`",
    ),
    "reversed likelihood": Mistake(
        "`{code}` adds the log-likelihood to the loss: minimising it makes the targets unlikely",
        "negate it: `-(target * logp).sum(1).mean()`",
    ),
}


@rule(severity=Severity.WARNING, level=Level.ARCHITECTURE, needs=(LOSS,), preview=True)
def reversed_objective(facts: Facts) -> Iterator[Verdict]:
    """The source gives a term of the loss the wrong sign.

    ## What it does
    Reads the source of the script, and reports a loss term with the wrong sign: a policy gradient,
    an entropy, a divergence, a log-determinant, a critic, or a pair of a positive and a negative. A
    metric that gets worse during training is not evidence for it: `unimproved-metrics` reports
    that, and it has other causes as well.

    ## Why it matters
    The model learns the opposite of the goal: good actions become rare, negatives move closer,
    exploration stops.

    ## Example
    ```python
    loss = (log_prob * advantage).mean()   # bad
    loss = -(log_prob * advantage).mean()  # good
    ```

    ## What to do
    Check the sign of each term of the loss: the minimised value must fall when the metric improves.
    For a policy gradient that is `-(log_prob * advantage).mean()`.

    ## When it is wrong
    A variable holds the opposite of what its name suggests, such as a reward that is a cost.

    ## How to confirm
    - Negate the loss and train for as many steps: the metric improves.
    """
    yield from concluded(reversed_objective, facts, _MISTAKES)
