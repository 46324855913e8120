"""Trackio: a new run of the project `holter`."""

import tempfile
from pathlib import Path

import trackio

from holter.integrations.trackers import Sendable


def send(what: Sendable) -> str:
    """Log scalars by step, alert for what is wrong, and keep the report as an artifact.

    Outcome and findings are in the configuration of the run, too.
    """
    assert what.run.path is not None
    trackio.init(project="holter", name=what.run.path.name, config={"diagnosis": what.summary})
    for step, values in what.by_step():
        trackio.log(values, step=step)
    for finding, level in what.alerts:
        trackio.alert(f"holter: {finding.rule}", finding.summary, trackio.AlertLevel[level])
    name, text = what.page
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, name)
        page.write_text(text, encoding="utf-8")
        trackio.log_artifact(page, name="holter-report", type="report")
    trackio.finish()
    return "trackio, project holter"
