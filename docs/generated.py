"""Pages that are made from the code when the site is built, so that none can be out of date.

One for each rule, signal, experiment and command; the table of symptoms and their causes; and the
navigation, which lists them.
"""

import argparse
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from holter._cli import COMMANDS, make_parser
from holter.diagnosis.causes import explained_by
from holter.diagnosis.engine import all_rules
from holter.diagnosis.rule import Rule
from holter.lab.experiments import Experiment, all_experiments
from holter.record.findings import Level
from holter.record.signals import CATALOGUE, Signal

# Written by hand, in the order of reading; a page that is not in the folder yet is left out.
GUIDES = {
    "Start": "index.md",
    "Doctor": "doctor.md",
    "Data": "data.md",
    "HTML report": "report.md",
    "Evaluation": "evaluation.md",
    "Time and memory": "time-and-memory.md",
    "Several ranks": "distributed.md",
    "Reproducibility": "reproducibility.md",
    "Seeds": "seeds.md",
    "Dashboard": "dashboard.md",
    "Frameworks": "frameworks.md",
    "Trackers": "trackers.md",
    "Logs of other tools": "logs.md",
    "CI": "ci.md",
    "Agents": "agents.md",
    "Write a rule": "writing-a-rule.md",
    "Stability": "stability.md",
}
MEASUREMENTS = {
    "Accuracy": "accuracy.md",
    "Accuracy in long runs": "accuracy-sampled.md",
    "Blind failures": "blind-failures.md",
    "Preflight": "preflight.md",
    "Cures": "cures.md",
    "Replays": "replays.md",
    "Real scripts": "real-scripts.md",
    "On a GPU": "gpu.md",
}


def pages() -> dict[str, str]:
    """Every generated page in Markdown, by its path in the site."""
    made = {
        "symptoms.md": _symptoms(),
        "rules/index.md": _rules(),
        "signals/index.md": _signals(),
        "experiments/index.md": _experiments(),
        "commands/index.md": _commands(),
    }
    made |= {f"rules/{rule.name}.md": _rule(rule) for rule in all_rules().values()}
    made |= {f"signals/{signal.name}.md": _signal(signal) for signal in CATALOGUE.values()}
    made |= {
        f"experiments/{each.name}.md": _experiment(each) for each in all_experiments().values()
    }
    return made | {f"commands/{name}.md": _command(name) for name in COMMANDS}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Set the navigation."""
    from pathlib import Path

    folder = Path(config.docs_dir)
    made = pages()

    def section(name: str) -> list[dict[str, str] | str]:
        index = f"{name}/index.md"
        rest = sorted(path for path in made if path.startswith(f"{name}/") and path != index)
        return [index, *({path[len(name) + 1 : -3]: path} for path in rest)]

    def written(given: Mapping[str, str]) -> list[dict[str, str]]:
        return [{title: path} for title, path in given.items() if (folder / path).exists()]

    config.nav = [
        *written(GUIDES),
        {"Symptoms": "symptoms.md"},
        *({name.capitalize(): section(name)} for name in ("rules", "experiments", "commands")),
        {"Signals": section("signals")},
        {"Measurements": written(MEASUREMENTS)},
    ]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def _rules() -> str:
    rows = [
        (f"[{rule.name}]({rule.name}.md)", rule.title, str(rule.level), str(rule.severity))
        for rule in all_rules().values()
    ]
    return "# Rules\n\n" + _table(("rule", "this run has", "level", "severity"), rows)


def _rule(rule: Rule) -> str:
    status = "preview: it does not change the exit code" if rule.preview else "stable"
    parts = [f"# {rule.name}\n\n*{rule.severity}, {rule.level}, {status}*\n\n{rule.doc}\n"]
    if rule.options:
        rows = [
            (f"`{name}`", f"{default}", rule.option_docs[name])
            for name, default in rule.options.items()
        ]
        parts.append("## Options\n\n" + _table(("option", "default", "meaning"), rows))
    if rule.exceptions:
        rows = [(each.name, each.because) for each in rule.exceptions]
        parts.append("## Exceptions\n\n" + _table(("exception", "why it is harmless"), rows))
    related = {
        "Needs": [f"[{each.name}](../signals/{each.name}.md)" for each in rule.needs],
        "Explains": [f"[{name}]({name}.md)" for name in sorted(explained_by(rule.name))],
        "Is explained by": [f"[{name}]({name}.md)" for name in _causes(rule.name)],
    }
    parts += [
        f"## {heading}\n\n{', '.join(names)}\n" for heading, names in related.items() if names
    ]
    return "\n".join(parts)


def _symptoms() -> str:
    """The table of symptoms: what is seen, and what may cause it."""
    rows = [
        (
            rule.title,
            f"[{rule.name}](rules/{rule.name}.md)",
            "<br>".join(_causes_by_level(rule.name)),
        )
        for rule in all_rules().values()
        if rule.symptom
    ]
    return (
        "# Symptoms\n\nWhat is seen, and which causes holter looks for. `holter doctor train.py`"
        " finds out which of them it is.\n\n" + _table(("what is seen", "rule", "causes"), rows)
    )


def _causes(name: str) -> list[str]:
    return [cause for cause in all_rules() if name in explained_by(cause)]


def _causes_by_level(name: str) -> Iterator[str]:
    """The causes of a symptom that are no symptoms, in the order in which an engineer looks."""
    causes = [all_rules()[cause] for cause in _causes(name)]
    for level in Level:
        links = [
            f"[{rule.name}](rules/{rule.name}.md)"
            for rule in causes
            if rule.level is level and not rule.symptom
        ]
        if links:
            yield f"*{level}*: {', '.join(links)}"


def _signals() -> str:
    rows = [
        (f"[{each.name}]({each.name}.md)", _first_sentence(each.doc), str(each.per))
        for each in CATALOGUE.values()
    ]
    return "# Signals\n\n" + _table(("signal", "what it is", "one per"), rows)


def _signal(signal: Signal) -> str:
    readers = [rule for rule in all_rules().values() if signal in rule.needs]
    makers = [each for each in all_experiments().values() if signal in each.emits]
    rows = [("one per", str(signal.per)), ("unit", signal.unit or "none")]
    rows.append(("read", signal.phase.name.lower()))
    if makers:
        names = ", ".join(f"[{each.name}](../experiments/{each.name}.md)" for each in makers)
        rows.append(("written by", names))
    if readers:
        names = ", ".join(f"[{rule.name}](../rules/{rule.name}.md)" for rule in readers)
        rows.append(("needed by", names))
    return f"# {signal.name}\n\n{_text(signal.doc)}\n\n" + _table(("", ""), rows)


def _experiments() -> str:
    rows = [
        (
            f"[{each.name}]({each.name}.md)",
            each.title,
            "yes" if each.preflight else "",
        )
        for each in all_experiments().values()
    ]
    return "# Experiments\n\n" + _table(("experiment", "question", "in preflight"), rows)


def _experiment(each: Experiment) -> str:
    parts = [f"# {each.name}\n\n{each.doc}\n\n```sh\nholter try {each.name} train.py\n```\n"]
    if each.options:
        rows = [(f"`{name}`", f"{default}") for name, default in each.options.items()]
        parts.append("## Options\n\n" + _table(("option", "default"), rows))
    names = ", ".join(f"[{signal.name}](../signals/{signal.name}.md)" for signal in each.emits)
    parts.append(f"## Writes\n\n{names}\n")
    return "\n".join(parts)


def _commands() -> str:
    rows = [(f"[holter {name}]({name}.md)", help_of) for name, help_of in _helps()]
    return "# Commands\n\n" + _table(("command", "what it does"), rows)


def _command(name: str) -> str:
    return f"# holter {name}\n\n```text\n{_parser(name).format_help()}```\n"


def _helps() -> Iterator[tuple[str, str]]:
    for action in _subparsers()._choices_actions:  # noqa: SLF001
        yield action.dest, action.help or ""


def _parser(name: str) -> argparse.ArgumentParser:
    if name == "try":  # whose options depend on what is tried
        from holter._cli.try_options import parser_of

        return parser_of(script=True)
    return _subparsers().choices[name]


def _subparsers() -> Any:
    actions = make_parser()._actions  # noqa: SLF001
    return next(each for each in actions if isinstance(each, argparse._SubParsersAction))  # noqa: SLF001


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    heads = tuple(heads)
    lines = [heads, ["---"] * len(heads), *rows]
    return (
        "\n".join(
            "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
        )
        + "\n"
    )


def _first_sentence(text: str) -> str:
    return _text(re.split(r"(?<=[.:;])\s", inspect.cleandoc(text), maxsplit=1)[0].rstrip(":;"))


def _text(text: str) -> str:
    return " ".join(text.split()).replace("<", "&lt;")
