"""Weights & Biases: the run that is active, or a new one; WANDB_MODE=offline works."""

import wandb

from holter.integrations.trackers import Sendable


def send(what: Sendable) -> str:
    """Log scalars by step, alert for what is wrong, and keep the report as an artifact."""
    own = wandb.run is None
    run = wandb.init(project="holter", job_type="diagnosis") if own else wandb.run
    assert run is not None
    run.define_metric("holter/step")
    run.define_metric("holter/*", step_metric="holter/step")
    for step, values in what.by_step():
        run.log({"holter/step": step, **values})
    run.summary["holter/diagnosis"] = what.summary
    for finding, level in what.alerts:
        run.alert(title=f"holter: {finding.rule}", text=finding.summary, level=level)
    name, text = what.page
    artifact = wandb.Artifact("holter-report", type="report")
    with artifact.new_file(name) as file:
        file.write(text)
    run.log_artifact(artifact)
    where = run.url or run.dir
    if own:
        run.finish()
    return str(where)
