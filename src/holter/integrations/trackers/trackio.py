"""Trackio: a new run of the project `holter`."""

import trackio

from holter.integrations.trackers import Sendable


def send(what: Sendable) -> str:
    """Log scalars by step; outcome and findings are in the configuration of the run."""
    assert what.run.path is not None
    trackio.init(project="holter", name=what.run.path.name, config={"diagnosis": what.summary})
    for step, values in what.by_step():
        trackio.log(values, step=step)
    trackio.finish()
    return "trackio, project holter"
