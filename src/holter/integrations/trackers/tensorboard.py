"""TensorBoard: event files beside the run."""

from torch.utils.tensorboard import SummaryWriter

from holter.integrations.trackers import Sendable


def send(what: Sendable) -> str:
    """Write scalars, the findings as text, and the report to RUN/tensorboard."""
    assert what.run.path is not None
    folder = what.run.path / "tensorboard"
    with SummaryWriter(str(folder)) as writer:
        for name, step, value in what.scalars():
            writer.add_scalar(name, value, step)
        writer.add_text("holter/diagnosis", what.summary.replace("\n", "\n\n"))
        for finding in what.checkup.findings:
            writer.add_text(f"holter/{finding.rule}", finding.summary, finding.onset)
    name, text = what.page
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder)
