"""The scripts and styles of pages: plain ES modules, and one script made of them for a report."""

import re
from importlib.resources import files
from pathlib import PurePath

_LINK = re.compile(r'^(import|export)\s*\{([^}]*)\}\s*from\s*"\./([\w.]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class) (\w+))", re.MULTILINE)


def asset(name: str) -> str:
    """Return the text of a script or style sheet of this package."""
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def joined_script(entry: str) -> str:
    """Return a module and all that it imports as one script.

    A page opened from disk cannot import files. Each module becomes a function that returns what
    the module exports, and is called once, after those it imports.
    """
    scripts: dict[str, str] = {}
    _add(entry, scripts)
    return "\n".join(scripts.values())


def _add(name: str, scripts: dict[str, str]) -> None:
    text = asset(name)
    links = _LINK.findall(text)
    for _, _, imported in links:
        if imported not in scripts:
            _add(imported, scripts)
    passed_on = [names for kind, names, _ in links if kind == "export"]
    exports = ", ".join([*_EXPORT.findall(text), *(" ".join(names.split()) for names in passed_on)])
    body = _EXPORT.sub("", _LINK.sub(_assignment, text))
    scripts[name] = f"const {_variable(name)} = (() => {{\n{body}return {{{exports}}};\n}})();"


def _assignment(link: re.Match[str]) -> str:
    return f"const {{{link[2]}}} = {_variable(link[3])};\n"


def _variable(name: str) -> str:
    return f"module_{PurePath(name).stem}"
