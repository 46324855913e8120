"""Results of experiments as a reader sees them, in text and in JSON."""

import json
from importlib.resources import files

import jsonschema

from holter.diagnosis.engine import Checkup
from holter.record import Run
from holter.reports import json as json_report
from holter.reports._lines import painted
from holter.reports._tables import table_lines
from holter.reports.experiments import ResultTable, all_results

SCHEMA = json.loads((files("holter.reports") / "schema-3.json").read_text())


def shown(run: Run, width: int = 96) -> str:
    """Every table of the run as text, after a check of the width and of the JSON report."""
    tables = all_results(run)
    document = json.loads(json_report.render(run, Checkup()))
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    assert [each["title"] for each in document["experiments"]] == [each.title for each in tables]
    text = "".join(painted(table_lines(table, width), color=False) for table in tables)
    assert max(map(len, text.splitlines()), default=0) <= width
    return text


def table(run: Run, title: str) -> ResultTable:
    """The table whose title begins so."""
    (found,) = (each for each in all_results(run) if each.title.startswith(title))
    return found
