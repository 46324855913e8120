"""The documentation site: a page for everything there is, links that hold, nothing from outside."""

import re
from pathlib import Path

import pytest

from docs.generated import GUIDES, MEASUREMENTS, pages
from holter._cli import COMMANDS
from holter.diagnosis.engine import all_rules
from holter.lab.experiments import all_experiments
from holter.record.signals import CATALOGUE

ROOT = Path(__file__).parent.parent


def test_every_rule_signal_experiment_and_command_has_a_page() -> None:
    made = pages()
    assert {f"rules/{name}.md" for name in all_rules()} <= set(made)
    assert {f"signals/{name}.md" for name in CATALOGUE} <= set(made)
    assert {f"experiments/{name}.md" for name in all_experiments()} <= set(made)
    assert {f"commands/{name}.md" for name in COMMANDS} <= set(made)
    assert all(len(text) > 60 for text in made.values())


def test_every_page_written_by_hand_is_in_the_navigation() -> None:
    written = {path.name for path in (ROOT / "docs").glob("*.md")}
    assert written <= {*GUIDES.values(), *MEASUREMENTS.values()}


def test_symptoms_name_causes_with_links() -> None:
    table = pages()["symptoms.md"]
    row = next(line for line in table.splitlines() if "[flat-loss]" in line)
    assert "(rules/parameters-outside-optimizer.md)" in row


@pytest.mark.slow
def test_the_site_builds_strictly_and_needs_no_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_MKDOCS_2_WARNING", "1")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(tmp_path)))  # a dead link raises
    for page in ("index.html", "rules/flat-loss.html", "signals/grad.norm.html"):
        html = (tmp_path / page).read_text()
        assert not re.search(r"<(script|link|img)[^>]+(src|href)=[\"']?(https?:)?//", html)
