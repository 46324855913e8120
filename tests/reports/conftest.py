"""The reports are tested on rules made for it, so that no new rule changes a snapshot."""

import pytest
from situations import RULES, explained_by


@pytest.fixture(autouse=True)
def made_up_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    for place in (
        "holter.diagnosis.engine",
        "holter.diagnosis.differential",
        "holter.reports._card",
        "holter.reports.text",
        "holter.reports.sarif",
    ):
        monkeypatch.setattr(f"{place}.all_rules", lambda: RULES)
    # What causes what is fixed, too.
    for place in ("holter.diagnosis.differential", "holter.diagnosis.effects"):
        monkeypatch.setattr(f"{place}.explained_by", explained_by)
        monkeypatch.setattr(f"{place}.reach", set)
    monkeypatch.setattr("holter.diagnosis.effects.members", set)
