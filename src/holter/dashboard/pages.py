"""The HTML of the pages: a shell that loads one script, and the pages of rules."""

from functools import cache
from html import escape
from importlib.resources import files

from holter.dashboard.markdown import to_html, with_code
from holter.diagnosis.causes import explained_by
from holter.diagnosis.engine import all_rules
from holter.diagnosis.rule import Rule
from holter.record.findings import Level

_KINDS = {".js": "text/javascript", ".css": "text/css"}
_LINKS = (("/", "Runs"), ("/playground", "Playground"), ("/rules", "Rules"))


def asset(name: str) -> tuple[bytes, str] | None:
    """Return a script or style sheet and its media type, or None; only files of the package."""
    return _assets().get(name)


def page(title: str, *, script: str = "", main: str = "", current: str = "/") -> bytes:
    """Return a page: navigation, `main` (HTML that is already escaped), and one script."""
    links = "".join(
        f'<a href="{path}"{" aria-current=page" if path == current else ""}>{name}</a>'
        for path, name in _LINKS
    )
    body = f"""<header class="bar"><a class="brand" href="/">holter</a><nav>{links}</nav>
<span id="live" class="live" role="status"></span>
<button id="theme" class="quiet" type="button">Theme</button></header>
<main id="main">{main}</main>"""
    return _document(title, ("dashboard.css",), script, body)


def run_page() -> bytes:
    """Return the page of one run; its script fetches the sections of the report."""
    body = """<nav class="bar" aria-label="sections"><a class="brand" href="/">holter</a>
<span id="run-name" class="run"></span><div id="sections"></div>
<span id="live" class="live" role="status"></span>
<button id="next" class="primary" type="button">Next experiment</button>
<button id="theme" type="button">Theme</button></nav>
<main id="main"><p class="loading">Reading the run …</p></main>
<dialog id="experiments" aria-label="Next experiment"></dialog>"""
    return _document("Run", ("report.css", "run.css"), "run.js", body)


def rule_list() -> bytes:
    """Return the page that lists all rules by level."""
    rules = all_rules().values()
    sections = []
    for level in Level:
        rows = "".join(_row(rule) for rule in rules if rule.level is level)
        if rows:
            sections.append(
                f'<section class="card"><h2>{escape(str(level)).capitalize()}</h2>'
                f'<table class="rules"><tbody>{rows}</tbody></table></section>'
            )
    intro = f"<h1>Rules</h1><p class=lead>{len(rules)} rules, by where the cause lies.</p>"
    return page("Rules", main=intro + "".join(sections), current="/rules")


def rule_page(name: str) -> bytes | None:
    """Return the page of a rule, or None where there is none of that name."""
    rules = all_rules()
    if name not in rules:
        return None
    rule, names = rules[name], frozenset(rules)
    kind = f"{rule.severity} · {rule.level} · {'preview' if rule.preview else 'stable'}"
    title, _, body = rule.doc.partition("\n")
    main = (
        f'<article class="card prose"><p class="kind">{escape(kind)}</p>'
        f"<h1>{escape(name)}</h1><p class=lead>{with_code(title, names)}</p>"
        f"{to_html(body, rules=names)}{_options(rule)}{_exceptions(rule)}{_related(rule)}</article>"
    )
    return page(name, main=main, current="/rules")


def _document(title: str, styles: tuple[str, ...], script: str, body: str) -> bytes:
    sheets = ("charts.css", *styles, "frame.css")
    linked = "".join(f'<link rel="stylesheet" href="/assets/{sheet}">' for sheet in sheets)
    loaded = "".join(
        f'<script type="module" src="/assets/{each}"></script>'
        for each in filter(None, ("frame.js", script))
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)} · holter</title>
<link rel="icon" href="data:,">
{linked}{loaded}
</head>
<body>
<a class="skip" href="#main">Skip to content</a>
{body}
<div id="alerts" class="alerts" role="log" aria-live="polite"></div>
</body>
</html>
""".encode()


def _row(rule: Rule) -> str:
    maturity = "preview" if rule.preview else ""
    return (
        f'<tr><td><a href="/rules/{escape(rule.name)}">{escape(rule.name)}</a></td>'
        f'<td><span class="tag {rule.severity}">{rule.severity}</span></td>'
        f"<td>{maturity}</td><td>{with_code(rule.title)}</td></tr>"
    )


def _options(rule: Rule) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(option)}</code></td><td>{escape(f'{value}')}</td>"
        f"<td>{escape(rule.option_docs[option])}</td></tr>"
        for option, value in rule.options.items()
    )
    return f"<h2>Options</h2><table><tbody>{rows}</tbody></table>" if rows else ""


def _exceptions(rule: Rule) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(each.name)}</code></td><td>{with_code(each.because)}</td></tr>"
        for each in rule.exceptions
    )
    return f"<h2>Exceptions</h2><table><tbody>{rows}</tbody></table>" if rows else ""


def _related(rule: Rule) -> str:
    causes = [name for name in all_rules() if rule.name in explained_by(name)]
    lists = (("Explains", sorted(explained_by(rule.name))), ("Is explained by", causes))
    return "".join(
        f"<h2>{heading}</h2><p>"
        + ", ".join(f'<a href="/rules/{escape(name)}">{escape(name)}</a>' for name in names)
        + "</p>"
        for heading, names in lists
        if names
    )


@cache
def _assets() -> dict[str, tuple[bytes, str]]:
    found: dict[str, tuple[bytes, str]] = {}
    for package in ("holter.reports.html", "holter.dashboard"):
        for file in files(package).joinpath("assets").iterdir():
            kind = _KINDS.get(f".{file.name.rpartition('.')[2]}")
            if kind is not None:
                found[file.name] = (file.read_bytes(), kind)
    return found
