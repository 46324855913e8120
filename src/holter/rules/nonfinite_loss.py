"""The training loss became NaN or infinite."""

from collections.abc import Iterator

import numpy as np

from holter.findings import Confidence, Evidence, Level, Severity, Verdict
from holter.rules import rule
from holter.rules._skips import skipped_steps
from holter.rules._wording import of
from holter.run import Run
from holter.signals import LOSS


@rule(
    severity=Severity.ERROR,
    level=Level.NUMERICS,
    needs=(LOSS,),
    explains=("nonfinite-gradient", "nonfinite-weights"),
    symptom=True,
)
def nonfinite_loss(run: Run) -> Iterator[Verdict]:
    """The training loss became NaN or infinite.

    ## What it does
    Looks for the first step whose loss is NaN or ±Inf, and tells whether the loss came back.
    Steps that a GradScaler skipped are left out: nothing was learned from them.

    ## Why it matters
    One non-finite loss makes every gradient non-finite, and the next `optimizer.step()` writes
    NaN into every weight. From then on the model is lost; only a checkpoint brings it back.

    ## What to do
    Look at the batch and the operation of the first bad step: logarithms and divisions of
    something that can reach 0, `exp` of large logits, a mean over an empty selection. If norms
    grew in the steps before, lower the learning rate or clip the gradients.

    ## When it is wrong
    Losses that are infinite by design for single samples (CTC with impossible alignments) and are
    filtered before `optimizer.step()`: the finding then says that the loss came back.

    ## How to confirm
    - Run the same script under `torch.autograd.set_detect_anomaly(True)` until the step named.
    - Repeat the run with a tenth of the learning rate: if the step survives, the update was too
      large; if not, look at the batch.
    """
    skipped = skipped_steps(run)
    for owner, loss in run[LOSS].items():
        bad = ~np.isfinite(loss.values) & ~np.isin(loss.steps, skipped)
        if not bad.any():
            yield nonfinite_loss.clear(f"all {len(loss)} recorded losses are finite")
            continue
        at = int(bad.argmax())
        first, value = int(loss.steps[at]), float(loss.values[at])
        after = np.isfinite(loss.values[at:]).sum()
        last_good = f"{loss.values[at - 1]:.4g}" if at else "none: the first loss is already bad"
        came_back = f", came back {int(after)} times" if after else " and never comes back"
        yield nonfinite_loss.finding(
            f"loss{of(owner)} is {value} at step {first}{came_back}",
            confidence=Confidence.CERTAIN,
            onset=first,
            evidence=(
                Evidence(
                    LOSS,
                    (max(first - 20, 0), first),
                    f"{int(bad.sum())} of {len(loss)} losses are not finite;"
                    f" last finite one before step {first}: {last_good}",
                    owner,
                ),
            ),
            fix=f"look at the batch and the operations of step {first}; resume from a checkpoint"
            " made before it",
        )
