"""The reports are tested on rules made for it, so that no new rule changes a snapshot."""

import pytest
from situations import RULES


@pytest.fixture(autouse=True)
def made_up_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    for place in (
        "holter.diagnosis.engine",
        "holter.diagnosis.differential",
        "holter.reports.sarif",
    ):
        monkeypatch.setattr(f"{place}.all_rules", lambda: RULES)
