"""MLflow: the run that is active, or a new one, at MLFLOW_TRACKING_URI."""

import time
from contextlib import nullcontext
from itertools import islice

import mlflow
from mlflow.entities import Metric

from holter.integrations.trackers import Sendable

_AT_ONCE = 1000  # metrics of one request, the most that MLflow takes


def send(what: Sendable) -> str:
    """Log scalars by step, findings as tags, and the report as an artifact."""
    active = mlflow.active_run()
    with mlflow.start_run() if active is None else nullcontext(active) as run:
        now, client = int(1000 * time.time()), mlflow.MlflowClient()
        metrics = (Metric(_name(name), value, now, step) for name, step, value in what.scalars())
        while some := list(islice(metrics, _AT_ONCE)):
            client.log_batch(run.info.run_id, metrics=some)
        mlflow.set_tag("holter.diagnosis", what.summary[:5000])
        for finding in what.checkup.findings:
            mlflow.set_tag(f"holter.{finding.rule}", finding.summary[:5000])
        name, text = what.page
        mlflow.log_text(text, name)
        return f"{mlflow.get_tracking_uri()} {run.info.run_id}"


def _name(name: str) -> str:
    """A name of which MLflow allows every character."""
    return "".join(each if each.isalnum() or each in "_-. :/" else "_" for each in name)
