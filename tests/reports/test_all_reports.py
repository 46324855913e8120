"""What holds for every report, present and future."""

import subprocess
import sys

import pytest
from situations import SITUATIONS

from holter.reports import REPORTS, report


def test_reports_are_found() -> None:
    assert {"text", "json", "github", "sarif"} <= set(REPORTS)


def test_an_unknown_report_is_named() -> None:
    with pytest.raises(ValueError, match=r"'pdf'.*text"):
        report("pdf")


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("situation", SITUATIONS)
def test_renders_every_situation(name: str, situation: str) -> None:
    rendered = report(name)(*SITUATIONS[situation])
    assert rendered.strip()
    assert rendered.endswith("\n")
    assert not rendered.endswith("\n\n")
    assert rendered == report(name)(*SITUATIONS[situation])
    for finding in SITUATIONS[situation][1].findings:
        assert finding.rule in rendered


def test_naming_the_reports_loads_none() -> None:
    code = (
        "import sys, holter.reports; assert not {'rich', 'holter.reports.text'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_text_report_loads_rich_only_for_color() -> None:
    code = "import sys, holter.reports.text; assert 'rich' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
